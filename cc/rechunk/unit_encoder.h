#ifndef RELAYOUT_CC_RECHUNK_UNIT_ENCODER_H_
#define RELAYOUT_CC_RECHUNK_UNIT_ENCODER_H_

/// \file
/// Turns the target chunks of a unit into what is to be written.

#include <cstdint>
#include <string>
#include <vector>

#include "cc/base/byte_buffer.h"
#include "cc/base/result.h"
#include "cc/base/zstd_codec.h"
#include "cc/rechunk/checked_task.h"
#include "cc/rechunk/unit_buffer.h"

namespace relayout::rechunk {

/// An encoded chunk.
struct EncodedChunk {
  std::string key;
  uint64_t begin = 0;  ///< in the buffer of the unit
  uint64_t length = 0;
};

struct EncodedUnit {
  ByteBuffer buffer;
  std::vector<EncodedChunk> chunks;  ///< begins rise
  uint64_t num_decoded_bytes = 0;    ///< of the target arrays
};

/// Encodes the chunks of `buffer` that are to be stored.
///
/// Errors: `kSystem` when there is no memory.
Result<EncodedUnit> EncodeUnit(const CheckedTask& task, UnitBuffer buffer,
                               ZstdEncoder& encoder);

}  // namespace relayout::rechunk

#endif  // RELAYOUT_CC_RECHUNK_UNIT_ENCODER_H_
