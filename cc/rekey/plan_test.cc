#include "cc/rekey/plan.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cc/rekey/fake_listing.h"
#include "cc/testing/test.h"

namespace relayout::rekey {
namespace {

using Style = zarr::ChunkKeyFormat::Style;

constexpr zarr::ChunkKeyFormat kV2 = {Style::kV2, '.'};
constexpr zarr::ChunkKeyFormat kV3 = {Style::kDefault, '/'};

AxisTerm Axis(uint64_t axis) { return {.is_constant = false, .value = axis}; }
AxisTerm At(uint64_t index) { return {.is_constant = true, .value = index}; }

ArrayMove Rename(const std::string& source, const std::string& target,
                 const std::vector<uint64_t>& grid) {
  ArrayMove move;
  move.source_array = source;
  move.target_array = target;
  move.source_grid = grid;
  for (size_t axis = 0; axis < grid.size(); ++axis) {
    move.target_index.push_back(Axis(axis));
  }
  return move;
}

Literal Metadata(const std::string& array) {
  return {array + "/.zarray", "{}"};
}

/// Each entry as "key=inline bytes" or "key@file+offset:length".
std::vector<std::string> Describe(const RekeyPlan& plan) {
  std::vector<std::string> lines;
  for (const auto& [key, value] : plan.entries) {
    std::string line(key);
    if (value.is_inline()) {
      line.append("=").append(value.inline_bytes());
    } else {
      line += "@" + plan.files[value.file].path + "+" +
              std::to_string(value.offset) + ":" + std::to_string(value.length);
    }
    lines.push_back(line);
  }
  return lines;
}

using Lines = std::vector<std::string>;
using Listings = std::vector<std::shared_ptr<const ocdbt::Listing>>;

void ExpectError(const Listings& listings, Request request, ErrorKind kind,
                 const std::vector<std::string>& parts) {
  const auto plan = Plan(listings, std::move(request), 2);
  if (!EXPECT_FALSE(plan.has_value())) return;
  EXPECT_EQ(plan.error().kind, kind);
  for (const std::string& part : parts) {
    EXPECT_CONTAINS(plan.error().message, part);
  }
}

/// An array `a` of 2 x 2 chunks, the last one inline and one absent.
std::shared_ptr<const ocdbt::Listing> Matrix() {
  return FakeListing()
      .AddInline("a/.zarray", "{}")
      .AddIndirect("a/0.0", 2, 0, 10)
      .AddIndirect("a/0.1", 1, 20, 30)
      .AddInline("a/1.1", "abcdef")
      .Build();
}

TEST(PlansNothing) {
  const auto plan = Plan({}, {});
  ASSERT_OK(plan);
  EXPECT_TRUE(plan->entries.empty());
  EXPECT_TRUE(plan->files.empty());
}

TEST(Renames) {
  const auto plan =
      Plan({Matrix()}, {{Rename("a", "b", {2, 2})}, {Metadata("b")}, {}});
  ASSERT_OK(plan);
  EXPECT_EQ(Describe(*plan), Lines({"b/.zarray={}", "b/0.0@d/2+0:10",
                                    "b/0.1@d/1+20:30", "b/1.1=abcdef"}));
  EXPECT_EQ(plan->files.size(), 2);
  EXPECT_EQ(plan->num_indirect_bytes, 40);
  EXPECT_EQ(plan->num_inline_bytes, 8);
}

TEST(OutlivesItsListings) {
  auto listing = Matrix();
  const auto plan = Plan({std::move(listing)},
                         {{Rename("a", "b", {2, 2})}, {Metadata("b")}, {}});
  listing.reset();
  ASSERT_OK(plan);
  EXPECT_EQ(Describe(*plan).back(), "b/1.1=abcdef");
}

TEST(ChangesTheSpelling) {
  ArrayMove move = Rename("a", "b", {2, 2});
  move.target_keys = kV3;
  const auto plan = Plan({Matrix()}, {{move}, {{"b/zarr.json", "{}"}}, {}});
  ASSERT_OK(plan);
  EXPECT_EQ(Describe(*plan), Lines({"b/c/0/0@d/2+0:10", "b/c/0/1@d/1+20:30",
                                    "b/c/1/1=abcdef", "b/zarr.json={}"}));
}

TEST(Transposes) {
  ArrayMove move = Rename("a", "b", {2, 2});
  move.target_index = {Axis(1), Axis(0)};
  const auto plan = Plan({Matrix()}, {{move}, {Metadata("b")}, {}});
  ASSERT_OK(plan);
  EXPECT_EQ(Describe(*plan), Lines({"b/.zarray={}", "b/0.0@d/2+0:10",
                                    "b/1.0@d/1+20:30", "b/1.1=abcdef"}));
}

TEST(StacksArraysOfTwoListings) {
  Request request;
  for (uint32_t layer = 0; layer < 2; ++layer) {
    ArrayMove move = Rename("a", "s", {2, 2});
    move.listing = layer;
    move.target_index = {Axis(0), At(layer + 9), Axis(1)};
    request.moves.push_back(move);
  }
  request.literals.push_back(Metadata("s"));
  const auto plan = Plan({Matrix(), Matrix()}, request);
  ASSERT_OK(plan);
  EXPECT_EQ(Describe(*plan),
            Lines({"s/.zarray={}", "s/0.10.0@d/2+0:10", "s/0.10.1@d/1+20:30",
                   "s/0.9.0@d/2+0:10", "s/0.9.1@d/1+20:30", "s/1.10.1=abcdef",
                   "s/1.9.1=abcdef"}));
  ASSERT_EQ(plan->files.size(), 4);
  EXPECT_EQ(plan->files[0].listing, 1);
  EXPECT_EQ(plan->files[0].path, "d/2");
  EXPECT_EQ(plan->files[0].num_bytes, 1000);
  EXPECT_EQ(plan->files[2].listing, 0);
}

ArrayMove Unstack(uint64_t layer, const std::string& target) {
  ArrayMove move = Rename("a", target, {2, 2});
  move.target_index = {Axis(1)};
  move.filters = {{.axis = 0, .index = layer}};
  return move;
}

TEST(Unstacks) {
  const auto plan = Plan({Matrix()}, {{Unstack(0, "l0"), Unstack(1, "l1")},
                                      {Metadata("l0"), Metadata("l1")},
                                      {}});
  ASSERT_OK(plan);
  EXPECT_EQ(Describe(*plan),
            Lines({"l0/.zarray={}", "l0/0@d/2+0:10", "l0/1@d/1+20:30",
                   "l1/.zarray={}", "l1/1=abcdef"}));
}

TEST(SortsTargetsThatShareAPrefix) {
  FakeListing fake;
  Request request;
  for (const std::string target :
       {"t", "t/u", "t.u", "t0", "t/u/v", "t!", "tt", "\xff"}) {
    const std::string source = "s" + std::to_string(request.moves.size());
    fake.AddInline(source + "/.zarray", "").AddInline(source + "/0.0", target);
    fake.AddInline(source + "/0.1", target);
    request.moves.push_back(Rename(source, target, {1, 2}));
    request.literals.push_back(Metadata(target));
  }
  for (const std::string key :
       {"", "t", "t/u/w", "t/u0", "z", "a", "\xff\xff"}) {
    request.literals.push_back({key, "literal"});
  }
  const auto plan = Plan({fake.Build()}, request);
  ASSERT_OK(plan);
  ASSERT_EQ(plan->entries.size(), 8 * 3 + 7);
  for (size_t i = 1; i < plan->entries.size(); ++i) {
    EXPECT_TRUE(plan->entries[i - 1].key < plan->entries[i].key);
  }
}

TEST(DropsArraysAndStrayKeys) {
  const auto listing = FakeListing()
                           .AddInline(".zgroup", "{}")
                           .AddInline("a/.zarray", "{}")
                           .AddInline("a/.zattrs", "{}")
                           .AddInline("a/0", "x")
                           .AddInline("a/b/.zarray", "{}")
                           .AddInline("a/b/0", "y")
                           .Build();
  const auto plan = Plan(
      {listing},
      {{Rename("a/b", "b", {1})}, {Metadata("b")}, {{0, "a"}, {0, ".zgroup"}}});
  ASSERT_OK(plan);
  EXPECT_EQ(Describe(*plan), Lines({"b/.zarray={}", "b/0=y"}));
}

TEST(ReplacesAttributes) {
  const auto listing = FakeListing()
                           .AddInline("a/.zarray", "{}")
                           .AddInline("a/.zattrs", "old")
                           .AddInline("a/0", "x")
                           .Build();
  const auto plan =
      Plan({listing}, {{Rename("a", "b", {})}, {Metadata("b")}, {}});
  ASSERT_OK(plan);
  EXPECT_EQ(Describe(*plan), Lines({"b/.zarray={}", "b/0=x"}));
}

TEST(RefusesUnaccountedKeys) {
  ExpectError({Matrix()}, {}, ErrorKind::kInvalidArgument,
              {"\"a\"", "neither moved nor dropped"});
  const auto stray = FakeListing("there").AddInline("a/.zgroup", "").Build();
  ExpectError({stray}, {}, ErrorKind::kInvalidArgument,
              {"\"a/.zgroup\"", "\"there\""});
  ExpectError({Matrix()}, {{Unstack(0, "l0")}, {Metadata("l0")}, {}},
              ErrorKind::kInvalidArgument, {"\"a/1.1\"", "no move"});
}

TEST(RefusesNamesOfNothing) {
  ExpectError({Matrix()},
              {{Rename("x", "b", {2, 2})}, {Metadata("b")}, {{0, "a"}}},
              ErrorKind::kInvalidArgument, {"\"x\"", "no such array"});
  ExpectError({Matrix()}, {{}, {}, {{0, "a"}, {0, "x"}}},
              ErrorKind::kInvalidArgument, {"\"x\"", "no such array"});
  ExpectError({Matrix()}, {{}, {}, {{1, "a"}}}, ErrorKind::kInvalidArgument,
              {"listing 1"});
  ExpectError({Matrix()},
              {{Rename("a", "b", {2, 2})}, {Metadata("b")}, {{0, "a"}}},
              ErrorKind::kInvalidArgument, {"both moved and dropped"});
}

TEST(NamesBothSourcesOfOneTargetKey) {
  const auto listing = FakeListing()
                           .AddInline("a/.zarray", "")
                           .AddInline("a/0", "x")
                           .AddInline("b/.zarray", "")
                           .AddInline("b/0", "y")
                           .Build();
  const std::vector<ArrayMove> moves = {Rename("a", "t", {1}),
                                        Rename("b", "t", {1})};
  ExpectError({listing}, {moves, {Metadata("t")}, {}},
              ErrorKind::kInvalidArgument,
              {"\"t/0\"", "\"a/0\"", "\"b/0\"", "listing 0"});
  ExpectError({Matrix()},
              {{Rename("a", "t", {2, 2})}, {Metadata("t"), {"t/0.1", ""}}, {}},
              ErrorKind::kInvalidArgument,
              {"\"t/0.1\"", "a literal", "\"a/0.1\""});
  ExpectError({}, {{}, {{"k", ""}, {"k", ""}}, {}}, ErrorKind::kInvalidArgument,
              {"\"k\"", "a literal and a literal"});
}

TEST(FindsDuplicatesAcrossNestedTargets) {
  const auto listing = FakeListing()
                           .AddInline("a/.zarray", "")
                           .AddInline("a/0/1", "x")
                           .AddInline("b/.zarray", "")
                           .AddInline("b/1", "y")
                           .Build();
  ArrayMove slashes = Rename("a", "t", {1, 2});
  slashes.source_keys.separator = slashes.target_keys.separator = '/';
  ExpectError({listing},
              {{slashes, Rename("b", "t/0", {2})},
               {Metadata("t"), Metadata("t/0")},
               {}},
              ErrorKind::kInvalidArgument, {"\"t/0/1\"", "two sources"});
}

TEST(RefusesBadChunkKeys) {
  for (const std::string key :
       {"a/0", "a/0.0.0", "a/x", "a/2.0", "a/0.2", "a/00.0", "a/0.0/.zgroup"}) {
    const auto listing =
        FakeListing().AddInline("a/.zarray", "").AddInline(key, "").Build();
    ExpectError({listing}, {{Rename("a", "b", {2, 2})}, {Metadata("b")}, {}},
                ErrorKind::kCorrupt, {"\"" + key + "\""});
  }
}

TEST(RefusesBadMoves) {
  const auto expect_refused = [](const ArrayMove& move, std::string message) {
    ExpectError({Matrix()}, {{move}, {Metadata("b")}, {}},
                ErrorKind::kInvalidArgument, {message});
  };
  const ArrayMove good = Rename("a", "b", {2, 2});
  ArrayMove move = good;
  move.listing = 3;
  expect_refused(move, "listing 3");
  move = good;
  move.target_index = {Axis(0)};
  expect_refused(move, "axis 1 occurs 0 times");
  move.target_index = {Axis(0), Axis(1), Axis(1)};
  expect_refused(move, "axis 1 occurs 2 times");
  move.target_index = {Axis(0), Axis(1), Axis(2)};
  expect_refused(move, "axis 2 is beyond");
  move = good;
  move.filters = {{2, 0}};
  expect_refused(move, "axis 2 is beyond");
  move.filters = {{1, 2}};
  expect_refused(move, "filter index 2");
  move.filters = {{1, 0}, {0, 0}, {1, 1}};
  expect_refused(move, "two filters");
  move = good;
  move.source_keys.separator = '_';
  expect_refused(move, "separator");
  move = good;
  move.target_array = "c";
  expect_refused(move, "metadata");
}

TEST(RefusesMovesThatDisagree) {
  ArrayMove other = Unstack(1, "l1");
  other.source_grid = {2, 3};
  ExpectError({Matrix()},
              {{Unstack(0, "l0"), other}, {Metadata("l0"), Metadata("l1")}, {}},
              ErrorKind::kInvalidArgument, {"disagree"});
}

/// Unstacks an array of 40 x 1000 chunks, more than one slice's worth.
Result<RekeyPlan> PlanManyChunks(int num_threads) {
  FakeListing fake;
  Request request;
  fake.AddInline("a/.zarray", "");
  for (uint64_t i = 0; i < 40; ++i) {
    for (uint64_t j = 0; j < 1000; ++j) {
      fake.AddIndirect("a/" + std::to_string(i) + "." + std::to_string(j),
                       (i + j) % 3, i, j % 900);
    }
    ArrayMove move = Unstack(i, "layer" + std::to_string(i));
    move.source_grid = {40, 1000};
    request.literals.push_back(Metadata(move.target_array));
    request.moves.push_back(std::move(move));
  }
  return Plan({fake.Build()}, std::move(request), num_threads);
}

TEST(AnyNumberOfThreadsGivesTheSamePlan) {
  const auto one = PlanManyChunks(1);
  const auto many = PlanManyChunks(7);
  ASSERT_OK(one);
  ASSERT_OK(many);
  EXPECT_EQ(one->entries.size(), 40 * 1001);
  EXPECT_TRUE(Describe(*one) == Describe(*many));
}

}  // namespace
}  // namespace relayout::rekey
