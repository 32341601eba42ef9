#include "cc/rekey/sort_entries.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>

#include "cc/base/parallel.h"
#include "cc/base/quote.h"
#include "cc/base/str_cat.h"

namespace relayout::rekey {
namespace {

using ocdbt::Entry;

/// Entries that are sorted at once, before runs of them are merged.
constexpr size_t kRunEntries = 1 << 14;

/// Calls `body` with each stretch of `length` entries, the last one shorter.
Status ForEachStretch(std::span<Entry> entries, size_t length, int num_threads,
                      const std::function<void(std::span<Entry>)>& body) {
  const size_t num_stretches = (entries.size() + length - 1) / length;
  return ParallelFor(num_stretches, num_threads, [&](size_t i) -> Status {
    const size_t begin = i * length;
    body(entries.subspan(begin, std::min(length, entries.size() - begin)));
    return {};
  });
}

}  // namespace

Status SortEntries(std::vector<Entry>& entries, int num_threads) {
  RELAYOUT_RETURN_IF_ERROR(ForEachStretch(
      entries, kRunEntries, num_threads,
      [](std::span<Entry> run) { std::ranges::sort(run, {}, &Entry::key); }));
  for (size_t length = kRunEntries; length < entries.size(); length *= 2) {
    RELAYOUT_RETURN_IF_ERROR(ForEachStretch(
        entries, 2 * length, num_threads, [length](std::span<Entry> runs) {
          const auto middle = runs.begin() + static_cast<ptrdiff_t>(
                                                 std::min(length, runs.size()));
          std::ranges::inplace_merge(runs, middle, {}, &Entry::key);
        }));
  }
  const auto same =
      std::ranges::adjacent_find(entries, std::ranges::equal_to(), &Entry::key);
  if (same == entries.end()) return {};
  return Corrupt(StrCat("key ", Quote(same->key), " occurs twice"));
}

}  // namespace relayout::rekey
