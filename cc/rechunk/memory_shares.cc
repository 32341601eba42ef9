#include "cc/rechunk/memory_shares.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>

#include "cc/base/quote.h"
#include "cc/base/result.h"
#include "cc/base/str_cat.h"
#include "cc/base/zstd_codec.h"
#include "cc/rechunk/checked_task.h"
#include "cc/rechunk/task.h"
#include "cc/rechunk/unit_buffer.h"

namespace relayout::rechunk {
namespace {

constexpr uint64_t kMinPieceBytes = 64 << 10;
constexpr uint64_t kMaxPieceBytes = 512 << 10;
/// Units are no larger: what is decoded should still be in a cache when it is
/// encoded.
constexpr uint64_t kMaxUnitBytes = 8 << 20;
/// Window of the usual levels of zstd, and what a decoder takes beside it.
constexpr uint64_t kUsualWindowBytes = 2 << 20;
constexpr uint64_t kDecoderBytes = 768 << 10;
/// Stacks and small things of a worker.
constexpr uint64_t kWorkerBytes = 64 << 10;

uint64_t NumEncoderBytes(const CheckedTask& task) {
  if (task.task.targets.empty()) return 0;
  const auto level = task.task.targets.front().zstd_level;
  if (!level.has_value()) return 0;
  return ZstdEncoder::NumBytesNeeded(*level, task.target.num_chunk_bytes);
}

uint64_t NumStreamBytes(const CheckedTask& task, uint64_t num_piece_bytes) {
  uint64_t num_bytes = 0;
  for (size_t i = 0; i < task.sources.size(); ++i) {
    if (!task.task.sources[i].codecs.has_zstd ||
        !IsStreamed(task, i, num_piece_bytes)) {
      continue;
    }
    const uint64_t window =
        std::min(task.sources[i].num_chunk_bytes, kUsualWindowBytes);
    num_bytes = std::max(num_bytes, window + kDecoderBytes + num_piece_bytes);
  }
  return num_bytes;
}

Status CheckFits(const CheckedTask& task, const MemoryShares& shares) {
  if (task.num_elements == 0) return {};
  const uint64_t needed =
      shares.worker + shares.streams + NumUnitBytes(task, 1);
  if (needed <= shares.limit) return {};
  return InvalidArgument(
      StrCat("array ", Quote(task.task.targets.front().array),
             ": a chunk takes at least ", needed,
             " bytes of memory to write; the limit is ", shares.limit));
}

}  // namespace

bool IsStreamed(const CheckedTask& task, uint64_t source,
                uint64_t num_piece_bytes) {
  const CodecChain& codecs = task.task.sources[source].codecs;
  const bool is_encoded =
      codecs.has_zstd || codecs.has_inner_checksum || codecs.has_outer_checksum;
  return is_encoded && task.sources[source].num_chunk_bytes > num_piece_bytes;
}

Result<MemoryShares> ShareMemory(std::span<const CheckedTask> tasks,
                                 uint64_t limit) {
  MemoryShares shares = {.limit = limit};
  shares.piece =
      std::clamp(limit / 512 / 4096 * 4096, kMinPieceBytes, kMaxPieceBytes);
  uint64_t num_encoder_bytes = 0;
  for (const CheckedTask& task : tasks) {
    num_encoder_bytes = std::max(num_encoder_bytes, NumEncoderBytes(task));
    shares.streams =
        std::max(shares.streams, NumStreamBytes(task, shares.piece));
  }
  shares.worker = kWorkerBytes + 2 * shares.piece +
                  ZstdDecoder::NumBytesNeeded() + num_encoder_bytes;
  for (const CheckedTask& task : tasks) {
    RELAYOUT_RETURN_IF_ERROR(CheckFits(task, shares));
  }
  shares.units = limit - std::min(limit, shares.worker + shares.streams);
  return shares;
}

uint64_t MaxUnitChunks(const CheckedTask& task, const MemoryShares& shares,
                       bool is_pass) {
  const uint64_t num_unit_bytes =
      is_pass ? shares.limit / 4 : std::min(shares.limit / 8, kMaxUnitBytes);
  // Encoded chunks may be a little longer than decoded ones, and one more is
  // needed for the encoding.
  const uint64_t num_room_bytes =
      shares.units - std::min(shares.units, NumUnitBytes(task, 1));
  const uint64_t num_more_bytes = NumUnitBytes(task, 2) - NumUnitBytes(task, 1);
  return std::clamp<uint64_t>(num_unit_bytes / task.target.num_chunk_bytes, 1,
                              1 + num_room_bytes / num_more_bytes);
}

void ExtendShares(int num_threads, uint64_t num_unit_bytes,
                  MemoryShares& shares) {
  const uint64_t needed = shares.worker + shares.streams + num_unit_bytes;
  uint64_t spare = shares.limit - std::min(shares.limit, needed);
  if (shares.streams > 0) {
    const uint64_t quarter = shares.limit / 4;
    const uint64_t more =
        std::min(spare, quarter - std::min(quarter, shares.streams));
    shares.streams += more;
    spare -= more;
  }
  const uint64_t num_wanted =
      num_threads > 0 ? static_cast<uint64_t>(num_threads)
                      : std::max(std::thread::hardware_concurrency(), 1U);
  const uint64_t num_afforded =
      1 + std::min(spare, shares.limit / 4) / shares.worker;
  const uint64_t num_workers = std::min(num_wanted, num_afforded);
  shares.num_workers = static_cast<int>(num_workers);
  const uint64_t rest =
      shares.limit -
      std::min(shares.limit, shares.streams + num_workers * shares.worker);
  // One that each worker is at, and one that waits to be written; more would
  // only touch more memory.
  shares.units = std::min(rest, 2 * (num_workers + 1) * num_unit_bytes);
}

}  // namespace relayout::rechunk
