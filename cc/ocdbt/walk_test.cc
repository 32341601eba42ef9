#include "cc/ocdbt/walk.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cc/base/result.h"
#include "cc/base/str_cat.h"
#include "cc/io/safe_path.h"
#include "cc/ocdbt/btree_node.h"
#include "cc/ocdbt/data_files.h"
#include "cc/ocdbt/data_ref.h"
#include "cc/ocdbt/entry.h"
#include "cc/ocdbt/manifest.h"
#include "cc/ocdbt/test_tree.h"
#include "cc/testing/test.h"

namespace relayout::ocdbt {
namespace {

using Children = std::vector<InteriorEntry>;

Result<std::vector<BtreeNode>> Walk(const std::string& name,
                                    const TestTree& tree,
                                    const InteriorEntry& root, uint8_t height,
                                    int num_threads = 0) {
  DataFiles files(*io::RealDirectory(tree.Write(name, root, height)));
  return ReadLeaves(files, tree.MakeManifest(root, height).versions.back(),
                    tree.files, num_threads);
}

std::string Keys(const std::vector<BtreeNode>& leaves) {
  std::string keys;
  for (const BtreeNode& leaf : leaves) {
    for (const Entry& entry : leaf.entries) StrAppend(keys, entry.key, " ");
  }
  return keys;
}

/// A tree of two leaves, "m/a", "m/b" and "m/c", "m/d".
struct TwoLeaves {
  TestTree tree;
  Children children;

