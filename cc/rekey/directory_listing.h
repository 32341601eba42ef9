#ifndef RELAYOUT_CC_REKEY_DIRECTORY_LISTING_H_
#define RELAYOUT_CC_REKEY_DIRECTORY_LISTING_H_

/// \file
/// A tree of plain zarr directories, seen as a database.
///
/// An array is a directory, below the given one, that holds `.zarray` or
/// `zarr.json`.  Each file in it or further down is a key, the file's path, and
/// all of the file its value.  What lies in no array is left out.

#include <string>

#include "cc/base/result.h"
#include "cc/ocdbt/listing.h"

namespace relayout::rekey {

/// Lists the arrays below `directory`.
///
/// The uuid of the result is derived from the names, sizes and times of the
/// files; its limits are those of the databases that Orbax writes.
///
/// Errors: `kCorrupt` naming what is, in an array, neither a file nor a
/// directory, or a link that leads nowhere or out of `directory`;
/// `kUnsupported` naming a link to another directory of the tree, or beyond a
/// limit; `kSystem` when a directory can't be read.
///
/// `num_threads` 0 means one per processor.  The result does not depend on it.
Result<ocdbt::Listing> ListDirectory(const std::string& directory,
                                     int num_threads = 0);

}  // namespace relayout::rekey

#endif  // RELAYOUT_CC_REKEY_DIRECTORY_LISTING_H_
