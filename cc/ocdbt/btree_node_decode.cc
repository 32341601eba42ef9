#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "cc/base/byte_buffer.h"
#include "cc/base/byte_view.h"
#include "cc/base/result.h"
#include "cc/base/str_cat.h"
#include "cc/ocdbt/btree_node.h"
#include "cc/ocdbt/column.h"
#include "cc/ocdbt/data_file_table.h"
#include "cc/ocdbt/data_ref.h"
#include "cc/ocdbt/entry.h"
#include "cc/ocdbt/node_ref.h"
#include "cc/ocdbt/record.h"
#include "cc/ocdbt/varint.h"

namespace relayout::ocdbt {
namespace {

constexpr char kInlineKind = 0;
constexpr char kIndirectKind = 1;

/// The key columns, one element for each entry.
struct KeyColumns {
  std::vector<uint16_t> prefix_lengths;  ///< shared with the key before
  std::vector<uint16_t> suffix_lengths;
  /// Only of an interior node.
  std::vector<uint16_t> subtree_common_prefix_lengths;
  std::string_view suffixes;

  size_t num_keys() const { return suffix_lengths.size(); }
  size_t key_length(size_t i) const {
    return size_t{prefix_lengths[i]} + suffix_lengths[i];
  }
};

/// The value columns of a leaf.
struct ValueColumns {
  std::vector<uint64_t> lengths;
  std::string_view kinds;
  /// One element for each indirect value.
  std::vector<uint32_t> files;
  std::vector<uint64_t> offsets;
  std::string_view inline_bytes;
};

Result<KeyColumns> ReadKeyColumns(ByteReader& reader, size_t count,
                                  bool is_interior) {
  KeyColumns keys;
  RELAYOUT_ASSIGN_OR_RETURN(
      keys.prefix_lengths,
      ReadColumn<uint16_t>(reader, "prefix length", count - 1));
  keys.prefix_lengths.insert(keys.prefix_lengths.begin(), 0);
  RELAYOUT_ASSIGN_OR_RETURN(
      keys.suffix_lengths,
      ReadColumn<uint16_t>(reader, "suffix length", count));
  if (is_interior) {
    RELAYOUT_ASSIGN_OR_RETURN(
        keys.subtree_common_prefix_lengths,
        ReadColumn<uint16_t>(reader, "subtree common prefix length", count));
  }
  const auto num_bytes = std::accumulate(
      keys.suffix_lengths.begin(), keys.suffix_lengths.end(), uint64_t{0});
  RELAYOUT_ASSIGN_OR_RETURN(keys.suffixes,
                            ReadByteColumn(reader, "key suffixes", num_bytes));
  return keys;
}

Status CheckKeyLength(const KeyColumns& keys, size_t i, size_t max_key_length) {
  const size_t previous = i == 0 ? 0 : keys.key_length(i - 1);
  if (keys.prefix_lengths[i] > previous) {
    return Corrupt(StrCat("prefix length ", keys.prefix_lengths[i],
                          " of entry ", i, " exceeds previous key's ",
                          previous));
  }
  if (keys.key_length(i) > max_key_length) {
    return Corrupt(StrCat("key length ", keys.key_length(i), " of entry ", i,
                          " exceeds the limit of ", max_key_length));
  }
  return {};
}

/// Checks the lengths against each other, and returns how many bytes the keys
/// take together, each with a prefix of `key_prefix_length` before it.
Result<uint64_t> CheckKeyLengths(const KeyColumns& keys,
                                 size_t key_prefix_length) {
  if (key_prefix_length > kMaxKeyBytes) return Corrupt("key is too long");
  uint64_t num_bytes = 0;
  for (size_t i = 0; i < keys.num_keys(); ++i) {
    RELAYOUT_RETURN_IF_ERROR(
        CheckKeyLength(keys, i, kMaxKeyBytes - key_prefix_length));
    num_bytes += key_prefix_length + keys.key_length(i);
  }
  return num_bytes;
}

Status CheckSubtreePrefixes(const KeyColumns& keys) {
  for (size_t i = 0; i < keys.num_keys(); ++i) {
    const size_t length = keys.subtree_common_prefix_lengths[i];
    if (length <= keys.key_length(i)) continue;
    return Corrupt(StrCat("subtree common prefix length ", length, " of entry ",
                          i, " exceeds key length ", keys.key_length(i)));
  }
  return {};
}

Status CheckContentSize(uint64_t num_bytes) {
  if (num_bytes <= kMaxNodeContentBytes) return {};
  return Corrupt(StrCat("keys and inline values of ", num_bytes,
                        " bytes exceed the limit of ", kMaxNodeContentBytes));
}

/// Writes whole keys and inline values one after the other into one buffer.
class Arena {
 public:
  explicit Arena(size_t num_bytes)
      : buffer_(num_bytes), next_(buffer_.data()) {}

