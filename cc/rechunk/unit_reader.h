#ifndef RELAYOUT_CC_RECHUNK_UNIT_READER_H_
#define RELAYOUT_CC_RECHUNK_UNIT_READER_H_

/// \file
/// Fills the target chunks of units from source chunks.

#include <cstdint>
#include <span>
#include <string_view>

#include "cc/base/byte_buffer.h"
#include "cc/base/result.h"
#include "cc/base/zstd_codec.h"
#include "cc/rechunk/phase_times.h"
#include "cc/rechunk/rewrite_plan.h"
#include "cc/rechunk/source_parts.h"
#include "cc/rechunk/stored_chunk.h"
#include "cc/rechunk/stream_pool.h"
#include "cc/rechunk/unit_buffer.h"

namespace relayout::rechunk {

/// What the readers of one rewrite share.
struct ReaderContext {
  const MemoryShares& memory;
  SourceFiles files;
  StreamPool streams;
};

/// Reads for one worker.
class UnitReader {
 public:
  explicit UnitReader(ReaderContext& context);

  /// Fills `buffer`, that of unit number `unit` of `task`.  Returns false when
  /// the rewrite was stopped meanwhile.
  ///
  /// Errors: those of `ChunkStream`, naming the array and the key;
  /// `kInvalidArgument` when the window of a chunk does not fit the memory.
  Result<bool> Fill(const PlannedTask& task, uint64_t unit, UnitBuffer& buffer,
                    PhaseTimes& times);

  /// Returns the bytes of source chunks that were read.
  uint64_t num_bytes_read() const { return num_bytes_read_; }

 private:
  /// One part of a unit.
  struct Job {
    const PlannedTask& task;
    const SourcePart& part;
    Coords origin;      ///< of the source chunk
    LinearRange range;  ///< bytes that are needed of it
    UnitBuffer& buffer;
    PhaseTimes& times;
  };

  Result<bool> FillPart(const PlannedTask& task, uint64_t unit,
                        const SourcePart& part, UnitBuffer& buffer,
                        PhaseTimes& times);
  Result<bool> ReadStored(const Job& job, uint64_t unit,
                          const FoundChunk& chunk);
  Status ReadRaw(const Job& job, const StoredBytes& stored);
  Status ReadWhole(const Job& job, const StoredBytes& stored);
  Result<bool> ReadStream(const Job& job, const StoredBytes& stored,
                          const std::optional<ChainUse>& use);
  Result<bool> OpenStream(const Job& job, const StoredBytes& stored,
                          PooledStream& pooled);
  Status Advance(const Job& job, ChunkStream& stream);
  void Scatter(const Job& job, uint64_t first_byte, std::string_view bytes);

  ReaderContext& context_;
  ByteBuffer piece_;
  ByteBuffer stored_;
  ZstdDecoder decoder_;
  uint64_t num_bytes_read_ = 0;
};

}  // namespace relayout::rechunk

#endif  // RELAYOUT_CC_RECHUNK_UNIT_READER_H_
