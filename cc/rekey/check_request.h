#ifndef RELAYOUT_CC_REKEY_CHECK_REQUEST_H_
#define RELAYOUT_CC_REKEY_CHECK_REQUEST_H_

/// \file
/// What can be said about a request without looking at any key.

#include <cstddef>

#include "cc/base/result.h"
#include "cc/rekey/plan.h"

namespace relayout::rekey {

/// Sorts the filters of every move by axis and checks that each move and drop
/// names one of `num_listings` listings, that the axes of each move fit its
/// source grid, and that every array that receives chunks receives metadata.
///
/// Errors: `kInvalidArgument` naming the arrays of the move.
Status NormalizeRequest(Request& request, size_t num_listings);

}  // namespace relayout::rekey

#endif  // RELAYOUT_CC_REKEY_CHECK_REQUEST_H_
