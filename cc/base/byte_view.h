#ifndef RELAYOUT_CC_BASE_BYTE_VIEW_H_
#define RELAYOUT_CC_BASE_BYTE_VIEW_H_

/// \file
/// Immutable bytes together with the owner that keeps them alive.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace relayout {

/// Copies share the owner; nothing copies the bytes.
class ByteView {
 public:
  ByteView() = default;

  /// Views `bytes`, which live as long as `owner` does.
  ByteView(std::string_view bytes, std::shared_ptr<const void> owner)
      : bytes_(bytes), owner_(std::move(owner)) {}

  /// Owns the bytes of `bytes`.
  static ByteView Own(std::string bytes) {
    auto owner = std::make_shared<const std::string>(std::move(bytes));
    const std::string_view view = *owner;
    return ByteView(view, std::move(owner));
  }

  std::string_view bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  const std::shared_ptr<const void>& owner() const { return owner_; }

  /// Views `bytes`, a part of these bytes, with the same owner.
  ByteView Part(std::string_view bytes) const {
    return ByteView(bytes, owner_);
  }

 private:
  std::string_view bytes_;
  std::shared_ptr<const void> owner_;
};

}  // namespace relayout

#endif  // RELAYOUT_CC_BASE_BYTE_VIEW_H_
