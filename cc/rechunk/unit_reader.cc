#include "cc/rechunk/unit_reader.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "cc/base/quote.h"
#include "cc/base/result.h"
#include "cc/base/str_cat.h"
#include "cc/rechunk/chains.h"
#include "cc/rechunk/chunk_stream.h"
#include "cc/rechunk/linear_range.h"
#include "cc/rechunk/phase_times.h"
#include "cc/rechunk/raw_runs.h"
#include "cc/rechunk/rewrite_plan.h"
#include "cc/rechunk/source_parts.h"
#include "cc/rechunk/stored_chunk.h"
#include "cc/rechunk/stream_pool.h"
#include "cc/rechunk/unit_buffer.h"

namespace relayout::rechunk {
namespace {

/// Gaps up to here are read rather than skipped.
constexpr uint64_t kMaxGapBytes = 32 << 10;

bool IsRaw(const CodecChain& codecs) {
  return !codecs.has_zstd && !codecs.has_inner_checksum &&
         !codecs.has_outer_checksum;
}

}  // namespace

UnitReader::UnitReader(ReaderContext& context)
    : context_(context),
      // A decoded chunk may be followed by its checksum.
      piece_(context.memory.piece + kChecksumBytes),
      stored_(context.memory.piece) {}

Result<bool> UnitReader::Fill(const PlannedTask& task, uint64_t unit,
                              UnitBuffer& buffer, PhaseTimes& times) {
  Result<bool> result = true;
  ForEachPart(task.task, buffer.unit().box, [&](const SourcePart& part) {
    result = FillPart(task, unit, part, buffer, times);
    return result.has_value() && *result;
  });
  return result;
}

Result<bool> UnitReader::FillPart(const PlannedTask& task, uint64_t unit,
                                  const SourcePart& part, UnitBuffer& buffer,
                                  PhaseTimes& times) {
  const SourceArray& source = task.task.task.sources[part.source];
  const SourceForm& form = task.task.sources[part.source];
  const auto chunk = FindChunk(source, ArrayIndex(task.task, part));
  if (!chunk.has_value()) {
    const PhaseTimer timer(Phase::kCopy, times);
    buffer.Fill(form, part.wanted);
    return true;
  }
  LinearRange range =
      EnclosingRange(form.placement, RelativeBox(task.task, part));
  range.begin *= form.num_element_bytes;
  range.end *= form.num_element_bytes;
  const Job job = {.task = task,
                   .part = part,
                   .origin = form.placement.ChunkBox(part.chunk).begin,
                   .range = range,
                   .buffer = buffer,
                   .times = times};
  auto result = ReadStored(job, unit, *chunk);
  if (result.has_value()) return result;
  return InContext(std::move(result).error(),
                   StrCat("array ", Quote(source.array), ", chunk ",
                          Quote(chunk->entry.key)));
}

Result<bool> UnitReader::ReadStored(const Job& job, uint64_t unit,
                                    const FoundChunk& chunk) {
  const CheckedTask& task = job.task.task;
  RELAYOUT_ASSIGN_OR_RETURN(const StoredBytes stored,
                            context_.files.Open(chunk));
  const CodecChain& codecs = task.task.sources[job.part.source].codecs;
  const uint64_t num_chunk_bytes =
      task.sources[job.part.source].num_chunk_bytes;
  if (IsRaw(codecs)) {
    RELAYOUT_RETURN_IF_ERROR(ReadRaw(job, stored));
    return true;
  }
  if (num_chunk_bytes <= context_.memory.piece &&
      stored.size() <= stored_.size()) {
    RELAYOUT_RETURN_IF_ERROR(ReadWhole(job, stored));
    return true;
  }
  return ReadStream(job, stored, job.task.chains.Find(task, unit, job.part));
}

Status UnitReader::ReadRaw(const Job& job, const StoredBytes& stored) {
  const SourceForm& form = job.task.task.sources[job.part.source];
  if (stored.size() != form.num_chunk_bytes) {
    return Corrupt(StrCat("it holds ", stored.size(), " bytes instead of ",
                          form.num_chunk_bytes));
  }
  Status status;
  ForEachRun(form.placement, RelativeBox(job.task.task, job.part),
             kMaxGapBytes / form.num_element_bytes, [&](LinearRange run) {
               uint64_t begin = run.begin * form.num_element_bytes;
               const uint64_t end = run.end * form.num_element_bytes;
               while (begin < end && status.has_value()) {
                 const std::span piece(
                     piece_.data(),
                     std::min(context_.memory.piece, end - begin));
                 {
                   const PhaseTimer timer(Phase::kRead, job.times);
                   status = stored.Read(begin, piece);
                 }
                 if (!status.has_value()) break;
                 num_bytes_read_ += piece.size();
                 Scatter(job, begin, {piece.data(), piece.size()});
                 begin += piece.size();
               }
               return status.has_value();
             });
  return status;
}

Status UnitReader::ReadWhole(const Job& job, const StoredBytes& stored) {
  const std::span input(stored_.data(), stored.size());
  {
    const PhaseTimer timer(Phase::kRead, job.times);
    RELAYOUT_RETURN_IF_ERROR(stored.Read(0, input));
    num_bytes_read_ += input.size();
  }
  std::string_view chunk;
  {
    const PhaseTimer timer(Phase::kDecode, job.times);
    const SourceForm& form = job.task.task.sources[job.part.source];
    RELAYOUT_ASSIGN_OR_RETURN(
        chunk, DecodeChunk({input.data(), input.size()},
                           job.task.task.task.sources[job.part.source].codecs,
                           form.num_chunk_bytes, {piece_.data(), piece_.size()},
                           decoder_));
  }
  Scatter(job, 0, chunk);
  return {};
}

Result<bool> UnitReader::ReadStream(const Job& job, const StoredBytes& stored,
                                    const std::optional<ChainUse>& use) {
  StreamPool& pool = context_.streams;
  PooledStream pooled;
  if (use.has_value()) {
    const PhaseTimer timer(Phase::kWait, job.times);
    if (!pool.WaitForTurn(use->chain, use->turn)) return false;
    pooled = pool.Take(use->chain);
  }
  if (pooled.stream == nullptr) {
    RELAYOUT_ASSIGN_OR_RETURN(const bool is_open,
                              OpenStream(job, stored, pooled));
    if (!is_open) return false;
  }
  RELAYOUT_RETURN_IF_ERROR(Advance(job, *pooled.stream));
  const bool is_last = !use.has_value() || use->is_last;
  if (is_last) {
    RELAYOUT_RETURN_IF_ERROR(pooled.stream->Finish(
        {piece_.data(), context_.memory.piece}, job.times));
    pooled.stream.reset();
    pool.Release(pooled.num_bytes);
  } else {
    pool.Park(use->chain, std::move(pooled));
  }
  if (use.has_value()) pool.EndTurn(use->chain, is_last);
  return true;
}

Result<bool> UnitReader::OpenStream(const Job& job, const StoredBytes& stored,
                                    PooledStream& pooled) {
  const uint64_t source = job.part.source;
  pooled.stream = std::make_unique<ChunkStream>(
      stored, job.task.task.task.sources[source].codecs,
      job.task.task.sources[source].num_chunk_bytes, context_.memory.piece);
  RELAYOUT_ASSIGN_OR_RETURN(pooled.num_bytes, pooled.stream->Open());
  if (pooled.num_bytes > context_.streams.limit()) {
    return InvalidArgument(
        StrCat("decoding it takes ", pooled.num_bytes, " bytes, more than the ",
               context_.streams.limit(), " that the memory limit of ",
               context_.memory.limit, " leaves for that"));
  }
  num_bytes_read_ += stored.size();
  const PhaseTimer timer(Phase::kWait, job.times);
  return context_.streams.Reserve(pooled.num_bytes);
}

Status UnitReader::Advance(const Job& job, ChunkStream& stream) {
  // What precedes the range must be decoded, but is not wanted.
  while (stream.position() < job.range.end) {
    const uint64_t begin = stream.position();
    const uint64_t end =
        begin < job.range.begin ? job.range.begin : job.range.end;
    const std::span piece(piece_.data(),
                          std::min(context_.memory.piece, end - begin));
    RELAYOUT_RETURN_IF_ERROR(stream.Read(piece, job.times));
    if (begin >= job.range.begin) {
      Scatter(job, begin, {piece.data(), piece.size()});
    }
  }
  return {};
}

void UnitReader::Scatter(const Job& job, uint64_t first_byte,
                         std::string_view bytes) {
  const PhaseTimer timer(Phase::kCopy, job.times);
  job.buffer.Scatter(job.task.task.sources[job.part.source], job.origin,
                     job.part.wanted, first_byte, bytes);
}

}  // namespace relayout::rechunk
