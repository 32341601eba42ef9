#ifndef RELAYOUT_CC_RECHUNK_UNIT_BUFFER_H_
#define RELAYOUT_CC_RECHUNK_UNIT_BUFFER_H_

/// \file
/// The target chunks of a unit while they are made.
///
/// One buffer holds them all, one after another, behind room enough that each
/// can be encoded to the front of the buffer without reaching a chunk that is
/// still to be encoded.

#include <cstdint>
#include <string_view>
#include <vector>

#include "cc/base/byte_buffer.h"
#include "cc/rechunk/checked_task.h"
#include "cc/rechunk/coords.h"
#include "cc/rechunk/unit_grid.h"

namespace relayout::rechunk {

/// Returns the size of the buffer of a unit of `num_chunks`.
uint64_t NumUnitBytes(const CheckedTask& task, uint64_t num_chunks);

class UnitBuffer {
 public:
  /// `buffer` has at least `NumUnitBytes` bytes.
  UnitBuffer(const CheckedTask& task, const Unit& unit, ByteBuffer buffer);

  const Unit& unit() const { return unit_; }

  /// Copies what `bytes`, whole elements from byte `first_byte` on of the
  /// source chunk that begins at `origin`, has in common with `wanted`, a box
  /// within both the source chunk and the unit.
  void Scatter(const SourceForm& source, const Coords& origin,
               const Box& wanted, uint64_t first_byte, std::string_view bytes);

  /// Fills `wanted` with the value of the absent chunks of `source`.
  void Fill(const SourceForm& source, const Box& wanted);

  /// Returns whether any source stored something of the chunk, or its value
  /// differs from the target's fill value.
  bool IsStored(uint64_t chunk) const { return is_stored_[chunk]; }

  /// Returns the bytes of a chunk; chunks are in C order within the unit.
  std::string_view ChunkBytes(uint64_t chunk) const;

  /// Memory for encoded chunks.
  char* front() { return buffer_.data(); }
  uint64_t front_size() const { return data_offset_; }

  ByteBuffer TakeBuffer() && { return std::move(buffer_); }

 private:
  /// Where elements come from.
  struct Elements {
    const char* data = nullptr;
    CopyElements copy = nullptr;
    const Coords* stride = nullptr;  ///< along the common axes, bytes
    /// Whether they are what the target reads where nothing is stored.
    bool is_fill = false;
  };

  /// Copies `box`, whose first element is at `source.data`.
  void CopyToChunks(const Box& box, const Elements& source);
  void CopyToChunk(const Coords& chunk, const Box& box, const Elements& source);
  void FillRaggedChunks();
  char* ChunkData(uint64_t chunk);
  /// Returns the position of a chunk in C order within the unit.
  uint64_t ChunkNumber(const Coords& chunk) const;

  const CheckedTask* task_;
  Unit unit_;
  ByteBuffer buffer_;
  uint64_t data_offset_;
  std::vector<bool> is_stored_;
};

}  // namespace relayout::rechunk

#endif  // RELAYOUT_CC_RECHUNK_UNIT_BUFFER_H_
