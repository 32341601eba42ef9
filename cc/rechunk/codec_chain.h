#ifndef RELAYOUT_CC_RECHUNK_CODEC_CHAIN_H_
#define RELAYOUT_CC_RECHUNK_CODEC_CHAIN_H_

#include <string>
#include <vector>

#include "cc/base/result.h"
#include "cc/rechunk/task.h"

namespace relayout::rechunk {

/// Returns the chain of codecs that are called `zstd` and `crc32c`, in the
/// order of encoding.
///
/// Errors: `kUnsupported` when there is another one, or more than one `zstd`,
/// or more than one `crc32c` before or after it.
Result<CodecChain> ParseCodecChain(const std::vector<std::string>& names);

}  // namespace relayout::rechunk

#endif  // RELAYOUT_CC_RECHUNK_CODEC_CHAIN_H_
