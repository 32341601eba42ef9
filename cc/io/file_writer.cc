#include "cc/io/file_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include "cc/base/quote.h"
#include "cc/base/result.h"
#include "cc/base/str_cat.h"
#include "cc/io/file_descriptor.h"
#include "cc/io/os_error.h"

namespace relayout::io {
namespace {

constexpr size_t kMaxWriteBytes = 1 << 30;

std::unexpected<Error> Failure(std::string_view what, const std::string& path,
                               int error_number) {
  return SystemError(StrCat("can't ", what, " ", Quote(path), ": ",
                            OsErrorText(error_number)));
}

Status Sync(int descriptor, const std::string& path) {
  if (::fsync(descriptor) == 0) return {};
  return Failure("sync", path, errno);
}

}  // namespace

Result<FileWriter> FileWriter::Create(const std::string& path) {
  FileDescriptor descriptor(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (descriptor.value() < 0) return Failure("create", path, errno);
  return FileWriter(path, std::move(descriptor));
}

Status FileWriter::Append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_.value(), bytes.data(),
                                  std::min(bytes.size(), kMaxWriteBytes));
    if (count < 0) {
      if (errno == EINTR) continue;
      return Failure("write", path_, errno);
    }
    bytes.remove_prefix(static_cast<size_t>(count));
    num_bytes_ += static_cast<uint64_t>(count);
  }
  return {};
}

void FileWriter::StartWriteback() {
  // Where it is not possible, the sync at the end does it all.
  ::sync_file_range(descriptor_.value(),
                    static_cast<off_t>(num_writeback_bytes_),
                    static_cast<off_t>(num_bytes_ - num_writeback_bytes_),
                    SYNC_FILE_RANGE_WRITE);
  num_writeback_bytes_ = num_bytes_;
}

Status FileWriter::Finish() {
  RELAYOUT_RETURN_IF_ERROR(Sync(descriptor_.value(), path_));
  return Close();
}

Status FileWriter::Close() {
  if (::close(descriptor_.Release()) != 0) {
    return Failure("close", path_, errno);
  }
  return {};
}

Status SyncDirectory(const std::string& path) {
  const FileDescriptor descriptor(
      ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor.value() < 0) return Failure("open", path, errno);
  return Sync(descriptor.value(), path);
}

}  // namespace relayout::io
