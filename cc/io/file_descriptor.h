#ifndef RELAYOUT_CC_IO_FILE_DESCRIPTOR_H_
#define RELAYOUT_CC_IO_FILE_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace relayout::io {

/// Owns a file descriptor; -1 is none.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int value) : value_(value) {}
  FileDescriptor(FileDescriptor&& other) noexcept
      : value_(std::exchange(other.value_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~FileDescriptor() {
    if (value_ >= 0) ::close(value_);
  }

  int value() const { return value_; }

  /// Gives up the descriptor without closing it.
  int Release() { return std::exchange(value_, -1); }

 private:
  int value_ = -1;
};

}  // namespace relayout::io

#endif  // RELAYOUT_CC_IO_FILE_DESCRIPTOR_H_
