#ifndef RELAYOUT_CC_RECHUNK_CHUNK_STREAM_H_
#define RELAYOUT_CC_RECHUNK_CHUNK_STREAM_H_

/// \file
/// Decodes one stored chunk from start to end, however large it is.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "cc/base/byte_buffer.h"
#include "cc/base/result.h"
#include "cc/base/zstd_codec.h"
#include "cc/rechunk/phase_times.h"
#include "cc/rechunk/stored_chunk.h"
#include "cc/rechunk/task.h"

namespace relayout::rechunk {

/// Errors: `kCorrupt` when the stored bytes are damaged, do not match their
/// checksum or hold another number of bytes than a chunk has; `kUnsupported`
/// as of `ZstdDecoder`; `kSystem` when they can't be read.
class ChunkStream {
 public:
  /// `num_content_bytes` are those of the decoded chunk.  Stored bytes are read
  /// `num_buffer_bytes` at a time.
  ChunkStream(StoredBytes stored, CodecChain codecs, uint64_t num_content_bytes,
              size_t num_buffer_bytes);

  /// Looks at the start of the chunk; to be called once, first.  Returns the
  /// memory that the stream will take.
  Result<uint64_t> Open();

  /// Number of decoded bytes that were read.
  uint64_t position() const { return position_; }

  /// Fills `output` with the next bytes, of which there must be so many.
  Status Read(std::span<char> output, PhaseTimes& times);

  /// Reads the rest, into `scratch`, and checks how the chunk ends.
  Status Finish(std::span<char> scratch, PhaseTimes& times);

 private:
  Status ReadContent(std::span<char> output, PhaseTimes& times);
  Status DecodeContent(std::span<char> output, PhaseTimes& times);
  Status ReadPayload(std::span<char> output, PhaseTimes& times);
  Status Refill(PhaseTimes& times);
  Status CheckInnerChecksum(PhaseTimes& times);
  Status CheckFrameEnd(PhaseTimes& times);
  Status CheckOuterChecksum();

  StoredBytes stored_;
  CodecChain codecs_;
  uint64_t num_content_bytes_;  ///< without the inner checksum
  uint64_t num_payload_bytes_;  ///< stored bytes without the outer checksum
  size_t num_buffer_bytes_;

  uint64_t position_ = 0;
  uint64_t payload_position_ = 0;
  uint32_t inner_checksum_ = 0;
  uint32_t outer_checksum_ = 0;

  std::optional<ZstdDecoder> decoder_;
  bool is_frame_at_end_ = false;
  ByteBuffer buffer_;
  std::string_view input_;  ///< the part of `buffer_` not yet decoded
};

/// Decodes `stored`, a whole chunk of `num_content_bytes`, in one go.  `output`
/// has room for the chunk and a checksum; the result is there or in `stored`.
///
/// Errors: as of `ChunkStream`.
Result<std::string_view> DecodeChunk(std::string_view stored, CodecChain codecs,
                                     uint64_t num_content_bytes,
                                     std::span<char> output,
                                     ZstdDecoder& decoder);

inline constexpr size_t kChecksumBytes = 4;

}  // namespace relayout::rechunk

#endif  // RELAYOUT_CC_RECHUNK_CHUNK_STREAM_H_
