#include "cc/io/file_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <utility>

#include "cc/base/byte_buffer.h"
#include "cc/base/byte_view.h"
#include "cc/base/quote.h"
#include "cc/base/result.h"
#include "cc/base/str_cat.h"
#include "cc/io/file_descriptor.h"
#include "cc/io/os_error.h"

namespace relayout::io {
namespace {

/// The system reads at most 2 GiB less a page in one call.
constexpr uint64_t kMaxReadBytes = 1 << 30;

std::unexpected<Error> OpenError(const std::string& path, int error_number,
                                 ErrorKind if_missing) {
  const bool missing = error_number == ENOENT || error_number == ENOTDIR;
  return std::unexpected(Error{
      missing ? if_missing : ErrorKind::kSystem,
      StrCat("can't open ", Quote(path), ": ", OsErrorText(error_number))});
}

/// Returns the number of bytes read; 0 at the end of the file.
Result<size_t> ReadSome(int descriptor, char* data, uint64_t length,
                        uint64_t offset) {
  while (true) {
    const ssize_t count =
        ::pread(descriptor, data, std::min(length, kMaxReadBytes),
                static_cast<off_t>(offset));
    if (count >= 0) return static_cast<size_t>(count);
    if (errno != EINTR) {
      return SystemError(StrCat("can't read: ", OsErrorText(errno)));
    }
  }
}

}  // namespace

Result<FileReader> FileReader::Open(const std::string& path,
                                    ErrorKind if_missing) {
  // Without O_NONBLOCK, a pipe in place of the file would block us for ever.
  FileDescriptor descriptor(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (descriptor.value() < 0) return OpenError(path, errno, if_missing);
  struct stat status;
  if (::fstat(descriptor.value(), &status) != 0) {
    return OpenError(path, errno, if_missing);
  }
  if (!S_ISREG(status.st_mode)) {
    return Corrupt(StrCat(Quote(path), " is not a regular file"));
  }
  return FileReader(std::move(descriptor),
                    static_cast<uint64_t>(status.st_size));
}

Result<ByteView> FileReader::Read(uint64_t offset, uint64_t length) const {
  // Before memory is taken for what a checkpoint claims.
  RELAYOUT_RETURN_IF_ERROR(CheckRange(offset, length));
  ByteBuffer buffer(length);
  RELAYOUT_RETURN_IF_ERROR(ReadInto(offset, {buffer.data(), length}));
  return std::move(buffer).Release(length);
}

Status FileReader::ReadInto(uint64_t offset, std::span<char> output) const {
  RELAYOUT_RETURN_IF_ERROR(CheckRange(offset, output.size()));
  uint64_t done = 0;
  while (done < output.size()) {
    RELAYOUT_ASSIGN_OR_RETURN(
        const size_t count, ReadSome(descriptor_.value(), output.data() + done,
                                     output.size() - done, offset + done));
    if (count == 0) {
      return Corrupt(StrCat("the file shrank to ", offset + done, " of ", size_,
                            " bytes"));
    }
    done += count;
  }
  return {};
}

Status FileReader::CheckRange(uint64_t offset, uint64_t length) const {
  if (offset <= size_ && length <= size_ - offset) return {};
  return Corrupt(StrCat("range [", offset, ", +", length,
                        ") leaves the file of ", size_, " bytes"));
}

}  // namespace relayout::io
