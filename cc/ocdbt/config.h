#ifndef RELAYOUT_CC_OCDBT_CONFIG_H_
#define RELAYOUT_CC_OCDBT_CONFIG_H_

/// \file
/// The configuration of an OCDBT database, as its manifest records it.

#include <array>
#include <cstdint>
#include <optional>

namespace relayout::ocdbt {

using Uuid = std::array<uint8_t, 16>;

enum class ManifestKind : uint8_t { kSingle = 0, kNumbered = 1 };

struct Config {
  Uuid uuid{};
  ManifestKind manifest_kind = ManifestKind::kSingle;
  /// Longest value that a leaf node may hold inline, in bytes.
  uint64_t max_inline_value_bytes = 100;
  /// Largest encoded node before compression, in bytes.
  uint64_t max_decoded_node_bytes = 8 << 20;
  uint8_t version_tree_arity_log2 = 4;
  /// Zstd level of nodes and manifests; none: stored uncompressed.
  std::optional<int32_t> zstd_level = 0;

  bool operator==(const Config&) const = default;
};

}  // namespace relayout::ocdbt

#endif  // RELAYOUT_CC_OCDBT_CONFIG_H_
