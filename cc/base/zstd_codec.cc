#include "cc/base/zstd_codec.h"

// Sizes of contexts and headers of frames; the library is linked statically.
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "cc/base/result.h"
#include "cc/base/str_cat.h"

namespace relayout {
namespace {

/// The longest repetitions of which the library can ask the least, and a table
/// of places that stays in a cache.
constexpr unsigned kQuickMinMatch = 7;
constexpr unsigned kQuickMaxHashLog = 17;

constexpr int kMaxWindowLog = 27;
static_assert(uint64_t{1} << kMaxWindowLog == kMaxZstdWindowBytes);

std::unexpected<Error> Damaged(size_t code) {
  return Corrupt(StrCat("zstd frame is damaged: ", ZSTD_getErrorName(code)));
}

Result<ZSTD_FrameHeader> ReadHeader(std::string_view header) {
  ZSTD_FrameHeader result;
  const size_t code =
      ZSTD_getFrameHeader(&result, header.data(), header.size());
  if (ZSTD_isError(code) != 0) return Damaged(code);
  if (code != 0) return Corrupt("zstd frame is cut short in its header");
  if (result.frameType != ZSTD_frame) {
    return Corrupt("zstd frame holds no content");
  }
  return result;
}

Result<size_t> LengthOrError(size_t code) {
  if (ZSTD_isError(code) == 0) return code;
  return SystemError(StrCat("zstd: ", ZSTD_getErrorName(code)));
}

/// Returns the parameters of `level` without the search for short repetitions.
ZSTD_compressionParameters QuickParameters(int32_t level, uint64_t num_bytes) {
  ZSTD_compressionParameters parameters =
      ZSTD_getCParams(level, std::max<uint64_t>(num_bytes, 1), 0);
  parameters.strategy = ZSTD_fast;
  parameters.minMatch = kQuickMinMatch;
  parameters.targetLength = 0;
  parameters.hashLog = std::min(parameters.hashLog, kQuickMaxHashLog);
  return parameters;
}

}  // namespace

struct ZstdDecoder::Context {
  Context() : zstd(ZSTD_createDCtx()) {
    ZSTD_DCtx_setParameter(zstd, ZSTD_d_windowLogMax, kMaxWindowLog);
  }
  ~Context() { ZSTD_freeDCtx(zstd); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  ZSTD_DCtx* const zstd;
};

Result<uint64_t> ZstdDecoder::NumBytesNeeded(std::string_view header,
                                             uint64_t num_content_bytes) {
  RELAYOUT_ASSIGN_OR_RETURN(const ZSTD_FrameHeader frame, ReadHeader(header));
  if (frame.frameContentSize != ZSTD_CONTENTSIZE_UNKNOWN &&
      frame.frameContentSize != num_content_bytes) {
    return Corrupt(StrCat("zstd frame holds ", frame.frameContentSize,
                          " bytes instead of ", num_content_bytes));
  }
  if (frame.windowSize > kMaxZstdWindowBytes) {
    return Unsupported(StrCat("zstd frame has a window of ", frame.windowSize,
                              " bytes; the largest is ", kMaxZstdWindowBytes));
  }
  return ZSTD_estimateDStreamSize(
      std::max<uint64_t>(frame.windowSize, ZSTD_BLOCKSIZE_MAX));
}

uint64_t ZstdDecoder::NumBytesNeeded() { return ZSTD_estimateDCtxSize(); }

ZstdDecoder::ZstdDecoder() : context_(std::make_unique<Context>()) {}
ZstdDecoder::~ZstdDecoder() = default;
ZstdDecoder::ZstdDecoder(ZstdDecoder&&) noexcept = default;
ZstdDecoder& ZstdDecoder::operator=(ZstdDecoder&&) noexcept = default;

Result<ZstdDecoder::Step> ZstdDecoder::Decode(std::string_view input,
                                              std::span<char> output) {
  if (context_->zstd == nullptr) return SystemError("zstd: out of memory");
  ZSTD_inBuffer source = {input.data(), input.size(), 0};
  ZSTD_outBuffer target = {output.data(), output.size(), 0};
  const size_t code = ZSTD_decompressStream(context_->zstd, &target, &source);
  if (ZSTD_isError(code) != 0) return Damaged(code);
  return Step{
      .num_read = source.pos, .num_written = target.pos, .at_end = code == 0};
}

Status ZstdDecoder::DecodeWhole(std::string_view frame,
                                std::span<char> output) {
  if (context_->zstd == nullptr) return SystemError("zstd: out of memory");
  const size_t num_frame_bytes =
      ZSTD_findFrameCompressedSize(frame.data(), frame.size());
  if (ZSTD_isError(num_frame_bytes) != 0) return Damaged(num_frame_bytes);
  if (num_frame_bytes != frame.size()) {
    return Corrupt(StrCat("zstd frame ends after ", num_frame_bytes, " of ",
                          frame.size(), " bytes"));
  }
  const size_t code = ZSTD_decompressDCtx(
      context_->zstd, output.data(), output.size(), frame.data(), frame.size());
  if (ZSTD_isError(code) != 0) return Damaged(code);
  if (code != output.size()) {
    return Corrupt(
        StrCat("zstd frame holds ", code, " bytes instead of ", output.size()));
  }
  return {};
}

struct ZstdEncoder::Context {
  Context() : zstd(ZSTD_createCCtx()) {}
  ~Context() { ZSTD_freeCCtx(zstd); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  ZSTD_CCtx* const zstd;
};

uint64_t ZstdEncoder::NumBytesNeeded(int32_t level, uint64_t num_bytes) {
  return ZSTD_estimateCCtxSize_usingCParams(
      ZSTD_getCParams(level, num_bytes, 0));
}

uint64_t ZstdEncoder::MaxFrameBytes(uint64_t num_bytes) {
  return ZSTD_COMPRESSBOUND(num_bytes);
}

ZstdEncoder::ZstdEncoder() : context_(std::make_unique<Context>()) {}
ZstdEncoder::~ZstdEncoder() = default;
ZstdEncoder::ZstdEncoder(ZstdEncoder&&) noexcept = default;
ZstdEncoder& ZstdEncoder::operator=(ZstdEncoder&&) noexcept = default;

Result<size_t> ZstdEncoder::Encode(std::string_view bytes, int32_t level,
                                   std::span<char> output) {
  if (context_->zstd == nullptr) return SystemError("zstd: out of memory");
  return LengthOrError(ZSTD_compressCCtx(context_->zstd, output.data(),
                                         output.size(), bytes.data(),
                                         bytes.size(), level));
}

bool ZstdEncoder::HasQuickWay(int32_t level) {
  return ZSTD_getCParams(level, 0, 0).strategy > ZSTD_fast;
}

Result<size_t> ZstdEncoder::EncodeQuickly(std::string_view bytes, int32_t level,
                                          std::span<char> output) {
  if (context_->zstd == nullptr) return SystemError("zstd: out of memory");
  ZSTD_CCtx* const zstd = context_->zstd;
  const ZSTD_compressionParameters parameters =
      QuickParameters(level, bytes.size());
  ZSTD_CCtx_reset(zstd, ZSTD_reset_session_and_parameters);
  const size_t code = ZSTD_CCtx_setCParams(zstd, parameters);
  if (ZSTD_isError(code) != 0) return LengthOrError(code);
  return LengthOrError(ZSTD_compress2(zstd, output.data(), output.size(),
                                      bytes.data(), bytes.size()));
}

}  // namespace relayout
