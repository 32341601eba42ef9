#include "cc/rekey/flatten_shards.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "cc/base/byte_view.h"
#include "cc/base/parallel.h"
#include "cc/base/quote.h"
#include "cc/base/str_cat.h"
#include "cc/io/file_reader.h"
#include "cc/io/safe_path.h"
#include "cc/ocdbt/walk.h"
#include "cc/rekey/array_index.h"
#include "cc/rekey/key_arena.h"
#include "cc/rekey/sort_entries.h"
#include "cc/rekey/value_part.h"
#include "cc/zarr/chunk_grid.h"
#include "cc/zarr/shard_index.h"

namespace relayout::rekey {
namespace {

using ocdbt::Entry;
using ocdbt::Listing;
using ocdbt::Value;

/// Most shards that one thread takes at a time, and slices to aim for.
constexpr size_t kMaxSliceShards = 256;
constexpr size_t kNumSlices = 256;

/// One stored shard.
struct Shard {
  const ShardedArray* array = nullptr;
  const Entry* entry = nullptr;
};

/// The chunks of some shards.
struct Slice {
  std::vector<Entry> entries;
  KeyArena keys;  ///< holds the keys of `entries`
};

Status CheckGrids(const ShardedArray& array) {
  RELAYOUT_ASSIGN_OR_RETURN(
      const auto shard_grid,
      zarr::ChunkCounts(array.inner_grid, array.inner_grid_per_shard));
  if (shard_grid != array.shard_grid) {
    return InvalidArgument(
        "the grid of shards is not that of inner chunks divided by the inner "
        "chunks of a shard");
  }
  for (const uint64_t count : array.inner_grid) {
    if (count > UINT64_MAX - kMaxInnerChunks) {
      return InvalidArgument("the grid of inner chunks exceeds 64 bits");
    }
  }
  RELAYOUT_ASSIGN_OR_RETURN(const uint64_t num_chunks,
                            zarr::NumChunks(array.inner_grid_per_shard));
  if (num_chunks > kMaxInnerChunks) {
    return Unsupported(StrCat(num_chunks,
                              " inner chunks of a shard exceed the limit of ",
                              kMaxInnerChunks));
  }
  return {};
}

/// Appends the shards of `array`, an element of the request.
Status AddShards(const Listing& listing, const ArrayIndex& index,
                 const ShardedArray& array, std::vector<Shard>& shards) {
  RELAYOUT_RETURN_IF_ERROR(CheckGrids(array));
  const ArrayEntries* const found = index.Find(array.name);
  if (found == nullptr) {
    return InvalidArgument(StrCat("there is no such array in the database in ",
                                  Quote(listing.directory)));
  }
  const auto& metadata_key = listing.entries[found->metadata_entry].key;
  if (KeyBelow(array.name, metadata_key) != "zarr.json") {
    return InvalidArgument("an array of zarr v2 has no shards");
  }
  for (const auto& [min, max] : found->ranges) {
    for (size_t i = min; i < max; ++i) {
      const Entry& entry = listing.entries[i];
      if (IsMetadataKey(KeyBelow(array.name, entry.key))) continue;
      shards.push_back({&array, &entry});
    }
  }
  return {};
}

Result<std::vector<Shard>> FindShards(const Listing& listing,
                                      std::span<const ShardedArray> arrays) {
  RELAYOUT_ASSIGN_OR_RETURN(const ArrayIndex index, IndexArrays(listing));
  std::vector<Shard> shards;
  std::set<std::string_view> names;
  for (const ShardedArray& array : arrays) {
    const auto status = names.insert(array.name).second
                            ? AddShards(listing, index, array, shards)
                            : InvalidArgument("named twice");
    if (!status.has_value()) {
      return InContext(status.error(), StrCat("array ", Quote(array.name)));
    }
  }
  return shards;
}

/// Puts shards of one file side by side, so that it is opened once or twice.
void SortByPlace(std::vector<Shard>& shards) {
  const auto place = [](const Shard& shard) {
    const Value& value = shard.entry->value;
    return std::tuple(value.file, value.is_inline() ? 0 : value.offset,
                      shard.entry->key);
  };
  std::ranges::sort(shards, {}, place);
}

/// Reads parts of values, and keeps the last file open.
class PartReader {
 public:
  PartReader(const Listing& listing, const std::string& real_root)
      : listing_(listing), real_root_(real_root) {}

