#include "cc/ocdbt/node_ref.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cc/base/result.h"
#include "cc/base/str_cat.h"
#include "cc/ocdbt/column.h"
#include "cc/ocdbt/data_file_table.h"
#include "cc/ocdbt/data_ref.h"
#include "cc/ocdbt/varint.h"

namespace relayout::ocdbt {
namespace {

void AddUpToMax(uint64_t& sum, uint64_t value) {
  if (__builtin_add_overflow(sum, value, &sum)) sum = UINT64_MAX;
}

}  // namespace

NodeStatistics& NodeStatistics::operator+=(const NodeStatistics& other) {
  AddUpToMax(num_keys, other.num_keys);
  AddUpToMax(num_tree_bytes, other.num_tree_bytes);
  AddUpToMax(num_indirect_value_bytes, other.num_indirect_value_bytes);
  return *this;
}

Result<std::vector<DataRef>> ReadDataRefs(ByteReader& reader, size_t count,
                                          size_t num_files) {
  if (count > 0 && num_files == 0) return Corrupt("data file table is empty");
  RELAYOUT_ASSIGN_OR_RETURN(
      const auto files,
      ReadColumn<uint32_t>(reader, "data file", count, num_files - 1));
  RELAYOUT_ASSIGN_OR_RETURN(const auto offsets,
                            ReadColumn<uint64_t>(reader, "offset", count));
  RELAYOUT_ASSIGN_OR_RETURN(const auto lengths,
                            ReadColumn<uint64_t>(reader, "length", count));
  std::vector<DataRef> refs(count);
  for (size_t i = 0; i < count; ++i) {
    refs[i] = {files[i], offsets[i], lengths[i]};
  }
  return refs;
}

Result<std::vector<NodeRef>> ReadNodeRefs(ByteReader& reader, size_t count,
                                          size_t num_files) {
  RELAYOUT_ASSIGN_OR_RETURN(const auto locations,
                            ReadDataRefs(reader, count, num_files));
  RELAYOUT_ASSIGN_OR_RETURN(
      const auto num_keys,
      ReadColumn<uint64_t>(reader, "number of keys", count));
  RELAYOUT_ASSIGN_OR_RETURN(const auto tree_bytes,
                            ReadColumn<uint64_t>(reader, "tree bytes", count));
  RELAYOUT_ASSIGN_OR_RETURN(
      const auto value_bytes,
      ReadColumn<uint64_t>(reader, "indirect value bytes", count));
  std::vector<NodeRef> refs(count);
  for (size_t i = 0; i < count; ++i) {
    refs[i] = {locations[i], {num_keys[i], tree_bytes[i], value_bytes[i]}};
  }
  return refs;
}

void AppendDataRefs(std::string& out, std::span<const DataRef> refs,
                    const DataFileTableEncoder& table) {
  for (const DataRef& ref : refs) AppendVarint(out, table.Index(ref.file));
  for (const DataRef& ref : refs) AppendVarint(out, ref.offset);
  for (const DataRef& ref : refs) AppendVarint(out, ref.length);
}

void AppendNodeRefs(std::string& out, std::span<const NodeRef> refs,
                    const DataFileTableEncoder& table) {
  std::vector<DataRef> locations;
  locations.reserve(refs.size());
  for (const NodeRef& ref : refs) locations.push_back(ref.location);
  AppendDataRefs(out, locations, table);
  for (const auto& ref : refs) AppendVarint(out, ref.statistics.num_keys);
  for (const auto& ref : refs) AppendVarint(out, ref.statistics.num_tree_bytes);
  for (const auto& ref : refs) {
    AppendVarint(out, ref.statistics.num_indirect_value_bytes);
  }
}

}  // namespace relayout::ocdbt
