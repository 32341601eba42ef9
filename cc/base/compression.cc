#include "cc/base/compression.h"

#include <zstd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "cc/base/byte_buffer.h"
#include "cc/base/byte_view.h"
#include "cc/base/result.h"
#include "cc/base/str_cat.h"

namespace relayout {
namespace {

/// Up to here a frame's own word for its size is believed; what it says beyond
/// is believed as the bytes arrive.
constexpr uint64_t kMaxTrustedNumBytes = 16 << 20;
constexpr uint64_t kMinBufferBytes = 4096;

struct FreeContext {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};
using DecompressContext = std::unique_ptr<ZSTD_DCtx, FreeContext>;

Status CheckCode(size_t code, std::string_view what) {
  if (ZSTD_isError(code) == 0) return {};
  return Corrupt(StrCat(what, ": ", ZSTD_getErrorName(code)));
}

uint64_t FirstBufferSize(std::string_view frame, uint64_t max_num_bytes) {
  const uint64_t claimed = ZSTD_getFrameContentSize(frame.data(), frame.size());
  const bool unknown =
      claimed == ZSTD_CONTENTSIZE_UNKNOWN || claimed == ZSTD_CONTENTSIZE_ERROR;
  // One more byte than needed tells the end of the frame from a full buffer.
  const uint64_t wanted =
      unknown ? std::max<uint64_t>(kMinBufferBytes, 4 * frame.size())
              : std::min(claimed, kMaxTrustedNumBytes) + 1;
  return std::min(wanted, max_num_bytes + 1);
}

/// The output of one decompression; grows as bytes arrive.
class Output {
 public:
  explicit Output(uint64_t size) : buffer_(size) {}

  ZSTD_outBuffer Target() { return {buffer_.data(), buffer_.size(), used_}; }
  void SetUsed(size_t used) { used_ = used; }
  bool full() const { return used_ == buffer_.size(); }
  size_t used() const { return used_; }

  void Grow(uint64_t max_size) {
    ByteBuffer larger(std::min<uint64_t>(max_size, 2 * buffer_.size()));
    std::memcpy(larger.data(), buffer_.data(), used_);
    buffer_ = std::move(larger);
  }

  ByteView Take() && { return std::move(buffer_).Release(used_); }

 private:
  ByteBuffer buffer_;
  size_t used_ = 0;
};

Status CheckEnd(const ZSTD_inBuffer& input) {
  if (input.pos == input.size) return {};
  return Corrupt(StrCat("zstd frame ends after ", input.pos, " of ", input.size,
                        " bytes"));
}

Status TooLarge(uint64_t max_num_bytes) {
  return Corrupt(StrCat("zstd frame holds more than the limit of ",
                        max_num_bytes, " bytes"));
}

/// Decompresses the frame of `input` into `output`.
Status Decompress(ZSTD_DCtx& context, ZSTD_inBuffer input, Output& output,
                  uint64_t max_num_bytes) {
  while (true) {
    ZSTD_outBuffer target = output.Target();
    const size_t code = ZSTD_decompressStream(&context, &target, &input);
    output.SetUsed(target.pos);
    RELAYOUT_RETURN_IF_ERROR(CheckCode(code, "zstd frame is damaged"));
    if (output.used() > max_num_bytes) return TooLarge(max_num_bytes);
    if (code == 0) return CheckEnd(input);
    if (output.full()) {
      output.Grow(max_num_bytes + 1);
    } else if (input.pos == input.size) {
      return Corrupt(
          StrCat("zstd frame is cut short after ", input.size, " bytes"));
    }
  }
}

}  // namespace

Result<std::string> ZstdCompress(std::string_view bytes, int32_t level) {
  if (level < kMinZstdLevel || level > kMaxZstdLevel) {
    return InvalidArgument(StrCat("zstd level ", level, " is outside [",
                                  kMinZstdLevel, ", ", kMaxZstdLevel, "]"));
  }
  std::string frame(ZSTD_compressBound(bytes.size()), '\0');
  const size_t size = ZSTD_compress(frame.data(), frame.size(), bytes.data(),
                                    bytes.size(), level);
  if (ZSTD_isError(size) != 0) {
    return SystemError(StrCat("zstd: ", ZSTD_getErrorName(size)));
  }
  frame.resize(size);
  return frame;
}

Result<ByteView> ZstdDecompress(std::string_view frame,
                                uint64_t max_num_bytes) {
  // Making a context takes longer than decompressing a small frame.
  static thread_local const DecompressContext context(ZSTD_createDCtx());
  if (context == nullptr) return SystemError("zstd: out of memory");
  ZSTD_DCtx_reset(context.get(), ZSTD_reset_session_only);
  Output output(FirstBufferSize(frame, max_num_bytes));
  RELAYOUT_RETURN_IF_ERROR(Decompress(*context, {frame.data(), frame.size(), 0},
                                      output, max_num_bytes));
  return std::move(output).Take();
}

}  // namespace relayout
