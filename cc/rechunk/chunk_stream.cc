#include "cc/rechunk/chunk_stream.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "cc/base/byte_buffer.h"
#include "cc/base/crc32c.h"
#include "cc/base/result.h"
#include "cc/base/str_cat.h"
#include "cc/base/zstd_codec.h"
#include "cc/rechunk/phase_times.h"
#include "cc/rechunk/stored_chunk.h"
#include "cc/rechunk/task.h"

namespace relayout::rechunk {
namespace {

std::string_view View(std::span<const char> bytes) {
  return {bytes.data(), bytes.size()};
}

Status CheckChecksum(std::span<const char> stored, uint32_t computed) {
  uint32_t value;
  std::memcpy(&value, stored.data(), sizeof(value));
  if (value == computed) return {};
  return Corrupt(
      StrCat("checksum is ", value, ", that of the bytes is ", computed));
}

std::unexpected<Error> WrongLength(uint64_t got, uint64_t want) {
  return Corrupt(StrCat("it holds ", got, " bytes instead of ", want));
}

uint64_t ChecksumBytes(bool has_checksum) {
  return has_checksum ? kChecksumBytes : 0;
}

}  // namespace

ChunkStream::ChunkStream(StoredBytes stored, CodecChain codecs,
                         uint64_t num_content_bytes, size_t num_buffer_bytes)
    : stored_(std::move(stored)),
      codecs_(codecs),
      num_content_bytes_(num_content_bytes),
      num_payload_bytes_(
          stored_.size() -
          std::min(stored_.size(), ChecksumBytes(codecs.has_outer_checksum))),
      num_buffer_bytes_(num_buffer_bytes) {}

Result<uint64_t> ChunkStream::Open() {
  const uint64_t num_bytes =
      num_content_bytes_ + ChecksumBytes(codecs_.has_inner_checksum);
  if (!codecs_.has_zstd) {
    if (num_payload_bytes_ == num_bytes) return 0;
    return WrongLength(num_payload_bytes_, num_bytes);
  }
  std::array<char, ZstdDecoder::kMaxHeaderBytes> header;
  const std::span start = std::span(header).first(
      std::min<uint64_t>(header.size(), num_payload_bytes_));
  RELAYOUT_RETURN_IF_ERROR(stored_.Read(0, start));
  RELAYOUT_ASSIGN_OR_RETURN(
      const uint64_t num_decoder_bytes,
      ZstdDecoder::NumBytesNeeded(View(start), num_bytes));
  return num_decoder_bytes + num_buffer_bytes_;
}

Status ChunkStream::Read(std::span<char> output, PhaseTimes& times) {
  RELAYOUT_RETURN_IF_ERROR(ReadContent(output, times));
  position_ += output.size();
  if (codecs_.has_inner_checksum) {
    const PhaseTimer timer(Phase::kDecode, times);
    inner_checksum_ = Crc32c(View(output), inner_checksum_);
  }
  return {};
}

Status ChunkStream::Finish(std::span<char> scratch, PhaseTimes& times) {
  while (position_ < num_content_bytes_) {
    RELAYOUT_RETURN_IF_ERROR(
        Read(scratch.first(std::min<uint64_t>(scratch.size(),
                                              num_content_bytes_ - position_)),
             times));
  }
  if (codecs_.has_inner_checksum) {
    RELAYOUT_RETURN_IF_ERROR(CheckInnerChecksum(times));
  }
  if (codecs_.has_zstd) RELAYOUT_RETURN_IF_ERROR(CheckFrameEnd(times));
  return codecs_.has_outer_checksum ? CheckOuterChecksum() : Status();
}

Status ChunkStream::ReadContent(std::span<char> output, PhaseTimes& times) {
  return codecs_.has_zstd ? DecodeContent(output, times)
                          : ReadPayload(output, times);
}

Status ChunkStream::DecodeContent(std::span<char> output, PhaseTimes& times) {
  if (!decoder_.has_value()) decoder_.emplace();
  size_t done = 0;
  while (done < output.size()) {
    if (is_frame_at_end_) {
      return WrongLength(position_ + done, num_content_bytes_);
    }
    if (input_.empty()) RELAYOUT_RETURN_IF_ERROR(Refill(times));
    const PhaseTimer timer(Phase::kDecode, times);
    RELAYOUT_ASSIGN_OR_RETURN(const ZstdDecoder::Step step,
                              decoder_->Decode(input_, output.subspan(done)));
    if (step.num_written == 0 && step.num_read == 0 && !step.at_end) {
      return Corrupt("zstd frame is cut short");
    }
    input_.remove_prefix(step.num_read);
    done += step.num_written;
    is_frame_at_end_ = step.at_end;
  }
  return {};
}

Status ChunkStream::Refill(PhaseTimes& times) {
  if (buffer_.size() == 0) buffer_ = ByteBuffer(num_buffer_bytes_);
  const std::span part(
      buffer_.data(),
      std::min<uint64_t>(buffer_.size(),
                         num_payload_bytes_ - payload_position_));
  RELAYOUT_RETURN_IF_ERROR(ReadPayload(part, times));
  input_ = View(part);
  return {};
}

Status ChunkStream::ReadPayload(std::span<char> output, PhaseTimes& times) {
  const PhaseTimer timer(Phase::kRead, times);
  RELAYOUT_RETURN_IF_ERROR(stored_.Read(payload_position_, output));
  payload_position_ += output.size();
  if (codecs_.has_outer_checksum) {
    outer_checksum_ = Crc32c(View(output), outer_checksum_);
  }
  return {};
}

Status ChunkStream::CheckInnerChecksum(PhaseTimes& times) {
  std::array<char, kChecksumBytes> stored;
  RELAYOUT_RETURN_IF_ERROR(ReadContent(stored, times));
  return CheckChecksum(stored, inner_checksum_);
}

Status ChunkStream::CheckFrameEnd(PhaseTimes& times) {
  while (!is_frame_at_end_) {
    char surplus;
    if (input_.empty()) RELAYOUT_RETURN_IF_ERROR(Refill(times));
    if (!decoder_.has_value()) decoder_.emplace();
    RELAYOUT_ASSIGN_OR_RETURN(const ZstdDecoder::Step step,
                              decoder_->Decode(input_, {&surplus, 1}));
    if (step.num_written > 0) {
      return Corrupt(
          StrCat("it holds more than ", num_content_bytes_, " bytes"));
    }
    if (step.num_read == 0 && !step.at_end) {
      return Corrupt("zstd frame is cut short");
    }
    input_.remove_prefix(step.num_read);
    is_frame_at_end_ = step.at_end;
  }
  const uint64_t num_used = payload_position_ - input_.size();
  if (num_used == num_payload_bytes_) return {};
  return Corrupt(StrCat("zstd frame ends after ", num_used, " of ",
                        num_payload_bytes_, " bytes"));
}

Status ChunkStream::CheckOuterChecksum() {
  if (stored_.size() < kChecksumBytes) {
    return Corrupt("it is too short for its checksum");
  }
  std::array<char, kChecksumBytes> stored;
  RELAYOUT_RETURN_IF_ERROR(stored_.Read(num_payload_bytes_, stored));
  return CheckChecksum(stored, outer_checksum_);
}

namespace {

/// Takes the checksum off the end of `bytes`.
Status TakeChecksum(std::string_view& bytes) {
  if (bytes.size() < kChecksumBytes) {
    return Corrupt("it is too short for its checksum");
  }
  const std::string_view stored = bytes.substr(bytes.size() - kChecksumBytes);
  bytes.remove_suffix(kChecksumBytes);
  return CheckChecksum(stored, Crc32c(bytes));
}

}  // namespace

Result<std::string_view> DecodeChunk(std::string_view stored, CodecChain codecs,
                                     uint64_t num_content_bytes,
                                     std::span<char> output,
                                     ZstdDecoder& decoder) {
  if (codecs.has_outer_checksum) {
    RELAYOUT_RETURN_IF_ERROR(TakeChecksum(stored));
  }
  if (codecs.has_zstd) {
    const auto content = output.first(num_content_bytes +
                                      ChecksumBytes(codecs.has_inner_checksum));
    RELAYOUT_RETURN_IF_ERROR(decoder.DecodeWhole(stored, content));
    stored = View(content);
  }
  if (codecs.has_inner_checksum) {
    RELAYOUT_RETURN_IF_ERROR(TakeChecksum(stored));
  }
  if (stored.size() == num_content_bytes) return stored;
  return WrongLength(stored.size(), num_content_bytes);
}

}  // namespace relayout::rechunk
