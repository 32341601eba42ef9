#ifndef RELAYOUT_CC_IO_FILE_WRITER_H_
#define RELAYOUT_CC_IO_FILE_WRITER_H_

/// \file
/// A new file, written from start to end.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "cc/base/result.h"
#include "cc/io/file_descriptor.h"

namespace relayout::io {

/// Errors of all functions: `kSystem` with the path and the system's reason.
/// What was written of an unfinished file stays.
class FileWriter {
 public:
  /// Creates `path`, which must not exist, not even as a link.
  static Result<FileWriter> Create(const std::string& path);

  Status Append(std::string_view bytes);

  /// Number of bytes appended: the offset of the next.
  uint64_t num_bytes() const { return num_bytes_; }

  /// Starts, without waiting, to write what was appended since the last call to
  /// the disk, which makes a later `Finish` short.
  void StartWriteback();

  /// Makes the content durable and closes the file; nothing may follow.
  Status Finish();

  /// Closes the file; nothing may follow.  Somebody else makes it durable.
  Status Close();

 private:
  FileWriter(std::string path, FileDescriptor descriptor)
      : path_(std::move(path)), descriptor_(std::move(descriptor)) {}

  std::string path_;
  FileDescriptor descriptor_;
  uint64_t num_bytes_ = 0;
  uint64_t num_writeback_bytes_ = 0;
};

/// Makes the names in a directory durable.
Status SyncDirectory(const std::string& path);

}  // namespace relayout::io

#endif  // RELAYOUT_CC_IO_FILE_WRITER_H_
