#ifndef RELAYOUT_CC_REKEY_KEY_ARENA_H_
#define RELAYOUT_CC_REKEY_KEY_ARENA_H_

/// \file
/// Memory for many short keys that live and die together.

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

namespace relayout::rekey {

/// Copies keys into large blocks; the copies stay where they are until the
/// arena dies.
class KeyArena {
 public:
  /// Returns a view of a copy of `key`.
  std::string_view Copy(std::string_view key);

 private:
  static constexpr size_t kBlockBytes = 1 << 16;

  void AddBlock(size_t num_bytes);

  std::vector<std::unique_ptr<char[]>> blocks_;
  char* next_ = nullptr;
  size_t num_free_bytes_ = 0;
};

}  // namespace relayout::rekey

#endif  // RELAYOUT_CC_REKEY_KEY_ARENA_H_
