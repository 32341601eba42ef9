#ifndef RELAYOUT_CC_REKEY_ARRAY_INDEX_H_
#define RELAYOUT_CC_REKEY_ARRAY_INDEX_H_

/// \file
/// Which entries of a listing belong to which array.
///
/// An array is a key `<name>/.zarray` or `<name>/zarr.json`.  A key belongs to
/// the array with the longest name such that the key begins with `<name>/`, so
/// an array `a/b` inside `a` keeps its own keys.  Keys of one array are one
/// range of the listing, interrupted by the arrays inside it.

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "cc/base/result.h"
#include "cc/ocdbt/listing.h"

namespace relayout::rekey {

/// A range of entries, as indices into `Listing::entries`.
struct EntryRange {
  size_t inclusive_min = 0;
  size_t exclusive_max = 0;

  size_t size() const { return exclusive_max - inclusive_min; }
};

/// One array of a listing.  The views are into the keys of the listing.
struct ArrayEntries {
  std::string_view name;
  /// The entry of the metadata key, an index into `Listing::entries`.
  size_t metadata_entry = 0;
  /// Every entry of the array, in key order.
  std::vector<EntryRange> ranges;
};

/// The entries of a listing, by array.
struct ArrayIndex {
  /// Sorted by name.
  std::vector<ArrayEntries> arrays;
  /// Entries that belong to no array, in key order.
  std::vector<EntryRange> stray;

  /// Returns the array called `name`, or nullptr.
  const ArrayEntries* Find(std::string_view name) const;
};

/// Returns the part of `key` below the array `name`, which `key` belongs to.
inline std::string_view KeyBelow(std::string_view name, std::string_view key) {
  return key.substr(name.size() + 1);
}

/// Returns whether `below`, the part of a key below its array, is one of
/// `.zarray`, `.zattrs` and `zarr.json`.
bool IsMetadataKey(std::string_view below);

/// Finds the arrays of `listing`.
///
/// Errors: `kCorrupt` when an array has both zarr v2 and v3 metadata.
Result<ArrayIndex> IndexArrays(const ocdbt::Listing& listing);

}  // namespace relayout::rekey

#endif  // RELAYOUT_CC_REKEY_ARRAY_INDEX_H_
