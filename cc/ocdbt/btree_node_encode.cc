#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cc/base/quote.h"
#include "cc/base/result.h"
#include "cc/base/str_cat.h"
#include "cc/ocdbt/btree_node.h"
#include "cc/ocdbt/common_prefix.h"
#include "cc/ocdbt/config.h"
#include "cc/ocdbt/data_file_table.h"
#include "cc/ocdbt/data_ref.h"
#include "cc/ocdbt/entry.h"
#include "cc/ocdbt/node_ref.h"
#include "cc/ocdbt/record.h"
#include "cc/ocdbt/varint.h"

namespace relayout::ocdbt {
namespace {

template <typename T>
Status CheckKeys(std::span<const T> entries) {
  if (entries.empty() || entries.size() > kMaxNodeEntries) {
    return InvalidArgument(StrCat("a node of ", entries.size(),
                                  " entries is outside [1, ", kMaxNodeEntries,
                                  "]"));
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].key.size() > kMaxKeyBytes) {
      return InvalidArgument(StrCat("key of ", entries[i].key.size(),
                                    " bytes exceeds the limit of ",
                                    kMaxKeyBytes));
    }
    if (i > 0 && entries[i - 1].key >= entries[i].key) {
      return InvalidArgument(StrCat("key ", Quote(entries[i].key),
                                    " does not follow ",
                                    Quote(entries[i - 1].key)));
    }
  }
  return {};
}

/// Appends the key columns, up to the one that only interior nodes have.
template <typename T>
void AppendKeyLengths(std::string& out, std::span<const T> entries,
                      std::span<const size_t> shared, size_t excluded) {
  for (size_t i = 1; i < entries.size(); ++i) {
    AppendVarint(out, shared[i] - excluded);
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    AppendVarint(out, entries[i].key.size() - shared[i]);
  }
}

template <typename T>
void AppendKeySuffixes(std::string& out, std::span<const T> entries,
                       std::span<const size_t> shared) {
  for (size_t i = 0; i < entries.size(); ++i) {
    out += entries[i].key.substr(shared[i]);
  }
}

/// Returns for each entry how much of its key is not stored: what it has in
/// common with the entry before, or for the first what the parent tells.
template <typename T>
std::vector<size_t> SharedLengths(std::span<const T> entries, size_t excluded) {
  std::vector<size_t> shared(entries.size(), excluded);
  for (size_t i = 1; i < entries.size(); ++i) {
    shared[i] = CommonPrefixLength(entries[i - 1].key, entries[i].key);
  }
  return shared;
}

/// Of sorted keys, the first and the last have the least in common.
template <typename T>
size_t CommonPrefixOfAll(std::span<const T> entries) {
  return CommonPrefixLength(entries.front().key, entries.back().key);
}

Status CheckValue(const Entry& entry) {
  if (!entry.value.is_inline() || entry.value.length <= kMaxInlineValueBytes) {
    return {};
  }
  return InvalidArgument(StrCat("key ", Quote(entry.key), ": value of ",
                                entry.value.length,
                                " bytes is too long to be inline"));
}

Status UseFiles(std::span<const Entry> entries, DataFileTableEncoder& table) {
  for (const Entry& entry : entries) {
    RELAYOUT_RETURN_IF_ERROR(CheckValue(entry));
    if (entry.value.is_inline()) continue;
    RELAYOUT_RETURN_IF_ERROR(table.Use(entry.value.file));
  }
  return {};
}

Status UseFiles(std::span<const InteriorEntry> children,
                DataFileTableEncoder& table) {
  for (const InteriorEntry& child : children) {
    RELAYOUT_RETURN_IF_ERROR(table.Use(child.node.location.file));
  }
  return {};
}

void AppendValues(std::string& out, std::span<const Entry> entries,
                  const DataFileTableEncoder& table) {
  for (const Entry& entry : entries) AppendVarint(out, entry.value.length);
  for (const Entry& entry : entries) {
    AppendVarint(out, entry.value.is_inline() ? 0 : 1);
  }
  for (const Entry& entry : entries) {
    if (entry.value.is_inline()) continue;
    AppendVarint(out, table.Index(entry.value.file));
  }
  for (const Entry& entry : entries) {
    if (!entry.value.is_inline()) AppendVarint(out, entry.value.offset);
  }
  for (const Entry& entry : entries) {
    if (entry.value.is_inline()) out += entry.value.inline_bytes();
  }
}

