#ifndef RELAYOUT_CC_IO_DIRECTORY_H_
#define RELAYOUT_CC_IO_DIRECTORY_H_

/// \file
/// What a directory holds, and what the system says of a file.

#include <cstdint>
#include <string>
#include <vector>

#include "cc/base/result.h"

namespace relayout::io {

enum class FileKind : uint8_t {
  kRegular,
  kDirectory,
  kLink,   ///< a symbolic link, wherever it leads
  kOther,  ///< a pipe, a socket or a device
};

struct DirectoryEntry {
  std::string name;
  FileKind kind = FileKind::kRegular;
};

/// Returns the entries of directory `path`, sorted by name; `.` and `..` are
/// left out.
///
/// Errors: `kSystem` when it can't be read, or is itself a link.
Result<std::vector<DirectoryEntry>> ReadDirectory(const std::string& path);

struct FileStatus {
  FileKind kind = FileKind::kRegular;
  uint64_t num_bytes = 0;
  uint64_t modified_ns = 0;  ///< since 1970, nanoseconds
};

/// Returns the status of what `path` leads to, through links.
///
/// Errors: `kCorrupt` when it leads nowhere; `kSystem`.
Result<FileStatus> StatFile(const std::string& path);

}  // namespace relayout::io

#endif  // RELAYOUT_CC_IO_DIRECTORY_H_
