#ifndef RELAYOUT_CC_REKEY_VALUE_PART_H_
#define RELAYOUT_CC_REKEY_VALUE_PART_H_

/// \file
/// Ranges of values, without reading them.

#include <cstdint>

#include "cc/base/result.h"
#include "cc/ocdbt/entry.h"

namespace relayout::rekey {

/// A range of a value, bytes.
struct ValueRange {
  uint64_t offset = 0;
  uint64_t length = 0;
};

/// Checks that `range` lies within `value`; the error is `kCorrupt`.
Status CheckPart(const ocdbt::Value& value, const ValueRange& range);

/// Returns where the part `range` of `value` lies; it must be within.
ocdbt::Value PartOf(ocdbt::Value value, const ValueRange& range);

}  // namespace relayout::rekey

#endif  // RELAYOUT_CC_REKEY_VALUE_PART_H_