  /// Starts a new run of bytes; what is appended until the next call is one.
  void Begin() { begin_ = next_; }
  void Append(std::string_view bytes) {
    if (bytes.empty()) return;
    std::memcpy(next_, bytes.data(), bytes.size());
    next_ += bytes.size();
  }
  std::string_view run() const {
    return {begin_, static_cast<size_t>(next_ - begin_)};
  }

  std::shared_ptr<const void> Release() && {
    return std::move(buffer_).Release(0).owner();
  }

 private:
  ByteBuffer buffer_;
  char* next_;
  char* begin_ = nullptr;
};

/// Puts whole keys into `entries[i].key`.
template <typename T>
Status BuildKeys(const KeyColumns& keys, std::string_view key_prefix,
                 Arena& arena, std::vector<T>& entries) {
  std::string_view previous = key_prefix;
  size_t position = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    const auto suffix = keys.suffixes.substr(position, keys.suffix_lengths[i]);
    const size_t shared = key_prefix.size() + keys.prefix_lengths[i];
    if (i > 0 && previous.substr(shared) >= suffix) {
      return Corrupt(StrCat("key ", i, " does not follow the one before"));
    }
    arena.Begin();
    arena.Append(previous.substr(0, shared));
    arena.Append(suffix);
    previous = entries[i].key = arena.run();
    position += suffix.size();
  }
  return {};
}

/// Checks lengths and kinds, and returns how many bytes are inline.
Result<uint64_t> CheckValues(const ValueColumns& values) {
  uint64_t num_bytes = 0;
  for (size_t i = 0; i < values.kinds.size(); ++i) {
    const char kind = values.kinds[i];
    if (kind != kInlineKind && kind != kIndirectKind) {
      return Corrupt(StrCat("value kind ", static_cast<uint8_t>(kind),
                            " of entry ", i, " is neither 0 nor 1"));
    }
    if (kind == kIndirectKind) continue;
    if (values.lengths[i] > kMaxInlineValueBytes) {
      return Corrupt(StrCat("inline value length ", values.lengths[i],
                            " of entry ", i, " exceeds the limit of ",
                            kMaxInlineValueBytes));
    }
    num_bytes += values.lengths[i];
  }
  return num_bytes;
}

Result<ValueColumns> ReadValueColumns(ByteReader& reader, size_t count,
                                      size_t num_files) {
  ValueColumns values;
  RELAYOUT_ASSIGN_OR_RETURN(
      values.lengths, ReadColumn<uint64_t>(reader, "value length", count));
  RELAYOUT_ASSIGN_OR_RETURN(values.kinds,
                            ReadByteColumn(reader, "value kinds", count));
  RELAYOUT_ASSIGN_OR_RETURN(const uint64_t num_inline_bytes,
                            CheckValues(values));
  const size_t num_indirect =
      static_cast<size_t>(std::ranges::count(values.kinds, kIndirectKind));
  if (num_indirect > 0 && num_files == 0) {
    return Corrupt("data file table is empty");
  }
  RELAYOUT_ASSIGN_OR_RETURN(
      values.files,
      ReadColumn<uint32_t>(reader, "data file", num_indirect, num_files - 1));
  RELAYOUT_ASSIGN_OR_RETURN(
      values.offsets, ReadColumn<uint64_t>(reader, "offset", num_indirect));
  RELAYOUT_ASSIGN_OR_RETURN(
      values.inline_bytes,
      ReadByteColumn(reader, "inline values", num_inline_bytes));
  return values;
}

Value IndirectValue(uint32_t file, uint64_t offset, uint64_t length) {
  Value value;
  value.file = file;
  value.length = length;
  value.offset = offset;
  return value;
}

Value InlineValue(std::string_view bytes) {
  Value value;
  value.length = bytes.size();
  value.inline_data = bytes.data();
  return value;
}

void BuildValues(const ValueColumns& values, Arena& arena,
                 std::vector<Entry>& entries) {
  arena.Begin();
  arena.Append(values.inline_bytes);
  std::string_view inline_bytes = arena.run();
  size_t next_indirect = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    const uint64_t length = values.lengths[i];
    if (values.kinds[i] == kInlineKind) {
      entries[i].value = InlineValue(inline_bytes.substr(0, length));
      inline_bytes.remove_prefix(length);
    } else {
      entries[i].value = IndirectValue(values.files[next_indirect],
                                       values.offsets[next_indirect], length);
      ++next_indirect;
    }
  }
}

