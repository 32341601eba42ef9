#ifndef RELAYOUT_CC_IO_SAFE_PATH_H_
#define RELAYOUT_CC_IO_SAFE_PATH_H_

/// \file
/// Paths that come from a checkpoint, and so may be hostile.

#include <string>
#include <string_view>

#include "cc/base/result.h"

namespace relayout::io {

/// Checks that `path` names something below the directory that it is relative
/// to, as far as the spelling tells.
///
/// Errors: `kCorrupt` when it is empty or absolute, contains a zero byte, or
/// has an empty, `.` or `..` component.
Status CheckRelativePath(std::string_view path);

/// Returns the path of directory `path` without symbolic links.
///
/// Errors: `kSystem` when it doesn't exist or can't be read.
Result<std::string> RealDirectory(const std::string& path);

/// Returns the path, without symbolic links, of the existing file `path` below
/// `real_root`, a result of `RealDirectory`.
///
/// Errors: those of `CheckRelativePath`, and `kCorrupt` when there is no such
/// file or links lead out of the root; `kSystem` when the system refuses.
Result<std::string> ResolveBelow(const std::string& real_root,
                                 std::string_view path);

}  // namespace relayout::io

#endif  // RELAYOUT_CC_IO_SAFE_PATH_H_
