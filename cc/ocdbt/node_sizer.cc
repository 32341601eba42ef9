#include "cc/ocdbt/node_sizer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "cc/ocdbt/btree_node.h"
#include "cc/ocdbt/common_prefix.h"
#include "cc/ocdbt/data_ref.h"
#include "cc/ocdbt/entry.h"
#include "cc/ocdbt/varint.h"

namespace relayout::ocdbt {
namespace {

/// Height, number of files, number of entries.
constexpr uint64_t kHeaderBytes =
    1 + VarintSize(UINT32_MAX) + VarintSize(kMaxNodeEntries);

uint64_t KeySize(std::string_view previous, std::string_view key) {
  const size_t shared = CommonPrefixLength(previous, key);
  return VarintSize(shared) + VarintSize(key.size() - shared) + key.size() -
         shared;
}

}  // namespace

NodeSizer::NodeSizer(std::span<const DataFileId> files)
    : files_(files), last_node_(files.size()) {}

uint64_t NodeSizer::FileSize(uint32_t file) {
  const uint64_t index_size = VarintSize(files_.size());
  if (file >= files_.size() || last_node_[file] == node_) return index_size;
  last_node_[file] = node_;
  const size_t base_size = files_[file].base_path.size();
  const size_t size = base_size + files_[file].relative_path.size();
  return index_size + 2 * VarintSize(size) + VarintSize(base_size) + size;
}

uint64_t NodeSizer::ContentSize(const Entry& entry) {
  const uint64_t length_and_kind = VarintSize(entry.value.length) + 1;
  if (entry.value.is_inline()) return length_and_kind + entry.value.length;
  return length_and_kind + FileSize(entry.value.file) +
         VarintSize(entry.value.offset);
}

uint64_t NodeSizer::ContentSize(const InteriorEntry& child) {
  const DataRef& location = child.node.location;
  const NodeStatistics& statistics = child.node.statistics;
  return VarintSize(child.subtree_common_prefix_length) +
         FileSize(location.file) + VarintSize(location.offset) +
         VarintSize(location.length) + VarintSize(statistics.num_keys) +
         VarintSize(statistics.num_tree_bytes) +
         VarintSize(statistics.num_indirect_value_bytes);
}

template <typename T>
size_t NodeSizer::Count(std::span<const T> entries, uint64_t max_num_bytes) {
  ++node_;
  entries = entries.first(std::min(entries.size(), kMaxNodeEntries));
  uint64_t num_bytes = kHeaderBytes;
  std::string_view previous;
  for (size_t i = 0; i < entries.size(); ++i) {
    num_bytes += KeySize(previous, entries[i].key) + ContentSize(entries[i]);
    if (num_bytes > max_num_bytes) return i;
    previous = entries[i].key;
  }
  return entries.size();
}

size_t NodeSizer::CountFitting(std::span<const Entry> entries,
                               uint64_t max_num_bytes) {
  return Count(entries, max_num_bytes);
}

size_t NodeSizer::CountFitting(std::span<const InteriorEntry> children,
                               uint64_t max_num_bytes) {
  return Count(children, max_num_bytes);
}

}  // namespace relayout::ocdbt
