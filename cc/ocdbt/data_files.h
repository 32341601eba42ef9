#ifndef RELAYOUT_CC_OCDBT_DATA_FILES_H_
#define RELAYOUT_CC_OCDBT_DATA_FILES_H_

/// \file
/// The files below the directory of a database.

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "cc/base/byte_view.h"
#include "cc/base/result.h"
#include "cc/io/file_reader.h"

namespace relayout::ocdbt {

/// Opens files by paths that a database gives.  Threads may use it at once.
///
/// Errors of reading: `kCorrupt` when a path is not safe (see
/// `io::ResolveBelow`), names no regular file, or a range leaves the file;
/// `kSystem` when the system refuses.
class DataFiles {
 public:
  /// `real_root` is a result of `io::RealDirectory`.
  explicit DataFiles(std::string real_root)
      : real_root_(std::move(real_root)) {}

  const std::string& real_root() const { return real_root_; }

  Result<std::shared_ptr<const io::FileReader>> Open(const std::string& path);

 private:
  const std::string real_root_;
  std::mutex mutex_;
  /// Files that are kept open; not all, as processes may open only so many.
  std::unordered_map<std::string, std::shared_ptr<const io::FileReader>>
      readers_;
};

}  // namespace relayout::ocdbt

#endif  // RELAYOUT_CC_OCDBT_DATA_FILES_H_
