#ifndef RELAYOUT_CC_REKEY_ARRAY_SUMMARY_H_
#define RELAYOUT_CC_REKEY_ARRAY_SUMMARY_H_

/// \file
/// What a listing holds, array by array instead of key by key.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cc/base/result.h"
#include "cc/ocdbt/listing.h"

namespace relayout::rekey {

struct ArraySummary {
  std::string name;
  std::string metadata_key;  ///< `.zarray` or `zarr.json`
  std::string metadata;
  uint64_t num_chunks = 0;        ///< stored ones
  uint64_t num_stored_bytes = 0;  ///< of the chunks
  uint64_t num_inline_chunks = 0;
};

/// Returns the arrays of `listing`, sorted by name.
///
/// Errors: `kCorrupt` when an array has two kinds of metadata or its metadata
/// is too long; those of `ocdbt::ReadValue`.
Result<std::vector<ArraySummary>> SummarizeArrays(const ocdbt::Listing& listing,
                                                  int num_threads = 0);

/// Returns the parts below the array `name` of the keys of its stored chunks,
/// in key order; none without such an array.  The views are into `listing`.
///
/// Errors: `kCorrupt` as above.
Result<std::vector<std::string_view>> ChunkKeys(const ocdbt::Listing& listing,
                                                std::string_view name);

/// Returns the first `limit` keys that belong to no array; the views are into
/// `listing`.
///
/// Errors: `kCorrupt` as above.
Result<std::vector<std::string_view>> StrayKeys(const ocdbt::Listing& listing,
                                                size_t limit);

}  // namespace relayout::rekey

#endif  // RELAYOUT_CC_REKEY_ARRAY_SUMMARY_H_
