#include "cc/rekey/expand.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "cc/base/quote.h"
#include "cc/base/str_cat.h"
#include "cc/zarr/chunk_grid.h"
#include "cc/zarr/chunk_key.h"

namespace relayout::rekey {
namespace {

constexpr size_t kMaxSliceEntries = 1 << 14;

/// Expands one chunk after the other, with buffers that are used again.
class Expander {
 public:
  Expander(const SourceArray& source, std::span<const ArrayMove> moves)
      : source_(source),
        moves_(moves),
        source_index_(source.first_move->source_grid.size()) {}

  Status Add(const ocdbt::Entry& entry) {
    const auto below = KeyBelow(source_.array->name, entry.key);
    if (IsMetadataKey(below)) return {};
    if (auto status = AddChunk(entry, below); !status.has_value()) {
      return InContext(std::move(status).error(),
                       StrCat("key ", Quote(entry.key), " of the database in ",
                              Quote(source_.listing->directory)));
    }
    return {};
  }

  ExpandedSlice TakeResult() && { return std::move(result_); }

 private:
  Status AddChunk(const ocdbt::Entry& entry, std::string_view chunk_key) {
    const ArrayMove& first = *source_.first_move;
    RELAYOUT_RETURN_IF_ERROR(
        zarr::ParseChunkKey(chunk_key, first.source_keys, source_index_));
    if (!zarr::IsInGrid(first.source_grid, source_index_)) {
      return Corrupt("the chunk lies outside the grid of its array");
    }
    source_.selector.Select(source_index_, selected_);
    if (selected_.empty()) {
      return InvalidArgument("no move takes this chunk");
    }
    for (const uint32_t move : selected_) {
      result_.drafts.push_back({TargetKey(moves_[move]), &entry, move});
    }
    return {};
  }

  std::string_view TargetKey(const ArrayMove& move) {
    target_index_.clear();
    for (const AxisTerm& term : move.target_index) {
      target_index_.push_back(term.is_constant ? term.value
                                               : source_index_[term.value]);
    }
    key_.assign(move.target_array);
    key_.push_back('/');
    zarr::AppendChunkKey(target_index_, move.target_keys, key_);
    return result_.keys.Copy(key_);
  }

  const SourceArray& source_;
  const std::span<const ArrayMove> moves_;
  std::vector<uint64_t> source_index_;
  std::vector<uint64_t> target_index_;
  std::vector<uint32_t> selected_;
  std::string key_;
  ExpandedSlice result_;
};

}  // namespace

std::vector<SourceSlice> CutIntoSlices(std::span<const SourceArray> sources) {
  std::vector<SourceSlice> slices;
  for (const SourceArray& source : sources) {
    for (const auto& [min, max] : source.array->ranges) {
      for (size_t begin = min; begin < max; begin += kMaxSliceEntries) {
        slices.push_back(
            {&source, {begin, std::min(begin + kMaxSliceEntries, max)}});
      }
    }
  }
  return slices;
}

Result<ExpandedSlice> Expand(const SourceSlice& slice,
                             std::span<const ArrayMove> moves) {
  Expander expander(*slice.source, moves);
  const std::span<const ocdbt::Entry> entries = slice.source->listing->entries;
  const auto [min, max] = slice.range;
  for (const ocdbt::Entry& entry : entries.subspan(min, max - min)) {
    RELAYOUT_RETURN_IF_ERROR(expander.Add(entry));
  }
  return std::move(expander).TakeResult();
}

}  // namespace relayout::rekey
