#include "cc/rechunk/unit_encoder.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cc/base/result.h"
#include "cc/base/zstd_codec.h"
#include "cc/base/zstd_effort.h"
#include "cc/rechunk/checked_task.h"
#include "cc/rechunk/coords.h"
#include "cc/rechunk/task.h"
#include "cc/rechunk/unit_buffer.h"
#include "cc/zarr/chunk_key.h"

namespace relayout::rechunk {
namespace {

/// Returns the key of the target chunk at `chunk` of the common grid.
std::string ChunkKey(const CheckedTask& task, const Coords& chunk) {
  const TargetArray& target = task.task.targets[task.TargetAt(chunk)];
  std::vector<uint64_t> index;
  for (const uint32_t axis : task.target.placement.axes) {
    index.push_back(chunk[axis]);
  }
  std::string key = target.array + "/";
  zarr::AppendChunkKey(index, target.keys, key);
  return key;
}

uint64_t NumDecodedBytes(const CheckedTask& task, const Box& box) {
  uint64_t num_bytes = task.target.num_element_bytes;
  for (uint32_t axis = 0; axis < task.rank; ++axis) {
    num_bytes *= box.end[axis] - box.begin[axis];
  }
  return num_bytes;
}

}  // namespace

Result<EncodedUnit> EncodeUnit(const CheckedTask& task, UnitBuffer buffer,
                               ZstdEncoder& encoder) {
  const auto level = task.task.targets.front().zstd_level;
  EncodedUnit encoded;
  encoded.num_decoded_bytes = NumDecodedBytes(task, buffer.unit().box);
  Status status;
  ZstdEffort effort(encoder, level.value_or(0), encoded.num_decoded_bytes);
  uint64_t number = 0;
  uint64_t end = 0;  // of the encoded chunks so far
  ForEachPosition(task.rank, buffer.unit().chunks, [&](const Coords& position) {
    const uint64_t chunk = number++;
    if (!buffer.IsStored(chunk)) return true;
    const std::string_view bytes = buffer.ChunkBytes(chunk);
    EncodedChunk result = {
        .key = ChunkKey(task, position), .begin = end, .length = bytes.size()};
    if (level.has_value()) {
      const std::span output(buffer.front() + end,
                             ZstdEncoder::MaxFrameBytes(bytes.size()));
      const auto length = effort.Encode(bytes, output);
      if (!length.has_value()) {
        status = std::unexpected(length.error());
        return false;
      }
      result.length = *length;
    } else {
      result.begin = static_cast<uint64_t>(bytes.data() - buffer.front());
    }
    end = result.begin + result.length;
    encoded.chunks.push_back(std::move(result));
    return true;
  });
  RELAYOUT_RETURN_IF_ERROR(std::move(status));
  encoded.buffer = std::move(buffer).TakeBuffer();
  return encoded;
}

}  // namespace relayout::rechunk
