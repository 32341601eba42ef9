#include "cc/io/safe_path.h"

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <expected>
#include <memory>
#include <string>
#include <string_view>

#include "cc/base/quote.h"
#include "cc/base/result.h"
#include "cc/base/str_cat.h"
#include "cc/io/os_error.h"

namespace relayout::io {
namespace {

struct FreeChars {
  void operator()(char* chars) const { std::free(chars); }
};

/// Returns the real path, or nothing with `errno` set.
std::unique_ptr<char, FreeChars> RealPath(const std::string& path) {
  return std::unique_ptr<char, FreeChars>(::realpath(path.c_str(), nullptr));
}

bool IsBelow(std::string_view path, std::string_view root) {
  if (root == "/") return path.size() > 1;
  return path.size() > root.size() + 1 && path.starts_with(root) &&
         path[root.size()] == '/';
}

Status CheckComponents(std::string_view path) {
  std::string_view rest = path;
  while (true) {
    const size_t slash = rest.find('/');
    const std::string_view component = rest.substr(0, slash);
    if (component.empty() || component == "." || component == "..") {
      return Corrupt(
          StrCat("path ", Quote(path), " has a component ", Quote(component)));
    }
    if (slash == std::string_view::npos) return {};
    rest.remove_prefix(slash + 1);
  }
}

}  // namespace

Status CheckRelativePath(std::string_view path) {
  if (path.empty()) return Corrupt("path is empty");
  if (path.front() == '/') {
    return Corrupt(StrCat("path ", Quote(path), " is absolute"));
  }
  if (path.find('\0') != std::string_view::npos) {
    return Corrupt(StrCat("path ", Quote(path), " contains a zero byte"));
  }
  return CheckComponents(path);
}

Result<std::string> RealDirectory(const std::string& path) {
  const auto real = RealPath(path);
  if (real == nullptr) {
    return SystemError(
        StrCat("can't find ", Quote(path), ": ", OsErrorText(errno)));
  }
  return std::string(real.get());
}

Result<std::string> ResolveBelow(const std::string& real_root,
                                 std::string_view path) {
  RELAYOUT_RETURN_IF_ERROR(CheckRelativePath(path));
  const auto real = RealPath(StrCat(real_root, "/", path));
  if (real == nullptr) {
    const int error_number = errno;
    const auto kind = error_number == EACCES || error_number == EIO
                          ? ErrorKind::kSystem
                          : ErrorKind::kCorrupt;
    return std::unexpected(Error{kind, StrCat("can't find ", Quote(path), ": ",
                                              OsErrorText(error_number))});
  }
  if (!IsBelow(real.get(), real_root)) {
    return Corrupt(
        StrCat("path ", Quote(path), " leads out of its directory by a link"));
  }
  return std::string(real.get());
}

}  // namespace relayout::io
