#include "cc/rechunk/ordered_writer.h"

#include <cstdint>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "cc/base/result.h"
#include "cc/rechunk/unit_encoder.h"

namespace relayout::rechunk {
namespace {

constexpr size_t kMaxHeldBackBytes = 256 << 10;

}  // namespace

Status OrderedWriter::Write(uint64_t number, EncodedUnit unit) {
  std::unique_lock lock(mutex_);
  waiting_.emplace(number, std::move(unit));
  if (is_writing_) return {};  // whoever writes will come to it
  is_writing_ = true;
  while (!waiting_.empty() && waiting_.begin()->first == next_) {
    auto node = waiting_.extract(waiting_.begin());
    lock.unlock();
    Status status = WriteUnit(node.mapped());
    pool_.Release(std::move(node.mapped().buffer));
    lock.lock();
    if (!status.has_value()) {
      is_writing_ = false;
      return status;
    }
    ++next_;
    num_decoded_bytes_ += node.mapped().num_decoded_bytes;
  }
  is_writing_ = false;
  return {};
}

Status OrderedWriter::Flush() {
  Status status = file_.Append(held_back_);
  held_back_.clear();
  return status;
}

uint64_t OrderedWriter::num_decoded_bytes() const {
  const std::lock_guard lock(mutex_);
  return num_decoded_bytes_;
}

std::vector<WrittenChunk> OrderedWriter::TakeChunks() {
  return std::move(chunks_);
}

Status OrderedWriter::WriteUnit(EncodedUnit& unit) {
  // Chunks side by side are written in one go.
  std::string_view run;
  for (EncodedChunk& chunk : unit.chunks) {
    const std::string_view bytes(unit.buffer.data() + chunk.begin,
                                 chunk.length);
    if (!run.empty() && run.data() + run.size() == bytes.data()) {
      run = {run.data(), run.size() + bytes.size()};
    } else {
      RELAYOUT_RETURN_IF_ERROR(Append(run));
      run = bytes;
    }
    chunks_.push_back({std::move(chunk.key), num_bytes_, chunk.length});
    num_bytes_ += chunk.length;
  }
  return Append(run);
}

Status OrderedWriter::Append(std::string_view bytes) {
  if (held_back_.size() + bytes.size() <= kMaxHeldBackBytes) {
    held_back_.append(bytes);
    return {};
  }
  RELAYOUT_RETURN_IF_ERROR(Flush());
  RELAYOUT_RETURN_IF_ERROR(file_.Append(bytes));
  file_.StartWriteback();
  return {};
}

}  // namespace relayout::rechunk
