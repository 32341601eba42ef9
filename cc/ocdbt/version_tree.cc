#include "cc/ocdbt/version_tree.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cc/base/byte_view.h"
#include "cc/base/result.h"
#include "cc/base/str_cat.h"
#include "cc/ocdbt/column.h"
#include "cc/ocdbt/config.h"
#include "cc/ocdbt/data_file_table.h"
#include "cc/ocdbt/data_ref.h"
#include "cc/ocdbt/node_ref.h"
#include "cc/ocdbt/record.h"
#include "cc/ocdbt/varint.h"

namespace relayout::ocdbt {
namespace {

/// Reads `count` times of 8 bytes.
Result<std::vector<uint64_t>> ReadTimes(ByteReader& reader, size_t count) {
  std::vector<uint64_t> times(count);
  for (uint64_t& time : times) {
    if (!reader.ReadLittleEndian64(time)) {
      return EndsEarly("commit times", reader);
    }
  }
  return times;
}

/// Checks that generations count up from at least 1.
template <typename T>
Status CheckGenerations(const std::vector<T>& items) {
  uint64_t previous = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].generation <= previous) {
      return Corrupt(StrCat("generation ", items[i].generation, " of entry ", i,
                            " does not follow ", previous));
    }
    previous = items[i].generation;
  }
  return {};
}

Status CheckCount(size_t count, uint8_t arity_log2) {
  const size_t max_count = size_t{1} << arity_log2;
  if (count >= 1 && count <= max_count) return {};
  return Corrupt(
      StrCat("number of entries ", count, " is outside [1, ", max_count, "]"));
}

Status CheckMissingRoot(const Version& version) {
  if (!version.root.location.is_missing()) return {};
  if (version.root_height == 0 && version.root.statistics == NodeStatistics{}) {
    return {};
  }
  return Corrupt(StrCat("generation ", version.generation,
                        " has no root, but a height or keys"));
}

/// Checks that `newest` and `oldest` lie in one block of the size given as a
/// power of two.  Blocks begin at 1, since generations do.
Status CheckSameBlock(uint64_t oldest, uint64_t newest, size_t size_log2) {
  if (size_log2 >= 64) return {};
  if ((oldest - 1) >> size_log2 == (newest - 1) >> size_log2) return {};
  return Corrupt(
      StrCat("generations ", oldest, " and ", newest, " can't be in one node"));
}

/// Checks a child of a node whose children span `1 << stride_log2` generations
/// each: it is full, or it would stand in the manifest.
Status CheckChild(const VersionNodeRef& child, size_t stride_log2) {
  const uint64_t stride = uint64_t{1} << stride_log2;
  if (child.generation % stride != 0) {
    return Corrupt(StrCat("generation ", child.generation,
                          " is not a multiple of ", stride));
  }
  if (child.num_generations > stride) {
    return Corrupt(StrCat("number of generations ", child.num_generations,
                          " exceeds ", stride));
  }
  return {};
}

Status CheckHeight(uint8_t height, uint8_t arity_log2) {
  const uint8_t max_height = MaxVersionTreeHeight(arity_log2);
  if (height <= max_height) return {};
  return Corrupt(
      StrCat("height ", height, " exceeds the limit of ", max_height));
}

Status CheckNode(const VersionTreeNode& node) {
  RELAYOUT_RETURN_IF_ERROR(CheckArity(node.arity_log2));
  RELAYOUT_RETURN_IF_ERROR(CheckHeight(node.height, node.arity_log2));
  if (node.height == 0) return CheckVersions(node.versions, node.arity_log2);
  RELAYOUT_RETURN_IF_ERROR(CheckCount(node.children.size(), node.arity_log2));
  RELAYOUT_RETURN_IF_ERROR(CheckGenerations(node.children));
  const size_t stride_log2 = size_t{node.height} * node.arity_log2;
  for (const VersionNodeRef& child : node.children) {
    RELAYOUT_RETURN_IF_ERROR(CheckChild(child, stride_log2));
  }
  return CheckSameBlock(node.children.front().generation,
                        node.children.back().generation,
                        stride_log2 + node.arity_log2);
}

