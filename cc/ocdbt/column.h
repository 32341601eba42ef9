#ifndef RELAYOUT_CC_OCDBT_COLUMN_H_
#define RELAYOUT_CC_OCDBT_COLUMN_H_

/// \file
/// Records hold their entries by column: one field of all entries, then the
/// next.  These read a field or column and name it in the error.

#include <cstddef>
#include <cstdint>
#include <expected>
#include <limits>
#include <string_view>
#include <vector>

#include "cc/base/result.h"
#include "cc/base/str_cat.h"
#include "cc/ocdbt/varint.h"

namespace relayout::ocdbt {

inline std::unexpected<Error> EndsEarly(std::string_view name,
                                        const ByteReader& reader) {
  return Corrupt(StrCat("the bytes end, or hold no integer, within ", name,
                        " (", reader.num_remaining(), " left)"));
}

/// Reads the varint `name`, which is at most `max`.
inline Result<uint64_t> ReadField(ByteReader& reader, std::string_view name,
                                  uint64_t max) {
  uint64_t value;
  if (!reader.ReadVarint(value)) return EndsEarly(name, reader);
  if (value > max) {
    return Corrupt(StrCat(name, " ", value, " exceeds the limit of ", max));
  }
  return value;
}

/// Reads the varint `name`, the number of things that take at least one byte
/// each; so a larger number than there are bytes is an error here, before
/// anyone makes room for that many.
inline Result<uint64_t> ReadCount(ByteReader& reader, std::string_view name,
                                  uint64_t max) {
  RELAYOUT_ASSIGN_OR_RETURN(const uint64_t count, ReadField(reader, name, max));
  if (count > reader.num_remaining()) {
    return Corrupt(StrCat(name, " ", count, " exceeds the ",
                          reader.num_remaining(), " bytes left"));
  }
  return count;
}

/// Reads `count` varints of at most `max`.
template <typename T>
Result<std::vector<T>> ReadColumn(
    ByteReader& reader, std::string_view name, size_t count,
    uint64_t max = std::numeric_limits<T>::max()) {
  if (count > reader.num_remaining()) return EndsEarly(name, reader);
  std::vector<T> column(count);
  for (size_t i = 0; i < count; ++i) {
    uint64_t value;
    if (!reader.ReadVarint(value)) return EndsEarly(name, reader);
    if (value > max) {
      return Corrupt(StrCat(name, " ", value, " of entry ", i,
                            " exceeds the limit of ", max));
    }
    column[i] = static_cast<T>(value);
  }
  return column;
}

/// Reads `count` bytes.
inline Result<std::string_view> ReadByteColumn(ByteReader& reader,
                                               std::string_view name,
                                               size_t count) {
  std::string_view bytes;
  if (!reader.ReadBytes(count, bytes)) return EndsEarly(name, reader);
  return bytes;
}

/// Checks that nothing follows what was read.
inline Status CheckAtEnd(const ByteReader& reader) {
  if (reader.num_remaining() == 0) return {};
  return Corrupt(StrCat(reader.num_remaining(), " bytes follow the end"));
}

}  // namespace relayout::ocdbt

#endif  // RELAYOUT_CC_OCDBT_COLUMN_H_
