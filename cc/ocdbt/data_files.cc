#include "cc/ocdbt/data_files.h"

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "cc/base/result.h"
#include "cc/io/file_reader.h"
#include "cc/io/safe_path.h"

namespace relayout::ocdbt {
namespace {

constexpr size_t kMaxOpenFiles = 64;

}  // namespace

Result<std::shared_ptr<const io::FileReader>> DataFiles::Open(
    const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (const auto it = readers_.find(path); it != readers_.end()) {
    return it->second;
  }
  RELAYOUT_ASSIGN_OR_RETURN(const std::string real_path,
                            io::ResolveBelow(real_root_, path));
  RELAYOUT_ASSIGN_OR_RETURN(
      io::FileReader opened,
      io::FileReader::Open(real_path, ErrorKind::kCorrupt));
  auto reader = std::make_shared<const io::FileReader>(std::move(opened));
  if (readers_.size() < kMaxOpenFiles) readers_.emplace(path, reader);
  return reader;
}

}  // namespace relayout::ocdbt