  /// Returns the part `range` of `value`, which must be within.
  Result<ByteView> Read(const Value& value, const ValueRange& range) {
    const Value part = PartOf(value, range);
    if (part.is_inline()) return ByteView(part.inline_bytes(), nullptr);
    RELAYOUT_RETURN_IF_ERROR(Open(part.file));
    auto bytes = reader_->Read(part.offset, part.length);
    if (bytes.has_value()) return bytes;
    return InContext(std::move(bytes).error(),
                     StrCat("data file ", Quote(listing_.files[part.file])));
  }

 private:
  Status Open(uint32_t file) {
    if (reader_.has_value() && file == file_) return {};
    RELAYOUT_ASSIGN_OR_RETURN(
        const std::string path,
        io::ResolveBelow(real_root_, listing_.files[file]));
    RELAYOUT_ASSIGN_OR_RETURN(reader_,
                              io::FileReader::Open(path, ErrorKind::kCorrupt));
    file_ = file;
    return {};
  }

  const Listing& listing_;
  const std::string& real_root_;
  uint32_t file_ = 0;
  std::optional<io::FileReader> reader_;
};

Result<zarr::ShardIndex> ReadIndex(const Shard& shard, PartReader& reader) {
  RELAYOUT_ASSIGN_OR_RETURN(const uint64_t num_chunks,
                            zarr::NumChunks(shard.array->inner_grid_per_shard));
  const zarr::ShardIndexFormat format = {num_chunks, shard.array->has_checksum,
                                         shard.array->index_is_at_end};
  RELAYOUT_ASSIGN_OR_RETURN(const uint64_t length,
                            zarr::ShardIndexLength(format));
  const Value& value = shard.entry->value;
  // A shard shorter than its index is left to the decoder to complain of.
  const uint64_t num_bytes = std::min(length, value.length);
  const uint64_t offset = format.is_at_end ? value.length - num_bytes : 0;
  RELAYOUT_ASSIGN_OR_RETURN(const ByteView bytes,
                            reader.Read(value, {offset, num_bytes}));
  return zarr::DecodeShardIndexBytes(bytes.bytes(), value.length, format);
}

/// Turns shards into the entries of their inner chunks.
class Flattener {
 public:
  Flattener(const Listing& listing, const std::string& real_root)
      : reader_(listing, real_root) {}

  Status Add(const Shard& shard) {
    auto status = AddChunks(shard);
    if (status.has_value()) return status;
    const ShardedArray& array = *shard.array;
    return InContext(std::move(status).error(),
                     StrCat("array ", Quote(array.name), ", shard ",
                            Quote(KeyBelow(array.name, shard.entry->key))));
  }

  size_t num_entries() const { return slice_.entries.size(); }

  Slice TakeResult() && { return std::move(slice_); }

 private:
  Status AddChunks(const Shard& shard) {
    const ShardedArray& array = *shard.array;
    std::vector<uint64_t> shard_index(array.shard_grid.size());
    RELAYOUT_RETURN_IF_ERROR(zarr::ParseChunkKey(
        KeyBelow(array.name, shard.entry->key), array.keys, shard_index));
    if (!zarr::IsInGrid(array.shard_grid, shard_index)) {
      return Corrupt("the shard lies outside the grid of its array");
    }
    RELAYOUT_ASSIGN_OR_RETURN(const zarr::ShardIndex index,
                              ReadIndex(shard, reader_));
    std::vector<uint64_t> within(shard_index.size());
    for (const auto& range : index) {
      if (range.has_value()) AddChunk(shard, shard_index, within, *range);
      zarr::NextChunk(array.inner_grid_per_shard, within);
    }
    return {};
  }

  /// Adds the chunk at `within` of a shard, unless it is beyond the array.
  void AddChunk(const Shard& shard, std::span<const uint64_t> shard_index,
                std::span<const uint64_t> within,
                const zarr::ShardRange& range) {
    const ShardedArray& array = *shard.array;
    chunk_index_.clear();
    for (size_t axis = 0; axis < within.size(); ++axis) {
      chunk_index_.push_back(
          shard_index[axis] * array.inner_grid_per_shard[axis] + within[axis]);
    }
    if (!zarr::IsInGrid(array.inner_grid, chunk_index_)) return;
    key_.assign(array.name);
    key_.push_back('/');
    zarr::AppendChunkKey(chunk_index_, array.keys, key_);
    slice_.entries.push_back(
        {slice_.keys.Copy(key_),
         PartOf(shard.entry->value, {range.offset, range.length})});
  }

