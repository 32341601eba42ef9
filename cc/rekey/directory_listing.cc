#include "cc/rekey/directory_listing.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cc/base/parallel.h"
#include "cc/base/quote.h"
#include "cc/base/str_cat.h"
#include "cc/io/directory.h"
#include "cc/io/safe_path.h"
#include "cc/ocdbt/walk.h"

namespace relayout::rekey {
namespace {

using io::DirectoryEntry;
using io::FileKind;
using io::FileStatus;

/// What Orbax sets for a database of its own.
constexpr uint64_t kMaxInlineValueBytes = 1024;
constexpr uint64_t kMaxDecodedNodeBytes = 100'000'000;

/// Files whose status one thread asks for at a time.
constexpr size_t kFilesPerSlice = 256;

/// A directory that is still to be read; its path is below the root, which
/// itself is the empty path.
struct Pending {
  std::string path;
  bool is_in_array = false;
};

/// What was found in one directory, or in all.
struct Found {
  std::vector<Pending> directories;
  std::vector<std::string> files;  ///< paths below the root
};

bool IsArrayMetadata(const DirectoryEntry& entry) {
  return entry.name == ".zarray" || entry.name == "zarr.json";
}

/// TensorStore leaves these behind when it is killed, and passes over them.
bool IsLockFile(std::string_view name) { return name.ends_with(".__lock"); }

std::string Below(const std::string& directory, const std::string& name) {
  return directory.empty() ? name : StrCat(directory, "/", name);
}

/// Reads one directory.
class Reader {
 public:
  Reader(const std::string& root, const Pending& directory)
      : root_(root), directory_(directory) {}

  Result<Found> Read() && {
    RELAYOUT_ASSIGN_OR_RETURN(const auto entries,
                              io::ReadDirectory(Below(root_, directory_.path)));
    is_in_array_ = directory_.is_in_array ||
                   (!directory_.path.empty() &&
                    std::ranges::any_of(entries, IsArrayMetadata));
    for (const DirectoryEntry& entry : entries) {
      RELAYOUT_RETURN_IF_ERROR(
          Add(Below(directory_.path, entry.name), entry.kind));
    }
    return std::move(found_);
  }

 private:
  Status Add(std::string path, FileKind kind) {
    if (kind == FileKind::kLink) return AddLink(std::move(path));
    if (kind == FileKind::kDirectory) {
      found_.directories.push_back({std::move(path), is_in_array_});
    } else if (is_in_array_) {
      return AddFile(std::move(path), kind);
    }
    return {};
  }

  Status AddFile(std::string path, FileKind kind) {
    if (kind != FileKind::kRegular) {
      return Corrupt(StrCat(Quote(path), " is not a regular file"));
    }
    if (!IsLockFile(path)) found_.files.push_back(std::move(path));
    return {};
  }

  Status AddLink(std::string path) {
    const auto status = io::StatFile(Below(root_, path));
    const bool is_directory =
        status.has_value() && status->kind == FileKind::kDirectory;
    if (!is_in_array_ && !is_directory) return {};
    RELAYOUT_RETURN_IF_ERROR(io::ResolveBelow(root_, path));
    if (is_directory) {
      return Unsupported(
          StrCat(Quote(path),
                 " is a link to another directory of the same item; put "
                 "a copy of that directory in its place"));
    }
    RELAYOUT_RETURN_IF_ERROR(status);
    return AddFile(std::move(path), status->kind);
  }

