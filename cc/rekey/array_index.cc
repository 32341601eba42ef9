#include "cc/rekey/array_index.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "cc/base/quote.h"
#include "cc/base/str_cat.h"

namespace relayout::rekey {
namespace {

using ocdbt::Entry;

/// Returns the name of the array that `key` is the metadata key of; the view
/// has no data if there is none.
std::string_view NameOfMetadataKey(std::string_view key) {
  for (const std::string_view suffix : {"/.zarray", "/zarr.json"}) {
    if (key.ends_with(suffix)) {
      return key.substr(0, key.size() - suffix.size());
    }
  }
  return {};
}

/// Compares `key` with the keys below `name`: negative if it sorts before them
/// all, 0 if it is one of them, positive if it sorts after.
int CompareWithArray(std::string_view key, std::string_view name) {
  const int order = key.substr(0, name.size()).compare(name);
  if (order != 0) return order;
  if (key.size() == name.size()) return -1;
  return static_cast<unsigned char>(key[name.size()]) - '/';
}

/// The order of the keys below two arrays: an array before those inside it.
bool ComesBefore(const ArrayEntries& a, const ArrayEntries& b) {
  const size_t num_common = std::min(a.name.size(), b.name.size());
  const int order =
      a.name.substr(0, num_common).compare(b.name.substr(0, num_common));
  if (order != 0) return order < 0;
  if (a.name.size() == b.name.size()) return false;
  // One name is the start of the other: compare '/' with what goes on there.
  const bool a_is_shorter = a.name.size() < b.name.size();
  const auto next = static_cast<unsigned char>(
      a_is_shorter ? b.name[num_common] : a.name[num_common]);
  return a_is_shorter ? '/' <= next : next < '/';
}

Result<std::vector<ArrayEntries>> FindArrays(std::span<const Entry> entries) {
  std::vector<ArrayEntries> arrays;
  for (size_t i = 0; i < entries.size(); ++i) {
    const std::string_view name = NameOfMetadataKey(entries[i].key);
    if (name.data() == nullptr) continue;
    arrays.push_back({.name = name, .metadata_entry = i, .ranges = {}});
  }
  std::ranges::sort(arrays, ComesBefore);
  const auto same = std::ranges::adjacent_find(arrays, std::ranges::equal_to(),
                                               &ArrayEntries::name);
  if (same != arrays.end()) {
    return Corrupt(StrCat("array ", Quote(same->name),
                          " has both zarr v2 and zarr v3 metadata"));
  }
  return arrays;
}

EntryRange RangeOf(std::span<const Entry> entries, std::string_view name) {
  const auto compare = [name](const Entry& entry) {
    return CompareWithArray(entry.key, name);
  };
  const auto begin = std::ranges::partition_point(
      entries, [&](const Entry& entry) { return compare(entry) < 0; });
  const auto end = std::partition_point(
      begin, entries.end(),
      [&](const Entry& entry) { return compare(entry) == 0; });
  return {.inclusive_min = static_cast<size_t>(begin - entries.begin()),
          .exclusive_max = static_cast<size_t>(end - entries.begin())};
}

/// Hands out the entries of a listing in order, each to the innermost array
/// that is open at its place.
class Divider {
 public:
  explicit Divider(ArrayIndex& index) : index_(index) {}

  /// Opens `array`, whose keys are `range`.
  void Open(ArrayEntries& array, EntryRange range) {
    CloseUntil(range.inclusive_min);
    Give(range.inclusive_min);
    open_.push_back({&array, range.exclusive_max});
  }

  /// Closes what is open and gives the rest of `num_entries` away.
  void Finish(size_t num_entries) {
    CloseUntil(num_entries);
    Give(num_entries);
  }

 private:
  struct OpenArray {
    ArrayEntries* array;
    size_t exclusive_max;
  };

  void CloseUntil(size_t position) {
    while (!open_.empty() && open_.back().exclusive_max <= position) {
      Give(open_.back().exclusive_max);
      open_.pop_back();
    }
  }

  /// Gives the entries before `exclusive_max` to the innermost open array.
  void Give(size_t exclusive_max) {
    if (next_ == exclusive_max) return;
    auto& ranges = open_.empty() ? index_.stray : open_.back().array->ranges;
    ranges.push_back({std::exchange(next_, exclusive_max), exclusive_max});
  }

  ArrayIndex& index_;
  std::vector<OpenArray> open_;
  size_t next_ = 0;  ///< the first entry that is not given away
};

}  // namespace

const ArrayEntries* ArrayIndex::Find(std::string_view name) const {
  const auto found =
      std::ranges::lower_bound(arrays, name, {}, &ArrayEntries::name);
  return found != arrays.end() && found->name == name ? &*found : nullptr;
}

bool IsMetadataKey(std::string_view below) {
  return below == ".zarray" || below == ".zattrs" || below == "zarr.json";
}

Result<ArrayIndex> IndexArrays(const ocdbt::Listing& listing) {
  ArrayIndex index;
  RELAYOUT_ASSIGN_OR_RETURN(index.arrays, FindArrays(listing.entries));
  Divider divider(index);
  for (ArrayEntries& array : index.arrays) {
    divider.Open(array, RangeOf(listing.entries, array.name));
  }
  divider.Finish(listing.entries.size());
  std::ranges::sort(index.arrays, {}, &ArrayEntries::name);
  return index;
}

}  // namespace relayout::rekey
