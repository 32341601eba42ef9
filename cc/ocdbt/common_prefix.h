#ifndef RELAYOUT_CC_OCDBT_COMMON_PREFIX_H_
#define RELAYOUT_CC_OCDBT_COMMON_PREFIX_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace relayout::ocdbt {

/// Returns the length of the longest common prefix of `a` and `b`.
inline size_t CommonPrefixLength(std::string_view a, std::string_view b) {
  const size_t limit = std::min(a.size(), b.size());
  size_t length = 0;
  // Eight bytes at a time while they are equal.
  while (limit - length >= sizeof(uint64_t) &&
         std::memcmp(a.data() + length, b.data() + length, sizeof(uint64_t)) ==
             0) {
    length += sizeof(uint64_t);
  }
  while (length < limit && a[length] == b[length]) ++length;
  return length;
}

}  // namespace relayout::ocdbt

#endif  // RELAYOUT_CC_OCDBT_COMMON_PREFIX_H_
