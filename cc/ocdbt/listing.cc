#include "cc/ocdbt/listing.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cc/base/byte_view.h"
#include "cc/base/parallel.h"
#include "cc/base/quote.h"
#include "cc/base/result.h"
#include "cc/base/str_cat.h"
#include "cc/io/safe_path.h"
#include "cc/ocdbt/btree_node.h"
#include "cc/ocdbt/data_files.h"
#include "cc/ocdbt/database.h"
#include "cc/ocdbt/entry.h"
#include "cc/ocdbt/manifest.h"
#include "cc/ocdbt/version_tree.h"
#include "cc/ocdbt/walk.h"

namespace relayout::ocdbt {
namespace {

constexpr uint32_t kUnknown = UINT32_MAX;

/// Places in `Listing::files` of the files of a leaf, or `kUnknown` where the
/// leaf doesn't use one.
using FileMap = std::vector<uint32_t>;

/// Collects the data files that leaves refer to, each once.
class FileCollector {
 public:
  FileCollector(DataFiles& files, Listing& listing)
      : files_(files), listing_(listing) {}

  Result<FileMap> Collect(const BtreeNode& leaf) {
    FileMap map(leaf.files.size(), kUnknown);
    for (const Entry& entry : leaf.entries) {
      if (entry.value.is_inline()) continue;
      uint32_t& place = map[entry.value.file];
      if (place != kUnknown) continue;
      auto found = Place(leaf.files[entry.value.file].path());
      if (!found.has_value()) {
        return InContext(std::move(found).error(),
                         StrCat("key ", Quote(entry.key)));
      }
      place = *found;
    }
    return map;
  }

 private:
  Result<uint32_t> Place(const std::string& path) {
    const auto next = static_cast<uint32_t>(listing_.files.size());
    const auto [it, is_new] = places_.try_emplace(path, next);
    if (!is_new) return it->second;
    auto reader = files_.Open(path);
    if (!reader.has_value()) {
      return InContext(std::move(reader).error(),
                       StrCat("data file ", Quote(path)));
    }
    listing_.files.push_back(path);
    listing_.file_sizes.push_back((*reader)->size());
    return next;
  }

  DataFiles& files_;
  Listing& listing_;
  std::unordered_map<std::string, uint32_t> places_;
};

Result<std::vector<FileMap>> CollectFiles(DataFiles& files,
                                          const std::vector<BtreeNode>& leaves,
                                          Listing& listing) {
  FileCollector collector(files, listing);
  std::vector<FileMap> maps(leaves.size());
  for (size_t i = 0; i < leaves.size(); ++i) {
    RELAYOUT_ASSIGN_OR_RETURN(maps[i], collector.Collect(leaves[i]));
  }
  return maps;
}

Status CheckRange(const Entry& entry, const Listing& listing) {
  const Value& value = entry.value;
  const uint64_t size = listing.file_sizes[value.file];
  if (value.offset <= size && value.length <= size - value.offset) return {};
  return Corrupt(StrCat("key ", Quote(entry.key), ": range [", value.offset,
                        ", +", value.length, ") leaves data file ",
                        Quote(listing.files[value.file]), " of ", size,
                        " bytes"));
}

/// Makes the values of a leaf refer to the files of the listing.
Status Renumber(const FileMap& map, const Listing& listing, BtreeNode& leaf) {
  for (Entry& entry : leaf.entries) {
    if (entry.value.is_inline()) continue;
    entry.value.file = map[entry.value.file];
    RELAYOUT_RETURN_IF_ERROR(CheckRange(entry, listing));
  }
  return {};
}

/// Moves the entries of all leaves into the listing, in order.
Status TakeEntries(std::vector<BtreeNode> leaves, int num_threads,
                   Listing& listing) {
  for (BtreeNode& leaf : leaves) {
    listing.owners.push_back(std::move(leaf.owner));
  }
  if (leaves.size() == 1) {
    listing.entries = std::move(leaves.front().entries);
    return {};
  }
  std::vector<size_t> begins(leaves.size() + 1);
  for (size_t i = 0; i < leaves.size(); ++i) {
    begins[i + 1] = begins[i] + leaves[i].entries.size();
  }
  listing.entries.resize(begins.back());
  return ParallelFor(leaves.size(), num_threads, [&](size_t i) -> Status {
    const auto entries = std::exchange(leaves[i].entries, {});
    std::ranges::copy(
        entries, listing.entries.begin() + static_cast<ptrdiff_t>(begins[i]));
    return {};
  });
}

Status ListVersion(DataFiles& files, const Manifest& manifest, int num_threads,
                   Listing& listing) {
  RELAYOUT_ASSIGN_OR_RETURN(
      std::vector<BtreeNode> leaves,
      ReadLeaves(files, manifest.versions.back(), manifest.files, num_threads));
  RELAYOUT_ASSIGN_OR_RETURN(const auto maps,
                            CollectFiles(files, leaves, listing));
  RELAYOUT_RETURN_IF_ERROR(ParallelFor(
      leaves.size(), num_threads,
      [&](size_t i) { return Renumber(maps[i], listing, leaves[i]); }));
  return TakeEntries(std::move(leaves), num_threads, listing);
}

Result<ByteView> ReadRange(const std::string& directory,
                           const std::string& path, const Value& value) {
  RELAYOUT_ASSIGN_OR_RETURN(std::string real_root,
                            io::RealDirectory(directory));
  DataFiles files(std::move(real_root));
  RELAYOUT_ASSIGN_OR_RETURN(const auto reader, files.Open(path));
  return reader->Read(value.offset, value.length);
}

}  // namespace

Result<Listing> List(const std::string& directory, int num_threads) {
  RELAYOUT_ASSIGN_OR_RETURN(std::string real_root,
                            io::RealDirectory(directory));
  DataFiles files(std::move(real_root));
  RELAYOUT_ASSIGN_OR_RETURN(const Manifest manifest, ReadNewestManifest(files));
  Listing listing;
  listing.directory = directory;
  listing.config = manifest.config;
  if (manifest.versions.empty()) return listing;
  listing.generation = manifest.versions.back().generation;
  RELAYOUT_RETURN_IF_ERROR(ListVersion(files, manifest, num_threads, listing));
  return listing;
}

Result<std::string> ReadValue(const Listing& listing, const Value& value) {
  if (value.is_inline()) return std::string(value.inline_bytes());
  const std::string& path = listing.files[value.file];
  auto bytes = ReadRange(listing.directory, path, value);
  if (bytes.has_value()) return std::string(bytes->bytes());
  return InContext(std::move(bytes).error(), StrCat("data file ", Quote(path)));
}

}  // namespace relayout::ocdbt
