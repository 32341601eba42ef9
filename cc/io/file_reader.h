#ifndef RELAYOUT_CC_IO_FILE_READER_H_
#define RELAYOUT_CC_IO_FILE_READER_H_

/// \file
/// Ranges of a regular file.
///
/// Bytes are read into buffers of our own rather than mapped: what is read
/// here is small, and a mapped file that someone truncates kills the process.

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "cc/base/byte_view.h"
#include "cc/base/result.h"
#include "cc/io/file_descriptor.h"

namespace relayout::io {

class FileReader {
 public:
  /// Opens `path`.
  ///
  /// Errors: of kind `if_missing` when there is no such file; `kCorrupt` when
  /// it is no regular file; `kSystem` with the system's reason otherwise.
  static Result<FileReader> Open(const std::string& path, ErrorKind if_missing);

  /// Returns the size that the file had when it was opened, in bytes.
  uint64_t size() const { return size_; }

  /// Returns `length` bytes from `offset`.  Threads may call it at once.
  ///
  /// Errors: `kCorrupt` when the range leaves the file.
  Result<ByteView> Read(uint64_t offset, uint64_t length) const;

  /// Fills `output` with the bytes from `offset` on.  Threads may call it at
  /// once.
  ///
  /// Errors: `kCorrupt` when the range leaves the file.
  Status ReadInto(uint64_t offset, std::span<char> output) const;

 private:
  Status CheckRange(uint64_t offset, uint64_t length) const;

  FileReader(FileDescriptor descriptor, uint64_t size)
      : descriptor_(std::move(descriptor)), size_(size) {}

  FileDescriptor descriptor_;
  uint64_t size_;
};

}  // namespace relayout::io

#endif  // RELAYOUT_CC_IO_FILE_READER_H_
