#ifndef RELAYOUT_CC_RECHUNK_RESULT_LISTING_H_
#define RELAYOUT_CC_RECHUNK_RESULT_LISTING_H_

#include <memory>
#include <string>
#include <vector>

#include "cc/base/result.h"
#include "cc/ocdbt/listing.h"
#include "cc/rechunk/ordered_writer.h"
#include "cc/rechunk/rewrite_plan.h"

namespace relayout::rechunk {

/// Returns the listing of the target arrays of `plan`, whose `chunks` lie in
/// `data_file` of `num_bytes`, below `directory`.
///
/// Errors: `kInvalidArgument` when two entries have one key.
Result<std::shared_ptr<const ocdbt::Listing>> MakeResultListing(
    const RewritePlan& plan, std::vector<WrittenChunk> chunks,
    const std::string& directory, const std::string& data_file,
    uint64_t num_bytes);

}  // namespace relayout::rechunk

#endif  // RELAYOUT_CC_RECHUNK_RESULT_LISTING_H_
