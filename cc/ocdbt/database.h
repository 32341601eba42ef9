#ifndef RELAYOUT_CC_OCDBT_DATABASE_H_
#define RELAYOUT_CC_OCDBT_DATABASE_H_

/// \file
/// Finds the newest version of a database.

#include "cc/base/result.h"
#include "cc/ocdbt/data_files.h"
#include "cc/ocdbt/manifest.h"

namespace relayout::ocdbt {

/// Reads the manifest of the newest generation: `manifest.ocdbt`, or the last
/// numbered one if that says so.  `Config::manifest_kind` of the result tells
/// which.  There are no versions when nothing was written yet.
///
/// The newest version is always among those in the manifest, so the version
/// tree need not be read.
///
/// Errors: `kCorrupt` naming the manifest; `kSystem`.
Result<Manifest> ReadNewestManifest(DataFiles& files);

}  // namespace relayout::ocdbt

#endif  // RELAYOUT_CC_OCDBT_DATABASE_H_