  TwoLeaves() {
    children.push_back(tree.AddLeaf(
        std::vector{InlineEntry("m/a", "1"), InlineEntry("m/b", "2")}));
    children.push_back(tree.AddLeaf(
        std::vector{InlineEntry("m/c", "3"), InlineEntry("m/d", "4")}));
  }
};

/// Damages the tree, and expects its walk to fail.
void ExpectError(const std::string& name, ErrorKind kind,
                 std::string_view message,
                 const std::function<void(TwoLeaves&)>& damage) {
  TwoLeaves two;
  damage(two);
  const InteriorEntry root = two.tree.AddInterior(1, two.children, true);
  const auto leaves = Walk(name, two.tree, root, 1);
  if (!EXPECT_FALSE(leaves.has_value())) return;
  EXPECT_EQ(leaves.error().kind, kind);
  EXPECT_CONTAINS(leaves.error().message, message);
}

TEST(ReadsLeavesInKeyOrder) {
  TwoLeaves two;
  const InteriorEntry root = two.tree.AddInterior(1, two.children, true);
  const auto leaves = Walk("order", two.tree, root, 1);
  ASSERT_OK(leaves);
  EXPECT_EQ(leaves->size(), 2);
  EXPECT_EQ(Keys(*leaves), "m/a m/b m/c m/d ");
}

TEST(ReadsARootThatIsALeaf) {
  TestTree tree;
  const auto root = tree.AddLeaf(std::vector{InlineEntry("a", "")}, true);
  const auto leaves = Walk("leaf", tree, root, 0);
  ASSERT_OK(leaves);
  EXPECT_EQ(Keys(*leaves), "a ");
}

TEST(NoRootMeansNoLeaves) {
  DataFiles files(*io::RealDirectory(NewDirectory("no_root")));
  Version version;
  version.root.location = DataRef::Missing();
  const auto leaves = ReadLeaves(files, version, {}, 1);
  ASSERT_OK(leaves);
  EXPECT_TRUE(leaves->empty());
}

/// A tree of `height` whose every interior node has two children.
InteriorEntry AddBinary(TestTree& tree, uint8_t height, uint32_t first,
                        std::vector<std::string>& keys, bool is_root) {
  if (height == 0) {
    keys.push_back(StrCat("key/", 1000 + first));
    return tree.AddLeaf(std::vector{InlineEntry(keys.back(), "v")}, is_root);
  }
  const uint32_t half = 1u << (height - 1);
  Children children;
  for (const uint32_t begin : {first, first + half}) {
    children.push_back(
        AddBinary(tree, static_cast<uint8_t>(height - 1), begin, keys, false));
  }
  return tree.AddInterior(height, children, is_root);
}

TEST(ReadsTallTreesWithAnyNumberOfThreads) {
  TestTree tree;
  std::vector<std::string> keys;
  keys.reserve(1 << 9);
  const InteriorEntry root = AddBinary(tree, 9, 0, keys, true);
  std::string expected;
  for (const auto& key : keys) StrAppend(expected, key, " ");
  for (const int num_threads : {1, 2, 8}) {
    const auto leaves =
        Walk(StrCat("tall", num_threads), tree, root, 9, num_threads);
    ASSERT_OK(leaves);
    EXPECT_EQ(leaves->size(), 512);
    EXPECT_EQ(Keys(*leaves), expected);
  }
}

/// One leaf may stand under several prefixes: its keys are relative.
TEST(ReadsSharedNodes) {
  TwoLeaves two;
  Children children;
  for (const std::string_view key : {"m/a", "n/a"}) {
    children.push_back(two.children[0]);
    children.back().key = key;
  }
  const auto root = two.tree.AddInterior(1, children, true);
  const auto leaves = Walk("shared", two.tree, root, 1);
  ASSERT_OK(leaves);
  EXPECT_EQ(Keys(*leaves), "m/a m/b n/a n/b ");
}

/// Levels that double unfold few nodes to a great many.
TEST(RefusesToUnfoldAFewNodesWithoutEnd) {
  TestTree tree;
  InteriorEntry node = tree.AddLeaf(std::vector{InlineEntry("k", "v")});
  constexpr uint8_t kHeight = 24;
  for (uint8_t height = 1; height <= kHeight; ++height) {
    Children children = {node, node};
    children[0].key = "a";
    children[1].key = "b";
    for (auto& child : children) child.subtree_common_prefix_length = 1;
    node = tree.AddInterior(height, children, height == kHeight);
  }
  const auto leaves = Walk("doubling", tree, node, kHeight);
  ASSERT_TRUE(!leaves.has_value());
  EXPECT_EQ(leaves.error().kind, ErrorKind::kCorrupt);
  EXPECT_CONTAINS(leaves.error().message, "over and over");
}

TEST(FollowsBasePaths) {
  TestTree inner;
  inner.files[0] = {"", "d/inner"};
  const auto leaf = inner.AddLeaf(
      std::vector{IndirectEntry("a", 0, 0, 1), InlineEntry("b", "")});
  TestTree outer;
  outer.files.push_back({"process_0/", "d/inner"});
  Children children = {leaf};
  children[0].node.location.file = 1;
  const auto root = outer.AddInterior(1, children, true);
  const std::string directory = outer.Write("base_path", root, 1);
  WriteFile(directory, "process_0/d/inner", inner.nodes);
  DataFiles files(*io::RealDirectory(directory));
  const auto leaves = ReadLeaves(
      files, outer.MakeManifest(root, 1).versions.back(), outer.files, 1);
  ASSERT_OK(leaves);
  EXPECT_EQ((*leaves)[0].files[0].path(), "process_0/d/inner");
}

TEST(ErrorNamesFileAndNode) {
  TwoLeaves two;
  const InteriorEntry root = two.tree.AddInterior(1, two.children, true);
  const DataRef& second = two.children[1].node.location;
  two.tree.nodes[second.offset + 20] ^= 1;
  const auto leaves = Walk("named", two.tree, root, 1);
  ASSERT_FALSE(leaves.has_value());
  EXPECT_CONTAINS(leaves.error().message,
                  StrCat("data file \"d/nodes\": node at [", second.offset,
                         ", +", second.length, "): checksum is "));
}

TEST(CorruptHeight) {
  TwoLeaves two;
  const auto root = two.tree.AddInterior(2, two.children, true);
  const auto low = Walk("low", two.tree, root, 2);
  ASSERT_FALSE(low.has_value());
  EXPECT_CONTAINS(low.error().message, "height is 0, not 1");
  const auto wrong_root = Walk("wrong_root", two.tree, root, 1);
  ASSERT_FALSE(wrong_root.has_value());
  EXPECT_CONTAINS(wrong_root.error().message, "height is 2, not 1");
}

TEST(CorruptNodeThatIsItsOwnChild) {
  TestTree tree;
  Children children = {{"a", 0, {{0, 0, 0}, {1, 0, 0}}}};
  // Its length has one byte whatever it is, so the second try is right.
  children[0].node.location.length = 100;
  const auto draft = tree.AddInterior(1, children, true);
  children[0].node.location = {0, draft.node.location.length,
                               draft.node.location.length};
  const auto root = tree.AddInterior(1, children, true);
  ASSERT_EQ(root.node.location.offset, children[0].node.location.offset);
  ASSERT_EQ(root.node.location.length, children[0].node.location.length);
  const auto leaves = Walk("own_child", tree, root, 1);
  ASSERT_FALSE(leaves.has_value());
  EXPECT_EQ(leaves.error().kind, ErrorKind::kCorrupt);
  EXPECT_CONTAINS(leaves.error().message, "height is 1, not 0");
}

TEST(CorruptKeyBounds) {
  ExpectError("before", ErrorKind::kCorrupt,
              "first key \"m/c\" is before \"m/ca\"",
              [](TwoLeaves& two) { two.children[1].key = "m/ca"; });
  ExpectError("beyond", ErrorKind::kCorrupt,
              "last key \"m/b\" is not before \"m/b\"", [](TwoLeaves& two) {
                two.children[1] = two.tree.AddLeaf(std::vector{
                    InlineEntry("m/b", ""), InlineEntry("m/c", "")});
              });
}

/// The bound of a subtree's last leaf comes from above its parent.
TEST(CorruptKeyBoundFromFurtherUp) {
  TwoLeaves two;
  const auto left = two.tree.AddInterior(1, two.children);
  const auto leaf = two.tree.AddLeaf(std::vector{InlineEntry("m/d", "")});
  const auto right = two.tree.AddInterior(1, Children{leaf});
  const auto root = two.tree.AddInterior(2, Children{left, right}, true);
  const auto leaves = Walk("further_up", two.tree, root, 2);
  ASSERT_FALSE(leaves.has_value());
  EXPECT_CONTAINS(leaves.error().message,
                  "last key \"m/d\" is not before \"m/d\"");
}

TEST(CorruptNumberOfKeys) {
  ExpectError(
      "num_keys", ErrorKind::kCorrupt, "it has 2 keys, but its parent says 3",
      [](TwoLeaves& two) { two.children[1].node.statistics.num_keys = 3; });
  ExpectError(
      "no_keys", ErrorKind::kCorrupt, "child with key \"m/a\" has no keys",
      [](TwoLeaves& two) { two.children[0].node.statistics.num_keys = 0; });
  TwoLeaves two;
  auto root = two.tree.AddInterior(1, two.children, true);
  root.node.statistics.num_keys = 5;
  const auto leaves = Walk("root_num_keys", two.tree, root, 1);
  ASSERT_FALSE(leaves.has_value());
  EXPECT_CONTAINS(leaves.error().message, "it has 4 keys");
}

TEST(CorruptLocation) {
  ExpectError("outside", ErrorKind::kCorrupt, "leaves the file of",
              [](TwoLeaves& two) {
                two.children[1].node.location.offset = UINT64_MAX;
              });
  ExpectError("too_long", ErrorKind::kCorrupt, "exceeds the limit",
              [](TwoLeaves& two) {
                two.children[1].node.location.length = UINT64_MAX;
              });
  ExpectError("short", ErrorKind::kCorrupt, "of 3 bytes is outside",
              [](TwoLeaves& two) { two.children[1].node.location.length = 3; });
  ExpectError("missing_file", ErrorKind::kCorrupt, "No such file",
              [](TwoLeaves& two) {
                two.tree.files.push_back({"", "d/none"});
                two.children[1].node.location.file = 1;
              });
  ExpectError("unsafe", ErrorKind::kCorrupt, "component \"..\"",
              [](TwoLeaves& two) {
                two.tree.files.push_back({"", "../nodes"});
                two.children[1].node.location.file = 1;
              });
  ExpectError("missing_ref", ErrorKind::kCorrupt, "exceeds the limit",
              [](TwoLeaves& two) {
                two.children[1].node.location = DataRef::Missing();
              });
}

/// Some few nodes that refer to one another must not unfold to a huge tree.
TEST(UnsupportedNumberOfKeys) {
  TestTree tree;
  InteriorEntry node =
      tree.AddLeaf(std::vector{InlineEntry("a", ""), InlineEntry("b", "")});
  for (uint8_t height = 1; height <= 30; ++height) {
    Children children = {node, node};
    children[0].key = "a";
    children[1].key = "b";
    for (auto& child : children) child.subtree_common_prefix_length = 1;
    for (auto& child : children) child.subtree_common_prefix_length = 1;
    node = tree.AddInterior(height, children, true);
  }
  EXPECT_EQ(node.node.statistics.num_keys, uint64_t{1} << 31);
  const auto leaves = Walk("bomb", tree, node, 30);
  ASSERT_FALSE(leaves.has_value());
  EXPECT_EQ(leaves.error().kind, ErrorKind::kUnsupported);
  EXPECT_CONTAINS(leaves.error().message, "2147483648 keys");
}

}  // namespace
}  // namespace relayout::ocdbt