Status ReadEntries(ByteReader& reader, VersionTreeNode& node) {
  const size_t max_count = size_t{1} << node.arity_log2;
  if (node.height == 0) {
    RELAYOUT_ASSIGN_OR_RETURN(
        node.versions, ReadVersions(reader, max_count, node.files.size()));
    return CheckAtEnd(reader);
  }
  RELAYOUT_ASSIGN_OR_RETURN(
      node.children,
      ReadVersionNodeRefs(reader, max_count, node.files.size(), false));
  for (VersionNodeRef& child : node.children) {
    child.height = static_cast<uint8_t>(node.height - 1);
  }
  return CheckAtEnd(reader);
}

}  // namespace

Status CheckArity(uint8_t arity_log2) {
  if (arity_log2 >= 1 && arity_log2 <= kMaxVersionTreeArityLog2) return {};
  return Corrupt(StrCat("version tree arity log2 ", arity_log2,
                        " is outside [1, ", kMaxVersionTreeArityLog2, "]"));
}

Status CheckVersions(const std::vector<Version>& versions, uint8_t arity_log2) {
  RELAYOUT_RETURN_IF_ERROR(CheckCount(versions.size(), arity_log2));
  RELAYOUT_RETURN_IF_ERROR(CheckGenerations(versions));
  for (const Version& version : versions) {
    RELAYOUT_RETURN_IF_ERROR(CheckMissingRoot(version));
  }
  return CheckSameBlock(versions.front().generation, versions.back().generation,
                        arity_log2);
}

Result<std::vector<Version>> ReadVersions(ByteReader& reader, size_t max_count,
                                          size_t num_files) {
  RELAYOUT_ASSIGN_OR_RETURN(const uint64_t count,
                            ReadCount(reader, "number of versions", max_count));
  RELAYOUT_ASSIGN_OR_RETURN(const auto generations,
                            ReadColumn<uint64_t>(reader, "generation", count));
  RELAYOUT_ASSIGN_OR_RETURN(const std::string_view heights,
                            ReadByteColumn(reader, "root heights", count));
  RELAYOUT_ASSIGN_OR_RETURN(const auto roots,
                            ReadNodeRefs(reader, count, num_files));
  RELAYOUT_ASSIGN_OR_RETURN(const auto times, ReadTimes(reader, count));
  std::vector<Version> versions(count);
  for (size_t i = 0; i < count; ++i) {
    versions[i] = {generations[i], static_cast<uint8_t>(heights[i]), roots[i],
                   times[i]};
  }
  return versions;
}

Result<std::vector<VersionNodeRef>> ReadVersionNodeRefs(ByteReader& reader,
                                                        size_t max_count,
                                                        size_t num_files,
                                                        bool with_height) {
  RELAYOUT_ASSIGN_OR_RETURN(
      const uint64_t count,
      ReadCount(reader, "number of version tree nodes", max_count));
  RELAYOUT_ASSIGN_OR_RETURN(const auto generations,
                            ReadColumn<uint64_t>(reader, "generation", count));
  RELAYOUT_ASSIGN_OR_RETURN(const auto locations,
                            ReadDataRefs(reader, count, num_files));
  RELAYOUT_ASSIGN_OR_RETURN(
      const auto num_generations,
      ReadColumn<uint64_t>(reader, "number of generations", count));
  RELAYOUT_ASSIGN_OR_RETURN(const auto times, ReadTimes(reader, count));
  RELAYOUT_ASSIGN_OR_RETURN(
      const std::string_view heights,
      ReadByteColumn(reader, "node heights", with_height ? count : 0));
  std::vector<VersionNodeRef> refs(count);
  for (size_t i = 0; i < count; ++i) {
    const auto height = with_height ? static_cast<uint8_t>(heights[i]) : 0;
    refs[i] = {locations[i], generations[i], static_cast<uint8_t>(height),
               num_generations[i], times[i]};
  }
  return refs;
}

