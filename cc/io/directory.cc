#include "cc/io/directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cc/base/quote.h"
#include "cc/base/result.h"
#include "cc/base/str_cat.h"
#include "cc/io/file_descriptor.h"
#include "cc/io/os_error.h"

namespace relayout::io {
namespace {

struct CloseDirectory {
  void operator()(DIR* stream) const { ::closedir(stream); }
};
using DirectoryStream = std::unique_ptr<DIR, CloseDirectory>;

std::unexpected<Error> ListError(const std::string& path, int error_number) {
  return SystemError(
      StrCat("can't list ", Quote(path), ": ", OsErrorText(error_number)));
}

Result<DirectoryStream> OpenDirectory(const std::string& path) {
  FileDescriptor descriptor(
      ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (descriptor.value() < 0) return ListError(path, errno);
  DirectoryStream stream(::fdopendir(descriptor.value()));
  if (stream == nullptr) return ListError(path, errno);
  descriptor.Release();
  return stream;
}

FileKind KindOfMode(mode_t mode) {
  if (S_ISREG(mode)) return FileKind::kRegular;
  if (S_ISDIR(mode)) return FileKind::kDirectory;
  return S_ISLNK(mode) ? FileKind::kLink : FileKind::kOther;
}

/// Returns the kind of `entry`; not every file system tells it by the way.
Result<FileKind> KindOf(DIR& stream, const dirent& entry) {
  switch (entry.d_type) {
    case DT_REG:
      return FileKind::kRegular;
    case DT_DIR:
      return FileKind::kDirectory;
    case DT_LNK:
      return FileKind::kLink;
    case DT_UNKNOWN:
      break;
    default:
      return FileKind::kOther;
  }
  struct stat status;
  if (::fstatat(::dirfd(&stream), entry.d_name, &status, AT_SYMLINK_NOFOLLOW) !=
      0) {
    return ListError(entry.d_name, errno);
  }
  return KindOfMode(status.st_mode);
}

}  // namespace

Result<std::vector<DirectoryEntry>> ReadDirectory(const std::string& path) {
  RELAYOUT_ASSIGN_OR_RETURN(const DirectoryStream stream, OpenDirectory(path));
  std::vector<DirectoryEntry> entries;
  while (true) {
    errno = 0;
    const dirent* const entry = ::readdir(stream.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    RELAYOUT_ASSIGN_OR_RETURN(const FileKind kind, KindOf(*stream, *entry));
    entries.push_back({std::string(name), kind});
  }
  if (errno != 0) return ListError(path, errno);
  std::ranges::sort(entries, {}, &DirectoryEntry::name);
  return entries;
}

Result<FileStatus> StatFile(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) {
    const int error_number = errno;
    const bool leads_nowhere = error_number == ENOENT ||
                               error_number == ENOTDIR || error_number == ELOOP;
    return std::unexpected(Error{
        leads_nowhere ? ErrorKind::kCorrupt : ErrorKind::kSystem,
        StrCat("can't find ", Quote(path), ": ", OsErrorText(error_number))});
  }
  constexpr uint64_t kNanoseconds = 1'000'000'000;
  return FileStatus{
      .kind = KindOfMode(status.st_mode),
      .num_bytes = static_cast<uint64_t>(status.st_size),
      .modified_ns =
          static_cast<uint64_t>(status.st_mtim.tv_sec) * kNanoseconds +
          static_cast<uint64_t>(status.st_mtim.tv_nsec)};
}

}  // namespace relayout::io
