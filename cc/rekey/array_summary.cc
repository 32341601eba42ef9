#include "cc/rekey/array_summary.h"

#include <optional>

#include "cc/base/parallel.h"
#include "cc/base/quote.h"
#include "cc/base/str_cat.h"
#include "cc/rekey/array_index.h"
#include "cc/rekey/read_key.h"

namespace relayout::rekey {
namespace {

/// Metadata is a few hundred bytes; a hostile length must not fill the memory.
constexpr uint64_t kMaxMetadataBytes = 16 << 20;

void AddChunk(const ocdbt::Value& value, ArraySummary& summary) {
  ++summary.num_chunks;
  summary.num_stored_bytes += value.length;
  summary.num_inline_chunks += value.is_inline();
}

Result<std::string> ReadMetadata(const ocdbt::Listing& listing,
                                 const ocdbt::Entry& entry) {
  if (entry.value.length > kMaxMetadataBytes) {
    return Corrupt(StrCat("key ", Quote(entry.key), ": metadata of ",
                          entry.value.length, " bytes exceeds the limit of ",
                          kMaxMetadataBytes));
  }
  return ReadEntry(listing, entry, std::nullopt);
}

Result<ArraySummary> Summarize(const ocdbt::Listing& listing,
                               const ArrayEntries& array) {
  const ocdbt::Entry& metadata = listing.entries[array.metadata_entry];
  ArraySummary summary;
  summary.name = array.name;
  summary.metadata_key = KeyBelow(array.name, metadata.key);
  RELAYOUT_ASSIGN_OR_RETURN(summary.metadata, ReadMetadata(listing, metadata));
  for (const auto& [min, max] : array.ranges) {
    for (size_t i = min; i < max; ++i) {
      const auto& [key, value] = listing.entries[i];
      if (!IsMetadataKey(KeyBelow(array.name, key))) AddChunk(value, summary);
    }
  }
  return summary;
}

}  // namespace

Result<std::vector<ArraySummary>> SummarizeArrays(const ocdbt::Listing& listing,
                                                  int num_threads) {
  RELAYOUT_ASSIGN_OR_RETURN(const ArrayIndex index, IndexArrays(listing));
  std::vector<ArraySummary> summaries(index.arrays.size());
  RELAYOUT_RETURN_IF_ERROR(
      ParallelFor(summaries.size(), num_threads, [&](size_t i) -> Status {
        RELAYOUT_ASSIGN_OR_RETURN(summaries[i],
                                  Summarize(listing, index.arrays[i]));
        return {};
      }));
  return summaries;
}

Result<std::vector<std::string_view>> ChunkKeys(const ocdbt::Listing& listing,
                                                std::string_view name) {
  RELAYOUT_ASSIGN_OR_RETURN(const ArrayIndex index, IndexArrays(listing));
  std::vector<std::string_view> keys;
  const ArrayEntries* const array = index.Find(name);
  if (array == nullptr) return keys;
  for (const auto& [min, max] : array->ranges) {
    for (size_t i = min; i < max; ++i) {
      const auto below = KeyBelow(name, listing.entries[i].key);
      if (!IsMetadataKey(below)) keys.push_back(below);
    }
  }
  return keys;
}

Result<std::vector<std::string_view>> StrayKeys(const ocdbt::Listing& listing,
                                                size_t limit) {
  RELAYOUT_ASSIGN_OR_RETURN(const ArrayIndex index, IndexArrays(listing));
  std::vector<std::string_view> keys;
  for (const auto& [min, max] : index.stray) {
    for (size_t i = min; i < max && keys.size() < limit; ++i) {
      keys.push_back(listing.entries[i].key);
    }
  }
  return keys;
}

}  // namespace relayout::rekey
