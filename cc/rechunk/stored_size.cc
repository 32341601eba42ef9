#include "cc/rechunk/stored_size.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cc/base/quote.h"
#include "cc/base/result.h"
#include "cc/base/str_cat.h"
#include "cc/ocdbt/listing.h"
#include "cc/rechunk/task.h"
#include "cc/zarr/chunk_grid.h"
#include "cc/zarr/chunk_key.h"

namespace relayout::rechunk {

Result<uint64_t> NumStoredBytes(const SourceArray& source) {
  RELAYOUT_ASSIGN_OR_RETURN(
      const std::vector<uint64_t> counts,
      zarr::ChunkCounts(source.shape, source.chunk_shape));
  const std::string prefix = source.array + "/";
  std::vector<uint64_t> index(counts.size());
  uint64_t num_bytes = 0;
  for (const auto& listing : source.listings) {
    auto it = std::ranges::lower_bound(
        listing->entries, std::string_view(prefix), {}, &ocdbt::Entry::key);
    for (; it != listing->entries.end() && it->key.starts_with(prefix); ++it) {
      // Other keys are metadata, or those of an array inside this one.
      const auto is_chunk = zarr::ParseChunkKey(it->key.substr(prefix.size()),
                                                source.keys, index);
      if (!is_chunk.has_value()) continue;
      if (!zarr::IsInGrid(counts, index)) {
        return Corrupt(
            StrCat("chunk ", Quote(it->key), " lies outside the array"));
      }
      num_bytes += it->value.length;
    }
  }
  return num_bytes;
}

}  // namespace relayout::rechunk
