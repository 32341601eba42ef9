#ifndef RELAYOUT_CC_RECHUNK_FAKE_SOURCE_H_
#define RELAYOUT_CC_RECHUNK_FAKE_SOURCE_H_

/// \file
/// Arrays for tests: a listing of values in memory, and tasks over it.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cc/ocdbt/listing.h"
#include "cc/rechunk/task.h"

namespace relayout::rechunk {

/// Returns a listing of `values`, all inline.
std::shared_ptr<const ocdbt::Listing> MakeListing(
    const std::map<std::string, std::string>& values);

/// Returns a source of bytes (dtype uint8) that are stored as they are.
SourceArray ByteSource(std::shared_ptr<const ocdbt::Listing> listing,
                       std::string array, std::vector<uint64_t> shape,
                       std::vector<uint64_t> chunk_shape);

/// Returns a target of bytes that are stored as they are.
TargetArray ByteTarget(std::string array, std::vector<uint64_t> shape,
                       std::vector<uint64_t> chunk_shape);

/// Returns a task with one array on each side, of the same axes.
RewriteTask PlainTask(SourceArray source, TargetArray target);

}  // namespace relayout::rechunk

#endif  // RELAYOUT_CC_RECHUNK_FAKE_SOURCE_H_
