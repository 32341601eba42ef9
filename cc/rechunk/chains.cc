#include "cc/rechunk/chains.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "cc/rechunk/checked_task.h"
#include "cc/rechunk/linear_range.h"
#include "cc/rechunk/memory_shares.h"
#include "cc/rechunk/source_parts.h"
#include "cc/rechunk/task.h"
#include "cc/rechunk/unit_grid.h"

namespace relayout::rechunk {
Chains::Chains(const CheckedTask& task, const UnitGrid& grid,
               uint64_t num_piece_bytes, uint64_t first_chain) {
  bool has_streams = false;
  for (size_t i = 0; i < task.sources.size(); ++i) {
    has_streams = has_streams || IsStreamed(task, i, num_piece_bytes);
  }
  if (!has_streams) return;
  uint64_t unit = 0;
  for (UnitGrid::Cursor cursor(grid); !cursor.at_end(); cursor.Advance()) {
    ForEachPart(task, cursor.Get().box, [&](const SourcePart& part) {
      if (IsStreamed(task, part.source, num_piece_bytes)) {
        AddUse(task, unit, part, first_chain);
      }
      return true;
    });
    ++unit;
  }
  MarkLast();
}

void Chains::AddUse(const CheckedTask& task, uint64_t unit,
                    const SourcePart& part, uint64_t first_chain) {
  const SourceForm& form = task.sources[part.source];
  const LinearRange range =
      EnclosingRange(form.placement, RelativeBox(task, part));
  auto& [end, uses] = chunks_[{part.source, ChunkNumber(task, part)}];
  const bool reads_on = !uses.empty() && range.begin >= end;
  ChainUse use = {.unit = unit};
  if (reads_on) {
    use.chain = uses.back().chain;
    use.turn = uses.back().turn + 1;
  } else {
    use.chain = first_chain + num_chains_++;
    num_streamed_bytes_ += form.num_chunk_bytes;
  }
  end = range.end;
  uses.push_back(use);
}

void Chains::MarkLast() {
  for (auto& [chunk, uses] : chunks_) {
    auto& list = uses.uses;
    for (size_t i = 0; i < list.size(); ++i) {
      list[i].is_last =
          i + 1 == list.size() || list[i + 1].chain != list[i].chain;
    }
  }
}

std::optional<ChainUse> Chains::Find(const CheckedTask& task, uint64_t unit,
                                     const SourcePart& part) const {
  if (chunks_.empty()) return std::nullopt;
  const auto chunk = chunks_.find({part.source, ChunkNumber(task, part)});
  if (chunk == chunks_.end()) return std::nullopt;
  const auto& uses = chunk->second.uses;
  const auto use = std::ranges::lower_bound(uses, unit, {}, &ChainUse::unit);
  if (use->turn == 0 && use->is_last) return std::nullopt;
  return *use;
}

}  // namespace relayout::rechunk