Status ReadLeaf(ByteReader& reader, size_t count, std::string_view key_prefix,
                BtreeNode& node) {
  RELAYOUT_ASSIGN_OR_RETURN(const KeyColumns keys,
                            ReadKeyColumns(reader, count, false));
  RELAYOUT_ASSIGN_OR_RETURN(const ValueColumns values,
                            ReadValueColumns(reader, count, node.files.size()));
  RELAYOUT_RETURN_IF_ERROR(CheckAtEnd(reader));
  RELAYOUT_ASSIGN_OR_RETURN(const uint64_t num_key_bytes,
                            CheckKeyLengths(keys, key_prefix.size()));
  const uint64_t num_bytes = num_key_bytes + values.inline_bytes.size();
  RELAYOUT_RETURN_IF_ERROR(CheckContentSize(num_bytes));
  Arena arena(num_bytes);
  node.entries.resize(count);
  RELAYOUT_RETURN_IF_ERROR(BuildKeys(keys, key_prefix, arena, node.entries));
  BuildValues(values, arena, node.entries);
  node.owner = std::move(arena).Release();
  node.num_content_bytes = num_bytes;
  return {};
}

Status ReadInterior(ByteReader& reader, size_t count,
                    std::string_view key_prefix, BtreeNode& node) {
  RELAYOUT_ASSIGN_OR_RETURN(const KeyColumns keys,
                            ReadKeyColumns(reader, count, true));
  RELAYOUT_ASSIGN_OR_RETURN(const std::vector<NodeRef> refs,
                            ReadNodeRefs(reader, count, node.files.size()));
  RELAYOUT_RETURN_IF_ERROR(CheckAtEnd(reader));
  RELAYOUT_ASSIGN_OR_RETURN(const uint64_t num_bytes,
                            CheckKeyLengths(keys, key_prefix.size()));
  RELAYOUT_RETURN_IF_ERROR(CheckSubtreePrefixes(keys));
  RELAYOUT_RETURN_IF_ERROR(CheckContentSize(num_bytes));
  Arena arena(num_bytes);
  node.children.resize(count);
  RELAYOUT_RETURN_IF_ERROR(BuildKeys(keys, key_prefix, arena, node.children));
  for (size_t i = 0; i < count; ++i) {
    node.children[i].subtree_common_prefix_length = static_cast<uint32_t>(
        key_prefix.size() + keys.subtree_common_prefix_lengths[i]);
    node.children[i].node = refs[i];
  }
  node.owner = std::move(arena).Release();
  node.num_content_bytes = num_bytes;
  return {};
}

}  // namespace

Result<BtreeNode> DecodeBtreeNode(const ByteView& record,
                                  std::string_view transitive_path,
                                  std::string_view key_prefix) {
  RELAYOUT_ASSIGN_OR_RETURN(const ByteView body,
                            DecodeRecord(RecordKind::kBtreeNode, record));
  ByteReader reader(body.bytes());
  BtreeNode node;
  if (!reader.ReadByte(node.height)) return EndsEarly("height", reader);
  RELAYOUT_ASSIGN_OR_RETURN(node.files,
                            DecodeDataFileTable(reader, transitive_path));
  RELAYOUT_ASSIGN_OR_RETURN(
      const uint64_t count,
      ReadCount(reader, "number of entries", kMaxNodeEntries));
  if (count == 0) return Corrupt("node has no entries");
  RELAYOUT_RETURN_IF_ERROR(node.height == 0
                               ? ReadLeaf(reader, count, key_prefix, node)
                               : ReadInterior(reader, count, key_prefix, node));
  return node;
}

}  // namespace relayout::ocdbt