NodeStatistics SumStatistics(std::span<const Entry> entries) {
  NodeStatistics sum;
  for (const Entry& entry : entries) {
    sum += {.num_keys = 1,
            .num_tree_bytes = 0,
            .num_indirect_value_bytes =
                entry.value.is_inline() ? 0 : entry.value.length};
  }
  return sum;
}

NodeStatistics SumStatistics(std::span<const InteriorEntry> children) {
  NodeStatistics sum;
  for (const InteriorEntry& child : children) sum += child.node.statistics;
  return sum;
}

/// Returns how much the keys of an interior node may leave out: no more than
/// each child knows of its own prefix.
size_t ExcludedLength(std::span<const InteriorEntry> children) {
  size_t length = CommonPrefixOfAll(children);
  for (const InteriorEntry& child : children) {
    length = std::min<size_t>(length, child.subtree_common_prefix_length);
  }
  return length;
}

Status CheckPrefixes(std::span<const InteriorEntry> children) {
  for (const InteriorEntry& child : children) {
    if (child.subtree_common_prefix_length > child.key.size()) {
      return InvalidArgument(StrCat("common prefix length ",
                                    child.subtree_common_prefix_length,
                                    " exceeds that of key ", Quote(child.key)));
    }
  }
  return {};
}

void AppendChildren(std::string& out, std::span<const InteriorEntry> children,
                    const DataFileTableEncoder& table) {
  std::vector<NodeRef> refs;
  refs.reserve(children.size());
  for (const InteriorEntry& child : children) refs.push_back(child.node);
  AppendNodeRefs(out, refs, table);
}

/// Wraps `body` up; `statistics` are the sums over the entries.
Result<EncodedNode> Finish(std::string_view body, size_t excluded,
                           NodeStatistics statistics, const Config& config) {
  RELAYOUT_ASSIGN_OR_RETURN(
      std::string record,
      EncodeRecord(RecordKind::kBtreeNode, body, config.zstd_level));
  statistics += {.num_keys = 0,
                 .num_tree_bytes = record.size(),
                 .num_indirect_value_bytes = 0};
  return EncodedNode{std::move(record), static_cast<uint32_t>(excluded),
                     statistics};
}

}  // namespace

Result<EncodedNode> EncodeLeafNode(std::span<const Entry> entries,
                                   std::span<const DataFileId> files,
                                   const Config& config, bool is_root) {
  RELAYOUT_RETURN_IF_ERROR(CheckKeys(entries));
  DataFileTableEncoder table(files);
  RELAYOUT_RETURN_IF_ERROR(UseFiles(entries, table));
  const size_t excluded = is_root ? 0 : CommonPrefixOfAll(entries);
  const auto shared = SharedLengths(entries, excluded);
  std::string body(1, '\0');
  table.AppendTo(body);
  AppendVarint(body, entries.size());
  AppendKeyLengths(body, entries, shared, excluded);
  AppendKeySuffixes(body, entries, shared);
  AppendValues(body, entries, table);
  return Finish(body, excluded, SumStatistics(entries), config);
}

Result<EncodedNode> EncodeInteriorNode(uint8_t height,
                                       std::span<const InteriorEntry> children,
                                       std::span<const DataFileId> files,
                                       const Config& config, bool is_root) {
  if (height == 0) return InvalidArgument("an interior node of height 0");
  RELAYOUT_RETURN_IF_ERROR(CheckKeys(children));
  RELAYOUT_RETURN_IF_ERROR(CheckPrefixes(children));
  DataFileTableEncoder table(files);
  RELAYOUT_RETURN_IF_ERROR(UseFiles(children, table));
  const size_t excluded = is_root ? 0 : ExcludedLength(children);
  const auto shared = SharedLengths(children, excluded);
  std::string body(1, static_cast<char>(height));
  table.AppendTo(body);
  AppendVarint(body, children.size());
  AppendKeyLengths(body, children, shared, excluded);
  for (const InteriorEntry& child : children) {
    AppendVarint(body, child.subtree_common_prefix_length - excluded);
  }
  AppendKeySuffixes(body, children, shared);
  AppendChildren(body, children, table);
  return Finish(body, excluded, SumStatistics(children), config);
}

}  // namespace relayout::ocdbt
