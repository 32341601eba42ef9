#include "cc/ocdbt/manifest.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cc/base/byte_view.h"
#include "cc/base/compression.h"
#include "cc/base/result.h"
#include "cc/base/str_cat.h"
#include "cc/ocdbt/column.h"
#include "cc/ocdbt/config.h"
#include "cc/ocdbt/data_file_table.h"
#include "cc/ocdbt/record.h"
#include "cc/ocdbt/varint.h"
#include "cc/ocdbt/version_tree.h"

namespace relayout::ocdbt {
namespace {

constexpr std::string_view kNumberedPrefix = "manifest.";
constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr size_t kNumGenerationDigits = 16;

enum CompressionMethod : uint64_t { kNone = 0, kZstd = 1 };

Result<Uuid> ReadUuid(ByteReader& reader) {
  Uuid uuid;
  RELAYOUT_ASSIGN_OR_RETURN(const std::string_view bytes,
                            ReadByteColumn(reader, "uuid", uuid.size()));
  std::ranges::copy(bytes, uuid.begin());
  return uuid;
}

Status CheckLevel(int32_t level) {
  if (level >= kMinZstdLevel && level <= kMaxZstdLevel) return {};
  return Corrupt(StrCat("zstd level ", level, " is outside [", kMinZstdLevel,
                        ", ", kMaxZstdLevel, "]"));
}

Result<std::optional<int32_t>> ReadZstdLevel(ByteReader& reader) {
  RELAYOUT_ASSIGN_OR_RETURN(
      const uint64_t method,
      ReadField(reader, "compression method", UINT32_MAX));
  if (method == kNone) return std::nullopt;
  if (method != kZstd) {
    return Unsupported(
        StrCat("compression method ", method, " is not supported"));
  }
  uint32_t level;
  if (!reader.ReadLittleEndian32(level)) return EndsEarly("zstd level", reader);
  RELAYOUT_RETURN_IF_ERROR(CheckLevel(static_cast<int32_t>(level)));
  return static_cast<int32_t>(level);
}

Result<Config> ReadConfig(ByteReader& reader) {
  Config config;
  RELAYOUT_ASSIGN_OR_RETURN(config.uuid, ReadUuid(reader));
  uint8_t kind;
  if (!reader.ReadByte(kind)) return EndsEarly("manifest kind", reader);
  if (kind > static_cast<uint8_t>(ManifestKind::kNumbered)) {
    return Unsupported(StrCat("manifest kind ", kind, " is not supported"));
  }
  config.manifest_kind = static_cast<ManifestKind>(kind);
  RELAYOUT_ASSIGN_OR_RETURN(
      config.max_inline_value_bytes,
      ReadField(reader, "max inline value bytes", UINT32_MAX));
  RELAYOUT_ASSIGN_OR_RETURN(
      config.max_decoded_node_bytes,
      ReadField(reader, "max decoded node bytes", UINT32_MAX));
  if (!reader.ReadByte(config.version_tree_arity_log2)) {
    return EndsEarly("version tree arity", reader);
  }
  RELAYOUT_RETURN_IF_ERROR(CheckArity(config.version_tree_arity_log2));
  RELAYOUT_ASSIGN_OR_RETURN(config.zstd_level, ReadZstdLevel(reader));
  return config;
}

Status CheckConfig(const Config& config) {
  RELAYOUT_RETURN_IF_ERROR(CheckArity(config.version_tree_arity_log2));
  if (config.max_inline_value_bytes > UINT32_MAX ||
      config.max_decoded_node_bytes > UINT32_MAX) {
    return Corrupt("a limit in bytes exceeds 32 bits");
  }
  return config.zstd_level.has_value() ? CheckLevel(*config.zstd_level)
                                       : Status();
}

void AppendConfig(std::string& out, const Config& config) {
  out.append(config.uuid.begin(), config.uuid.end());
  out.push_back(static_cast<char>(config.manifest_kind));
  AppendVarint(out, config.max_inline_value_bytes);
  AppendVarint(out, config.max_decoded_node_bytes);
  out.push_back(static_cast<char>(config.version_tree_arity_log2));
  if (!config.zstd_level.has_value()) return AppendVarint(out, kNone);
  AppendVarint(out, kZstd);
  AppendLittleEndian32(out, static_cast<uint32_t>(*config.zstd_level));
}

/// Returns the end of the last block of `1 << size_log2` generations that is
/// complete before `generation`, or 0.
constexpr uint64_t EndOfBlockBefore(uint64_t generation, size_t size_log2) {
  if (generation == 0 || size_log2 >= 64) return 0;
  return (generation - 1) >> size_log2 << size_log2;
}

/// Checks that a node of `height` in a manifest whose newest generation is
/// `newest` may end with `ref.generation`.
///
/// The versions in the manifest are those since the last complete block of the
/// arity's size; the node of height 1 has the ones before, since the last
/// complete block of the arity's square; and so on.
Status CheckVersionNode(const VersionNodeRef& ref, uint64_t newest,
                        uint8_t arity_log2) {
  uint64_t inclusive_max = newest;
  for (size_t height = 1; height <= ref.height; ++height) {
    inclusive_max = EndOfBlockBefore(inclusive_max, height * arity_log2);
  }
  const uint64_t exclusive_min =
      EndOfBlockBefore(inclusive_max, (size_t{ref.height} + 1) * arity_log2);
  if (ref.generation > exclusive_min && ref.generation <= inclusive_max) {
    return {};
  }
  return Corrupt(StrCat("version tree node of height ", ref.height,
                        " ends with generation ", ref.generation, ", outside (",
                        exclusive_min, ", ", inclusive_max, "]"));
}

Status CheckVersionNodes(const Manifest& manifest) {
  const uint8_t arity_log2 = manifest.config.version_tree_arity_log2;
  const uint64_t newest = manifest.versions.back().generation;
  unsigned height_limit = MaxVersionTreeHeight(arity_log2) + 1u;
  for (const VersionNodeRef& ref : manifest.version_nodes) {
    if (ref.height == 0 || ref.height >= height_limit) {
      return Corrupt(StrCat("version tree node height ", ref.height,
                            " is outside [1, ", height_limit, ")"));
    }
    height_limit = ref.height;
    RELAYOUT_RETURN_IF_ERROR(CheckVersionNode(ref, newest, arity_log2));
  }
  return {};
}

Status CheckManifest(const Manifest& manifest) {
  RELAYOUT_RETURN_IF_ERROR(CheckConfig(manifest.config));
  if (manifest.config.manifest_kind == ManifestKind::kNumbered) {
    if (manifest.versions.empty() && manifest.version_nodes.empty()) return {};
    return Corrupt("a manifest of the numbered kind has versions itself");
  }
  RELAYOUT_RETURN_IF_ERROR(CheckVersions(
      manifest.versions, manifest.config.version_tree_arity_log2));
  return CheckVersionNodes(manifest);
}

Status ReadVersionTree(ByteReader& reader, Manifest& manifest) {
  const uint8_t arity_log2 = manifest.config.version_tree_arity_log2;
  RELAYOUT_ASSIGN_OR_RETURN(manifest.files, DecodeDataFileTable(reader, ""));
  RELAYOUT_ASSIGN_OR_RETURN(
      manifest.versions,
      ReadVersions(reader, size_t{1} << arity_log2, manifest.files.size()));
  RELAYOUT_ASSIGN_OR_RETURN(
      manifest.version_nodes,
      ReadVersionNodeRefs(reader, MaxVersionTreeHeight(arity_log2),
                          manifest.files.size(), /*with_height=*/true));
  return {};
}

}  // namespace

std::string NumberedManifestName(uint64_t generation) {
  std::string name(kNumberedPrefix);
  for (int shift = 60; shift >= 0; shift -= 4) {
    name += kHexDigits[(generation >> shift) & 15];
  }
  return name;
}

std::optional<uint64_t> ParseNumberedManifestName(std::string_view name) {
  if (!name.starts_with(kNumberedPrefix)) return std::nullopt;
  name.remove_prefix(kNumberedPrefix.size());
  if (name.size() != kNumGenerationDigits ||
      name.find_first_not_of(kHexDigits) != std::string_view::npos) {
    return std::nullopt;
  }
  uint64_t generation = 0;
  std::from_chars(name.data(), name.data() + name.size(), generation, 16);
  return generation;
}

Result<Manifest> DecodeManifest(const ByteView& record) {
  RELAYOUT_ASSIGN_OR_RETURN(const ByteView body,
                            DecodeRecord(RecordKind::kManifest, record));
  ByteReader reader(body.bytes());
  Manifest manifest;
  RELAYOUT_ASSIGN_OR_RETURN(manifest.config, ReadConfig(reader));
  if (manifest.config.manifest_kind == ManifestKind::kSingle) {
    RELAYOUT_RETURN_IF_ERROR(ReadVersionTree(reader, manifest));
  }
  RELAYOUT_RETURN_IF_ERROR(CheckAtEnd(reader));
  RELAYOUT_RETURN_IF_ERROR(CheckManifest(manifest));
  return manifest;
}

Result<std::string> EncodeManifest(const Manifest& manifest) {
  if (Status status = CheckManifest(manifest); !status.has_value()) {
    return InvalidArgument(std::move(status).error().message);
  }
  std::string body;
  AppendConfig(body, manifest.config);
  if (manifest.config.manifest_kind == ManifestKind::kSingle) {
    DataFileTableEncoder table(manifest.files);
    RELAYOUT_RETURN_IF_ERROR(
        UseFiles(manifest.versions, manifest.version_nodes, table));
    table.AppendTo(body);
    AppendVersions(body, manifest.versions, table);
    AppendVersionNodeRefs(body, manifest.version_nodes, table,
                          /*with_height=*/true);
  }
  return EncodeRecord(RecordKind::kManifest, body, manifest.config.zstd_level);
}

}  // namespace relayout::ocdbt
