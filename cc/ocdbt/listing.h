#ifndef RELAYOUT_CC_OCDBT_LISTING_H_
#define RELAYOUT_CC_OCDBT_LISTING_H_

/// \file
/// All entries of one version of a database, in key order.  Nothing of the
/// values is copied: an inline value is a view into a node that the listing
/// keeps alive, an indirect one is a data reference.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cc/base/result.h"
#include "cc/ocdbt/config.h"
#include "cc/ocdbt/entry.h"

namespace relayout::ocdbt {

struct Listing {
  /// Directory of the database, as given.
  std::string directory;
  Config config;
  uint64_t generation = 0;
  /// Data files that the entries refer to, relative to `directory`; checked to
  /// lie below it.
  std::vector<std::string> files;
  /// Size of each file, bytes.  Every reference was checked against it.
  std::vector<uint64_t> file_sizes;
  /// Keys strictly increasing.
  std::vector<Entry> entries;
  /// Keeps the bytes behind keys and inline values alive.
  std::vector<std::shared_ptr<const void>> owners;
};

/// Lists the newest version of the database in `directory`.
///
/// Errors: `kCorrupt` naming the file (and offset) of a manifest, node or data
/// file that is missing, truncated, damaged, or refers outside the directory
/// or beyond a file's end; `kSystem` when a file can't be read.
///
/// `num_threads` 0 means one per processor.  The result does not depend on it.
Result<Listing> List(const std::string& directory, int num_threads = 0);

/// Returns a copy of the bytes of one value of `listing`, for small values.
Result<std::string> ReadValue(const Listing& listing, const Value& value);

}  // namespace relayout::ocdbt

#endif  // RELAYOUT_CC_OCDBT_LISTING_H_
