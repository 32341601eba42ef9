#include "cc/rekey/sort_entries.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "cc/testing/test.h"

namespace relayout::rekey {
namespace {

using ocdbt::Entry;

/// Keys of unlike lengths, in an order that is far from sorted.
std::vector<std::string> SomeKeys(size_t num_keys) {
  std::vector<std::string> keys;
  for (size_t i = 0; i < num_keys; ++i) {
    keys.push_back(std::to_string(i * 7919 % num_keys));
  }
  return keys;
}

std::vector<Entry> EntriesOf(const std::vector<std::string>& keys) {
  std::vector<Entry> entries;
  for (size_t i = 0; i < keys.size(); ++i) {
    Entry& entry = entries.emplace_back();
    entry.key = keys[i];
    entry.value.length = i;
  }
  return entries;
}

TEST(SortsAnyNumberOfEntries) {
  for (const size_t num_keys : {0, 1, 2, 1000, 16384, 16385, 100003}) {
    for (const int num_threads : {1, 3}) {
      const auto keys = SomeKeys(num_keys);
      auto entries = EntriesOf(keys);
      ASSERT_OK(SortEntries(entries, num_threads));
      ASSERT_EQ(entries.size(), num_keys);
      EXPECT_TRUE(std::ranges::is_sorted(entries, {}, &Entry::key));
      EXPECT_TRUE(std::ranges::all_of(entries, [&](const Entry& entry) {
        return keys[entry.value.length] == entry.key;
      }));
    }
  }
}

TEST(NamesAKeyThatOccursTwice) {
  auto keys = SomeKeys(50021);
  keys[40000] = keys[3];
  auto entries = EntriesOf(keys);
  const Status status = SortEntries(entries, 2);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().kind, ErrorKind::kCorrupt);
  EXPECT_CONTAINS(status.error().message, '"' + keys[3] + '"');
}

}  // namespace
}  // namespace relayout::rekey
