#ifndef RELAYOUT_CC_OCDBT_ENTRY_H_
#define RELAYOUT_CC_OCDBT_ENTRY_H_

/// \file
/// A key and where its value lies.

#include <cstdint>
#include <string_view>

namespace relayout::ocdbt {

/// Where a value lies: in the node itself, or in a range of a data file.
struct Value {
  static constexpr uint32_t kInline = UINT32_MAX;

  /// Index into a list of data files (that of the listing, if the value is from
  /// one), or `kInline`.
  uint32_t file = kInline;
  /// Bytes of the value; for an inline value, the length of `inline_data`.
  uint64_t length = 0;
  union {
    uint64_t offset = 0;      ///< of an indirect value, in bytes
    const char* inline_data;  ///< of an inline value
  };

  bool is_inline() const { return file == kInline; }
  std::string_view inline_bytes() const { return {inline_data, length}; }
};

struct Entry {
  std::string_view key;
  Value value;
};

}  // namespace relayout::ocdbt

#endif  // RELAYOUT_CC_OCDBT_ENTRY_H_
