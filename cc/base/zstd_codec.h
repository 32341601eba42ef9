#ifndef RELAYOUT_CC_BASE_ZSTD_CODEC_H_
#define RELAYOUT_CC_BASE_ZSTD_CODEC_H_

/// \file
/// Zstandard for large values: frames decoded piece by piece, and frames made
/// in memory of the caller.  Both say beforehand what memory they take.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "cc/base/result.h"

namespace relayout {

/// Largest window of a frame that is decoded piece by piece.
inline constexpr uint64_t kMaxZstdWindowBytes = 128 << 20;

/// Decodes one frame after another, each piece by piece.
class ZstdDecoder {
 public:
  /// What one call of `Decode` did.
  struct Step {
    size_t num_read = 0;
    size_t num_written = 0;
    bool at_end = false;  ///< of the frame
  };

  /// Longest start of a frame that `NumBytesNeeded` looks at.
  static constexpr size_t kMaxHeaderBytes = 18;

  /// Returns the memory that decoding the frame that begins with `header` takes
  /// when its content is `num_content_bytes` long.
  ///
  /// Errors: `kCorrupt` when it is no frame or says another length;
  /// `kUnsupported` when its window exceeds `kMaxZstdWindowBytes`.
  static Result<uint64_t> NumBytesNeeded(std::string_view header,
                                         uint64_t num_content_bytes);

  /// Returns the memory that a decoder takes that decodes whole frames only.
  static uint64_t NumBytesNeeded();

  ZstdDecoder();
  ~ZstdDecoder();
  ZstdDecoder(ZstdDecoder&&) noexcept;
  ZstdDecoder& operator=(ZstdDecoder&&) noexcept;

  /// Decodes `input`, the next bytes of the frame, into `output` until one of
  /// them is used up or the frame ends.
  ///
  /// Errors: `kCorrupt` when the frame is damaged.
  Result<Step> Decode(std::string_view input, std::span<char> output);

  /// Decodes `frame`, one whole frame, into `output`, which it must fill.
  ///
  /// Errors: `kCorrupt` when it is damaged or holds another number of bytes.
  Status DecodeWhole(std::string_view frame, std::span<char> output);

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

/// Makes frames.
class ZstdEncoder {
 public:
  /// Returns the memory that an encoder of content up to `num_bytes` takes.
  static uint64_t NumBytesNeeded(int32_t level, uint64_t num_bytes);

  /// Returns the length of the longest frame of `num_bytes` of content.
  static uint64_t MaxFrameBytes(uint64_t num_bytes);

  ZstdEncoder();
  ~ZstdEncoder();
  ZstdEncoder(ZstdEncoder&&) noexcept;
  ZstdEncoder& operator=(ZstdEncoder&&) noexcept;

  /// Writes `bytes` as one frame to `output`, which takes the longest one;
  /// returns its length.  The frame depends on `bytes` and `level` only.
  ///
  /// Errors: `kSystem` when there is no memory.
  Result<size_t> Encode(std::string_view bytes, int32_t level,
                        std::span<char> output);

  /// Returns whether `EncodeQuickly` is quicker than `Encode` at `level`.
  static bool HasQuickWay(int32_t level);

  /// Like `Encode`, but looks in the window of `level` for long repetitions
  /// only, which takes no more memory.
  Result<size_t> EncodeQuickly(std::string_view bytes, int32_t level,
                               std::span<char> output);

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace relayout

#endif  // RELAYOUT_CC_BASE_ZSTD_CODEC_H_
