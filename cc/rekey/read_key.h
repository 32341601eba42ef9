#ifndef RELAYOUT_CC_REKEY_READ_KEY_H_
#define RELAYOUT_CC_REKEY_READ_KEY_H_

#include <optional>
#include <string>
#include <string_view>

#include "cc/base/result.h"
#include "cc/ocdbt/listing.h"
#include "cc/rekey/value_part.h"

namespace relayout::rekey {

/// Returns the entry of `key`, or nullptr.
const ocdbt::Entry* FindEntry(const ocdbt::Listing& listing,
                              std::string_view key);

/// Returns a copy of the value of `entry`, or of the part `range` of it.
///
/// Errors: `kCorrupt` when the range leaves the value; those of
/// `ocdbt::ReadValue`.
Result<std::string> ReadEntry(const ocdbt::Listing& listing,
                              const ocdbt::Entry& entry,
                              const std::optional<ValueRange>& range);

}  // namespace relayout::rekey

#endif  // RELAYOUT_CC_REKEY_READ_KEY_H_
