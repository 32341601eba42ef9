#include "cc/rekey/key_arena.h"

#include <algorithm>

namespace relayout::rekey {

std::string_view KeyArena::Copy(std::string_view key) {
  if (key.size() > num_free_bytes_) AddBlock(key.size());
  const std::string_view copy(next_, key.size());
  std::ranges::copy(key, next_);
  next_ += key.size();
  num_free_bytes_ -= key.size();
  return copy;
}

void KeyArena::AddBlock(size_t num_bytes) {
  num_free_bytes_ = std::max(num_bytes, kBlockBytes);
  blocks_.push_back(std::make_unique_for_overwrite<char[]>(num_free_bytes_));
  next_ = blocks_.back().get();
}

}  // namespace relayout::rekey
