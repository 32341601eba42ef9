#include "cc/rechunk/checked_task.h"

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cc/base/result.h"
#include "cc/rechunk/fake_source.h"
#include "cc/rechunk/task.h"
#include "cc/testing/test.h"

namespace relayout::rechunk {
namespace {

/// Unstacks axis 1 of an array of 4 x 2 x 5.
RewriteTask Unstack() {
  RewriteTask task =
      PlainTask(ByteSource(MakeListing({}), "a", {4, 2, 5}, {4, 2, 5}),
                ByteTarget("b0", {4, 5}, {2, 5}));
  task.targets.push_back(ByteTarget("b1", {4, 5}, {2, 5}));
  task.layer_axes = {1};
  task.target_axes = {0, 2};
  return task;
}

TEST(PlacesBothSides) {
  const auto task = CheckTask(Unstack());
  ASSERT_OK(task);
  EXPECT_TRUE(task->is_source_stacked);
  EXPECT_FALSE(task->is_target_stacked);
  EXPECT_EQ(task->num_elements, 40);
  EXPECT_EQ(task->sources[0].num_chunk_bytes, 40);
  EXPECT_EQ(task->target.num_chunk_bytes, 10);
  EXPECT_EQ(task->target.placement.counts[0], 2);
  EXPECT_EQ(task->target.placement.counts[1], 2);  // layers
  EXPECT_EQ(task->TargetAt({0, 1, 0}), 1);
  EXPECT_EQ(task->SourceAt({0, 1, 0}), 0);
}

TEST(FillValueIsCast) {
  RewriteTask task = Unstack();
  task.sources[0].dtype = "float32";
  task.sources[0].fill_value = std::string("\0\0\x80\x3f", 4);
  for (TargetArray& target : task.targets) {
    target.dtype = "bfloat16";
    target.fill_value = std::string("\x80\x3f", 2);
  }
  const auto checked = CheckTask(std::move(task));
  ASSERT_OK(checked);
  EXPECT_EQ(checked->sources[0].fill, std::string("\x80\x3f", 2));
  EXPECT_TRUE(checked->sources[0].keeps_fill);
}

TEST(RefusesWhatDoesNotFit) {
  const struct {
    std::function<void(RewriteTask&)> damage;
    std::string message;
  } cases[] = {
      {[](RewriteTask& t) { t.shape.assign(13, 1); }, "has 13 axes"},
      {[](RewriteTask& t) { t.layer_axes = {3}; }, "layer axes"},
      {[](RewriteTask& t) { t.layer_axes = {1, 1}; }, "layer axes"},
      {[](RewriteTask& t) { t.shape[0] = UINT64_MAX; }, "has length"},
      {[](RewriteTask& t) { t.source_axes = {0, 1, 1}; }, "different axes"},
      {[](RewriteTask& t) { t.source_axes = {0}; }, "a side has 1 of 3 axes"},
      {[](RewriteTask& t) { t.target_axes = {0, 1}; }, "half stacked"},
      {[](RewriteTask& t) { t.targets.pop_back(); }, "not one a layer"},
      {[](RewriteTask& t) { t.sources.clear(); }, "not one a layer"},
      {[](RewriteTask& t) { t.sources[0].shape[0] = 5; },
       "array \"a\": axis 0 has length 5 instead of 4"},
      {[](RewriteTask& t) { t.sources[0].chunk_shape = {1}; }, "not of rank 3"},
      {[](RewriteTask& t) { t.sources[0].chunk_shape[1] = 0; },
       "array \"a\": a chunk length is 0"},
      {[](RewriteTask& t) {
         t.sources[0].chunk_shape = {UINT64_MAX, UINT64_MAX, 9};
       },
       "a chunk has more than"},
      {[](RewriteTask& t) { t.sources[0].memory_order = {0, 1, 3}; },
       "no permutation"},
      {[](RewriteTask& t) { t.sources[0].memory_order = {0, 1}; },
       "no permutation"},
      {[](RewriteTask& t) { t.sources[0].fill_value = ""; },
       "fill value has 0 bytes"},
      {[](RewriteTask& t) { t.targets[1].fill_value = "ab"; },
       "array \"b1\": fill value has 2 bytes"},
      {[](RewriteTask& t) { t.targets[1].chunk_shape = {4, 5}; },
       "array \"b1\": it differs in form"},
      {[](RewriteTask& t) { t.targets[0].zstd_level = 23; }, "zstd level 23"},
      {[](RewriteTask& t) {
         t.sources[0].dtype = "int16";
         t.sources[0].fill_value = "ab";
       },
       "array \"a\": can't cast dtype \"int16\" to \"uint8\""},
  };
  for (const auto& [damage, message] : cases) {
    RewriteTask task = Unstack();
    damage(task);
    const auto checked = CheckTask(std::move(task));
    EXPECT_FALSE(checked.has_value());
    if (checked.has_value()) continue;
    EXPECT_EQ(checked.error().kind, ErrorKind::kInvalidArgument);
    EXPECT_CONTAINS(checked.error().message, message);
  }
}

TEST(RefusesTooManyElements) {
  const uint64_t length = uint64_t{1} << 30;
  const auto task = CheckTask(
      PlainTask(ByteSource(MakeListing({}), "a", {length, length}, {1, 1}),
                ByteTarget("b", {length, length}, {1, 1})));
  ASSERT_FALSE(task.has_value());
  EXPECT_CONTAINS(task.error().message, "too many elements");
}

}  // namespace
}  // namespace relayout::rechunk