  PartReader reader_;
  std::vector<uint64_t> chunk_index_;
  std::string key_;
  Slice slice_;
};

Status CheckNumKeys(uint64_t num_keys) {
  if (num_keys <= ocdbt::kMaxKeys) return {};
  return Unsupported(
      StrCat("more than ", ocdbt::kMaxKeys, " inner chunks, the limit"));
}

Result<std::vector<Slice>> FlattenAll(const Listing& listing,
                                      const std::string& real_root,
                                      std::span<const Shard> shards,
                                      int num_threads) {
  const size_t slice_shards =
      std::clamp<size_t>(shards.size() / kNumSlices, 1, kMaxSliceShards);
  const size_t num_slices = (shards.size() + slice_shards - 1) / slice_shards;
  std::vector<Slice> slices(num_slices);
  std::atomic<uint64_t> num_keys = 0;
  RELAYOUT_RETURN_IF_ERROR(
      ParallelFor(num_slices, num_threads, [&](size_t i) -> Status {
        Flattener flattener(listing, real_root);
        const size_t begin = i * slice_shards;
        for (const Shard& shard : shards.subspan(
                 begin, std::min(slice_shards, shards.size() - begin))) {
          const size_t num_before = flattener.num_entries();
          RELAYOUT_RETURN_IF_ERROR(flattener.Add(shard));
          RELAYOUT_RETURN_IF_ERROR(
              CheckNumKeys(num_keys += flattener.num_entries() - num_before));
        }
        slices[i] = std::move(flattener).TakeResult();
        return {};
      }));
  return slices;
}

Entry MetadataEntry(const ShardedArray& array, KeyArena& keys) {
  Entry entry;
  entry.key = keys.Copy(array.name + "/zarr.json");
  entry.value.length = array.metadata.size();
  entry.value.inline_data = array.metadata.data();
  return entry;
}

/// Moves the entries of `slices` and those of the metadata into `listing`.
void TakeEntries(std::vector<Slice> slices,
                 std::span<const ShardedArray> arrays, Listing& listing) {
  Slice metadata;
  for (const ShardedArray& array : arrays) {
    metadata.entries.push_back(MetadataEntry(array, metadata.keys));
  }
  slices.push_back(std::move(metadata));
  for (Slice& slice : slices) {
    std::ranges::copy(std::exchange(slice.entries, {}),
                      std::back_inserter(listing.entries));
    listing.owners.push_back(
        std::make_shared<const KeyArena>(std::move(slice.keys)));
  }
}

/// Returns a listing like `source`, without entries, that keeps it alive.
Listing ShareFiles(std::shared_ptr<const Listing> source) {
  Listing listing;
  listing.directory = source->directory;
  listing.config = source->config;
  listing.generation = source->generation;
  listing.files = source->files;
  listing.file_sizes = source->file_sizes;
  listing.owners.push_back(std::move(source));
  return listing;
}

}  // namespace

Result<Listing> FlattenShards(std::shared_ptr<const Listing> listing,
                              std::vector<ShardedArray> arrays,
                              int num_threads) {
  const auto owned =
      std::make_shared<const std::vector<ShardedArray>>(std::move(arrays));
  RELAYOUT_ASSIGN_OR_RETURN(auto shards, FindShards(*listing, *owned));
  SortByPlace(shards);
  RELAYOUT_ASSIGN_OR_RETURN(const std::string real_root,
                            io::RealDirectory(listing->directory));
  RELAYOUT_ASSIGN_OR_RETURN(
      auto slices, FlattenAll(*listing, real_root, shards, num_threads));
  Listing flat = ShareFiles(std::move(listing));
  flat.owners.push_back(owned);
  TakeEntries(std::move(slices), *owned, flat);
  RELAYOUT_RETURN_IF_ERROR(SortEntries(flat.entries, num_threads));
  return flat;
}

}  // namespace relayout::rekey