void AppendVersions(std::string& out, const std::vector<Version>& versions,
                    const DataFileTableEncoder& table) {
  AppendVarint(out, versions.size());
  for (const auto& version : versions) AppendVarint(out, version.generation);
  for (const auto& version : versions) {
    out.push_back(static_cast<char>(version.root_height));
  }
  std::vector<NodeRef> roots;
  roots.reserve(versions.size());
  for (const auto& version : versions) roots.push_back(version.root);
  AppendNodeRefs(out, roots, table);
  for (const auto& version : versions) {
    AppendLittleEndian64(out, version.commit_time_ns);
  }
}

void AppendVersionNodeRefs(std::string& out,
                           const std::vector<VersionNodeRef>& refs,
                           const DataFileTableEncoder& table,
                           bool with_height) {
  AppendVarint(out, refs.size());
  for (const auto& ref : refs) AppendVarint(out, ref.generation);
  std::vector<DataRef> locations;
  locations.reserve(refs.size());
  for (const auto& ref : refs) locations.push_back(ref.location);
  AppendDataRefs(out, locations, table);
  for (const auto& ref : refs) AppendVarint(out, ref.num_generations);
  for (const auto& ref : refs) AppendLittleEndian64(out, ref.commit_time_ns);
  if (!with_height) return;
  for (const auto& ref : refs) out.push_back(static_cast<char>(ref.height));
}

Status UseFiles(const std::vector<Version>& versions,
                const std::vector<VersionNodeRef>& refs,
                DataFileTableEncoder& table) {
  for (const Version& version : versions) {
    RELAYOUT_RETURN_IF_ERROR(table.Use(version.root.location.file));
  }
  for (const VersionNodeRef& ref : refs) {
    RELAYOUT_RETURN_IF_ERROR(table.Use(ref.location.file));
  }
  return {};
}

Result<VersionTreeNode> DecodeVersionTreeNode(
    const ByteView& record, std::string_view transitive_path) {
  RELAYOUT_ASSIGN_OR_RETURN(const ByteView body,
                            DecodeRecord(RecordKind::kVersionTreeNode, record));
  ByteReader reader(body.bytes());
  VersionTreeNode node;
  if (!reader.ReadByte(node.arity_log2) || !reader.ReadByte(node.height)) {
    return EndsEarly("arity and height", reader);
  }
  RELAYOUT_RETURN_IF_ERROR(CheckArity(node.arity_log2));
  RELAYOUT_RETURN_IF_ERROR(CheckHeight(node.height, node.arity_log2));
  RELAYOUT_ASSIGN_OR_RETURN(node.files,
                            DecodeDataFileTable(reader, transitive_path));
  RELAYOUT_RETURN_IF_ERROR(ReadEntries(reader, node));
  RELAYOUT_RETURN_IF_ERROR(CheckNode(node));
  return node;
}

Result<std::string> EncodeVersionTreeNode(const VersionTreeNode& node,
                                          const Config& config) {
  if (Status status = CheckNode(node); !status.has_value()) {
    return InvalidArgument(std::move(status).error().message);
  }
  DataFileTableEncoder table(node.files);
  RELAYOUT_RETURN_IF_ERROR(UseFiles(node.versions, node.children, table));
  std::string body;
  body.push_back(static_cast<char>(node.arity_log2));
  body.push_back(static_cast<char>(node.height));
  table.AppendTo(body);
  if (node.height == 0) {
    AppendVersions(body, node.versions, table);
  } else {
    AppendVersionNodeRefs(body, node.children, table, /*with_height=*/false);
  }
  return EncodeRecord(RecordKind::kVersionTreeNode, body, config.zstd_level);
}

}  // namespace relayout::ocdbt