  const std::string& root_;
  const Pending& directory_;
  bool is_in_array_ = false;
  Found found_;
};

/// Returns the files of all arrays, in no particular order.
Result<std::vector<std::string>> FindFiles(const std::string& root,
                                           int num_threads) {
  std::vector<std::string> files;
  std::vector<Pending> level = {Pending()};
  while (!level.empty()) {
    std::vector<Found> found(level.size());
    RELAYOUT_RETURN_IF_ERROR(
        ParallelFor(level.size(), num_threads, [&](size_t i) -> Status {
          RELAYOUT_ASSIGN_OR_RETURN(found[i], Reader(root, level[i]).Read());
          return {};
        }));
    level.clear();
    for (Found& part : found) {
      std::ranges::move(part.directories, std::back_inserter(level));
      std::ranges::move(part.files, std::back_inserter(files));
    }
    if (files.size() > ocdbt::kMaxKeys) {
      return Unsupported(
          StrCat(files.size(), " files exceed the limit of ", ocdbt::kMaxKeys));
    }
  }
  return files;
}

Result<std::vector<FileStatus>> StatAll(const std::string& root,
                                        std::span<const std::string> files,
                                        int num_threads) {
  std::vector<FileStatus> statuses(files.size());
  const size_t num_slices =
      (files.size() + kFilesPerSlice - 1) / kFilesPerSlice;
  RELAYOUT_RETURN_IF_ERROR(
      ParallelFor(num_slices, num_threads, [&](size_t slice) -> Status {
        const size_t begin = slice * kFilesPerSlice;
        const size_t end = std::min(begin + kFilesPerSlice, files.size());
        for (size_t i = begin; i < end; ++i) {
          RELAYOUT_ASSIGN_OR_RETURN(statuses[i],
                                    io::StatFile(Below(root, files[i])));
        }
        return {};
      }));
  return statuses;
}

/// Two FNV-1a hashes that start differently, for telling checkpoints apart.
class Fingerprint {
 public:
  void Add(std::string_view bytes) {
    Add(bytes.size());
    for (const char byte : bytes) AddByte(static_cast<uint8_t>(byte));
  }

  void Add(uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8) {
      AddByte(static_cast<uint8_t>(number >> shift));
    }
  }

  ocdbt::Uuid Finish() const {
    ocdbt::Uuid uuid;
    for (size_t i = 0; i < uuid.size(); ++i) {
      uuid[i] = static_cast<uint8_t>(lanes_[i / 8] >> (8 * (i % 8)));
    }
    return uuid;
  }

 private:
  void AddByte(uint8_t byte) {
    constexpr uint64_t kPrime = 0x100000001b3;
    for (uint64_t& lane : lanes_) lane = (lane ^ byte) * kPrime;
  }

  uint64_t lanes_[2] = {0xcbf29ce484222325, 0x9e3779b97f4a7c15};
};

ocdbt::Uuid MakeUuid(std::span<const std::string> files,
                     std::span<const FileStatus> statuses) {
  Fingerprint fingerprint;
  for (size_t i = 0; i < files.size(); ++i) {
    fingerprint.Add(files[i]);
    fingerprint.Add(statuses[i].num_bytes);
    fingerprint.Add(statuses[i].modified_ns);
  }
  return fingerprint.Finish();
}

/// Fills `listing` with an entry for each file.
void AddEntries(std::vector<std::string> files,
                std::span<const FileStatus> statuses, ocdbt::Listing& listing) {
  const auto owner =
      std::make_shared<const std::vector<std::string>>(std::move(files));
  listing.files = *owner;
  listing.file_sizes.reserve(owner->size());
  listing.entries.reserve(owner->size());
  for (uint32_t i = 0; i < owner->size(); ++i) {
    listing.file_sizes.push_back(statuses[i].num_bytes);
    ocdbt::Entry& entry = listing.entries.emplace_back();
    entry.key = (*owner)[i];
    entry.value.file = i;
    entry.value.length = statuses[i].num_bytes;
    entry.value.offset = 0;
  }
  listing.owners.push_back(owner);
}

}  // namespace

Result<ocdbt::Listing> ListDirectory(const std::string& directory,
                                     int num_threads) {
  RELAYOUT_ASSIGN_OR_RETURN(const std::string root,
                            io::RealDirectory(directory));
  RELAYOUT_ASSIGN_OR_RETURN(auto files, FindFiles(root, num_threads));
  std::ranges::sort(files);
  RELAYOUT_ASSIGN_OR_RETURN(const auto statuses,
                            StatAll(root, files, num_threads));
  ocdbt::Listing listing;
  listing.directory = directory;
  listing.generation = 1;
  listing.config.uuid = MakeUuid(files, statuses);
  listing.config.max_inline_value_bytes = kMaxInlineValueBytes;
  listing.config.max_decoded_node_bytes = kMaxDecodedNodeBytes;
  AddEntries(std::move(files), statuses, listing);
  return listing;
}

}  // namespace relayout::rekey
