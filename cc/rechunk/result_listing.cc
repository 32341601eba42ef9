#include "cc/rechunk/result_listing.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cc/base/quote.h"
#include "cc/base/result.h"
#include "cc/base/str_cat.h"
#include "cc/ocdbt/listing.h"
#include "cc/rechunk/checked_task.h"
#include "cc/rechunk/ordered_writer.h"
#include "cc/rechunk/rewrite_plan.h"
#include "cc/rechunk/task.h"

namespace relayout::rechunk {
namespace {

/// What the entries of a listing view.
struct Owner {
  std::vector<WrittenChunk> chunks;
  std::vector<std::string> metadata_keys;
  std::vector<std::string> metadata;
};

void CopyMetadata(const RewritePlan& plan, Owner& owner) {
  for (const PlannedTask& task : plan.tasks) {
    for (const TargetArray& target : task.task.task.targets) {
      owner.metadata_keys.push_back(
          StrCat(target.array, "/", target.metadata_key));
      owner.metadata.push_back(target.metadata);
    }
  }
}

void AddEntries(const Owner& owner, std::vector<ocdbt::Entry>& entries) {
  entries.reserve(owner.chunks.size() + owner.metadata.size());
  for (const WrittenChunk& chunk : owner.chunks) {
    ocdbt::Entry& entry = entries.emplace_back();
    entry.key = chunk.key;
    entry.value.file = 0;
    entry.value.length = chunk.length;
    entry.value.offset = chunk.offset;
  }
  for (size_t i = 0; i < owner.metadata.size(); ++i) {
    ocdbt::Entry& entry = entries.emplace_back();
    entry.key = owner.metadata_keys[i];
    entry.value.length = owner.metadata[i].size();
    entry.value.inline_data = owner.metadata[i].data();
  }
  std::ranges::sort(entries, {}, &ocdbt::Entry::key);
}

}  // namespace

Result<std::shared_ptr<const ocdbt::Listing>> MakeResultListing(
    const RewritePlan& plan, std::vector<WrittenChunk> chunks,
    const std::string& directory, const std::string& data_file,
    uint64_t num_bytes) {
  auto owner = std::make_shared<Owner>();
  owner->chunks = std::move(chunks);
  CopyMetadata(plan, *owner);
  auto listing = std::make_shared<ocdbt::Listing>();
  listing->directory = directory;
  if (num_bytes > 0) {
    listing->files = {data_file};
    listing->file_sizes = {num_bytes};
  }
  AddEntries(*owner, listing->entries);
  const auto twice =
      std::ranges::adjacent_find(listing->entries, {}, &ocdbt::Entry::key);
  if (twice != listing->entries.end()) {
    return InvalidArgument(StrCat("key ", Quote(twice->key), " occurs twice"));
  }
  listing->owners.push_back(std::move(owner));
  return listing;
}

}  // namespace relayout::rechunk
