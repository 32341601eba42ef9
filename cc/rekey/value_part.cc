#include "cc/rekey/value_part.h"

#include "cc/base/str_cat.h"

namespace relayout::rekey {

Status CheckPart(const ocdbt::Value& value, const ValueRange& range) {
  const auto [offset, length] = range;
  if (offset <= value.length && length <= value.length - offset) return {};
  return Corrupt(StrCat("range [", offset, ", +", length, ") leaves its ",
                        value.length, "-byte value"));
}

ocdbt::Value PartOf(ocdbt::Value value, const ValueRange& range) {
  if (value.is_inline()) {
    value.inline_data += range.offset;
  } else {
    value.offset += range.offset;
  }
  value.length = range.length;
  return value;
}

}  // namespace relayout::rekey
