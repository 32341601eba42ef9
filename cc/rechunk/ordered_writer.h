#ifndef RELAYOUT_CC_RECHUNK_ORDERED_WRITER_H_
#define RELAYOUT_CC_RECHUNK_ORDERED_WRITER_H_

/// \file
/// Writes units in their order, in whatever order they are done.

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "cc/base/result.h"
#include "cc/io/file_writer.h"
#include "cc/rechunk/memory_pool.h"
#include "cc/rechunk/unit_encoder.h"

namespace relayout::rechunk {

/// A chunk in the data file.
struct WrittenChunk {
  std::string key;
  uint64_t offset = 0;
  uint64_t length = 0;
};

class OrderedWriter {
 public:
  /// Buffers of written units go back to `pool`.
  OrderedWriter(io::FileWriter& file, MemoryPool& pool)
      : file_(file), pool_(pool) {}

  /// Writes unit number `number`, or keeps it until all before it are written;
  /// then writes those that waited for it.
  ///
  /// Errors: `kSystem` when the file can't be written.
  Status Write(uint64_t number, EncodedUnit unit);

  /// Writes what is still held back; to be called after the last unit.
  Status Flush();

  /// Returns the number of decoded bytes that are written.
  uint64_t num_decoded_bytes() const;

  /// Takes the chunks that were written; to be called once, last.
  std::vector<WrittenChunk> TakeChunks();

 private:
  Status WriteUnit(EncodedUnit& unit);
  Status Append(std::string_view bytes);

  io::FileWriter& file_;
  MemoryPool& pool_;
  // Of the thread that writes.
  /// Small units, to be written in one go.
  std::string held_back_;
  std::vector<WrittenChunk> chunks_;
  uint64_t num_bytes_ = 0;

  mutable std::mutex mutex_;
  bool is_writing_ = false;
  uint64_t next_ = 0;  ///< number of the unit to write next
  std::map<uint64_t, EncodedUnit> waiting_;
  uint64_t num_decoded_bytes_ = 0;
};

}  // namespace relayout::rechunk

#endif  // RELAYOUT_CC_RECHUNK_ORDERED_WRITER_H_
