#ifndef RELAYOUT_CC_OCDBT_MANIFEST_H_
#define RELAYOUT_CC_OCDBT_MANIFEST_H_

/// \file
/// The manifest, through which everything else is found.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cc/base/byte_view.h"
#include "cc/base/result.h"
#include "cc/ocdbt/config.h"
#include "cc/ocdbt/data_ref.h"
#include "cc/ocdbt/version_tree.h"

namespace relayout::ocdbt {

inline constexpr std::string_view kManifestName = "manifest.ocdbt";

/// Returns the name of the manifest of one generation, in a database that keeps
/// its manifests numbered.
std::string NumberedManifestName(uint64_t generation);

/// Returns the generation in the name of a numbered manifest, if it is one.
std::optional<uint64_t> ParseNumberedManifestName(std::string_view name);

struct Manifest {
  Config config;
  /// What the references of versions and version nodes refer to.
  std::vector<DataFileId> files;
  /// The newest versions, the newest last; at least one.  None in a manifest of
  /// kind `kNumbered`, which only says that there are numbered ones; those are
  /// themselves of kind `kSingle`.
  std::vector<Version> versions;
  /// Of older versions: heights strictly decreasing, generations increasing.
  std::vector<VersionNodeRef> version_nodes;
};

/// Errors: `kCorrupt`, `kUnsupported`; see `DecodeRecord`.
Result<Manifest> DecodeManifest(const ByteView& record);

/// Errors: `kInvalidArgument` when `manifest` breaks a rule of the format.
Result<std::string> EncodeManifest(const Manifest& manifest);

}  // namespace relayout::ocdbt

#endif  // RELAYOUT_CC_OCDBT_MANIFEST_H_
