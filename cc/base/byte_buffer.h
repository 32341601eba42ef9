#ifndef RELAYOUT_CC_BASE_BYTE_BUFFER_H_
#define RELAYOUT_CC_BASE_BYTE_BUFFER_H_

/// \file
/// Memory for bytes that are about to be written; not zeroed first.

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

#include "cc/base/byte_view.h"

namespace relayout {

class ByteBuffer {
 public:
  ByteBuffer() = default;
  explicit ByteBuffer(size_t size)
      : data_(std::make_unique_for_overwrite<char[]>(size)), size_(size) {}

  char* data() { return data_.get(); }
  size_t size() const { return size_; }

  /// Returns the first `num_bytes` bytes as an immutable view that owns them.
  ByteView Release(size_t num_bytes) && {
    std::shared_ptr<const char[]> owner = std::move(data_);
    const std::string_view bytes(owner.get(), num_bytes);
    size_ = 0;
    return ByteView(bytes, std::move(owner));
  }

 private:
  std::unique_ptr<char[]> data_;
  size_t size_ = 0;
};

}  // namespace relayout

#endif  // RELAYOUT_CC_BASE_BYTE_BUFFER_H_
