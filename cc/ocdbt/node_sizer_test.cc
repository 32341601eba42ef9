#include "cc/ocdbt/node_sizer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cc/base/byte_view.h"
#include "cc/base/str_cat.h"
#include "cc/ocdbt/btree_node.h"
#include "cc/ocdbt/config.h"
#include "cc/ocdbt/entry.h"
#include "cc/ocdbt/record.h"
#include "cc/ocdbt/test_tree.h"
#include "cc/testing/test.h"

namespace relayout::ocdbt {
namespace {

class Sample {
 public:
  explicit Sample(uint32_t seed) : random_(seed) {
    for (int i = 0; i < 200; ++i) {
      files_.push_back({i % 3 == 0 ? "p/" : "", StrCat("d/", i)});
    }
    for (int i = 0; i < 3000; ++i) {
      keys_.push_back(StrCat("layers_", random_() % 50, ".kernel/", random_()));
    }
    std::ranges::sort(keys_);
  }

  std::vector<Entry> Entries() {
    std::vector<Entry> entries;
    entries.reserve(keys_.size());
    for (const std::string& key : keys_) {
      entries.push_back(random_() % 4 == 0
                            ? InlineEntry(key, std::string_view(key).substr(3))
                            : IndirectEntry(key, File(), random_(), random_()));
    }
    return entries;
  }

  std::vector<InteriorEntry> Children() {
    std::vector<InteriorEntry> children;
    children.reserve(keys_.size());
    for (const std::string& key : keys_) {
      children.push_back({key,
                          static_cast<uint32_t>(random_() % 8),
                          {{File(), random_(), 1000}, {9, 9999, random_()}}});
    }
    return children;
  }

  uint32_t File() { return static_cast<uint32_t>(random_() % files_.size()); }
  std::span<const DataFileId> files() const { return files_; }

 private:
  std::mt19937 random_;
  std::vector<DataFileId> files_;
  std::vector<std::string> keys_;
};

size_t BodySize(const EncodedNode& node) {
  return DecodeRecord(RecordKind::kBtreeNode, ByteView::Own(node.record))
      ->size();
}

TEST(NodesFilledToTheLimitKeepIt) {
  Sample sample(1);
  const auto entries = sample.Entries();
  NodeSizer sizer(sample.files());
  for (const uint64_t limit : {200, 600, 5000, 100'000, 8 << 20}) {
    for (std::span<const Entry> rest(entries); !rest.empty();) {
      const size_t count = sizer.CountFitting(rest, limit);
      ASSERT_TRUE(count > 0);
      for (const bool is_root : {true, false}) {
        const auto node = EncodeLeafNode(rest.first(count), sample.files(),
                                         Config(), is_root);
        ASSERT_OK(node);
        ASSERT_TRUE(BodySize(*node) <= limit);
      }
      rest = rest.subspan(count);
    }
  }
}

TEST(InteriorNodesFilledToTheLimitKeepIt) {
  Sample sample(2);
  const auto children = sample.Children();
  NodeSizer sizer(sample.files());
  for (const uint64_t limit : {200, 600, 5000, 100'000}) {
    for (std::span<const InteriorEntry> rest(children); !rest.empty();) {
      const size_t count = sizer.CountFitting(rest, limit);
      ASSERT_TRUE(count > 0);
      const auto node = EncodeInteriorNode(1, rest.first(count), sample.files(),
                                           Config(), true);
      ASSERT_OK(node);
      ASSERT_TRUE(BodySize(*node) <= limit);
      rest = rest.subspan(count);
    }
  }
}

TEST(BoundIsClose) {
  Sample sample(3);
  const auto entries = sample.Entries();
  NodeSizer sizer(sample.files());
  const size_t count =
      sizer.CountFitting(std::span<const Entry>(entries), 50'000);
  const auto node = EncodeLeafNode(std::span(entries).first(count),
                                   sample.files(), Config(), true);
  ASSERT_OK(node);
  EXPECT_TRUE(BodySize(*node) > 45'000);
}

TEST(NothingFitsBelowTheFirstEntry) {
  const std::vector<Entry> entries = {InlineEntry("key", "value")};
  NodeSizer sizer({});
  EXPECT_EQ(sizer.CountFitting(std::span<const Entry>(entries), 10), 0);
  EXPECT_EQ(sizer.CountFitting(std::span<const Entry>(entries), 100), 1);
  EXPECT_EQ(sizer.CountFitting(std::span<const Entry>(), 100), 0);
}

TEST(NoMoreEntriesThanANodeMayHave) {
  std::vector<std::string> keys;
  for (size_t i = 0; i <= kMaxNodeEntries; ++i) {
    keys.push_back(StrCat(10'000'000 + i));
  }
  std::vector<Entry> entries;
  entries.reserve(keys.size());
  for (const auto& key : keys) entries.push_back(InlineEntry(key, ""));
  NodeSizer sizer({});
  EXPECT_EQ(sizer.CountFitting(std::span<const Entry>(entries), UINT64_MAX),
            kMaxNodeEntries);
}

}  // namespace
}  // namespace relayout::ocdbt
