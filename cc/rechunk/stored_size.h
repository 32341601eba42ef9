#ifndef RELAYOUT_CC_RECHUNK_STORED_SIZE_H_
#define RELAYOUT_CC_RECHUNK_STORED_SIZE_H_

#include <cstdint>

#include "cc/base/result.h"
#include "cc/rechunk/task.h"

namespace relayout::rechunk {

/// Returns the number of bytes that the chunks of `source` take as they are
/// stored.
///
/// Errors: `kCorrupt` when one of them lies outside the array's grid;
/// `kInvalidArgument` when a chunk length is 0.
Result<uint64_t> NumStoredBytes(const SourceArray& source);

}  // namespace relayout::rechunk

#endif  // RELAYOUT_CC_RECHUNK_STORED_SIZE_H_
