#include "cc/rechunk/rewrite.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cc/base/compression.h"
#include "cc/base/result.h"
#include "cc/ocdbt/listing.h"
#include "cc/rechunk/fake_source.h"
#include "cc/rechunk/rewrite_plan.h"
#include "cc/rechunk/task.h"
#include "cc/testing/test.h"

namespace relayout::rechunk {
namespace {

constexpr uint64_t kLimit = 8 << 20;

/// Returns an empty directory for one test.
std::string Directory(const std::string& name) {
  const std::string path = testing::TempDir() + "/" + name;
  std::filesystem::create_directories(path + "/d");
  return path;
}

Result<RewriteResult> Run(std::vector<RewriteTask> tasks,
                          const std::string& directory, int num_threads = 2) {
  RELAYOUT_ASSIGN_OR_RETURN(const RewritePlan plan,
                            PlanRewrite(std::move(tasks), kLimit, num_threads));
  return Rewrite(plan, {.directory = directory,
                        .data_file = "d/0",
                        .sync = true,
                        .progress = {}});
}

std::string ReadFile(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// Returns all values by key.
std::map<std::string, std::string> Values(const ocdbt::Listing& listing) {
  std::map<std::string, std::string> values;
  for (const ocdbt::Entry& entry : listing.entries) {
    values.emplace(entry.key, *ocdbt::ReadValue(listing, entry.value));
  }
  return values;
}

TEST(Unstacks) {
  RewriteTask task = PlainTask(
      ByteSource(MakeListing({{"a/0.0", "a0b1c2"}}), "a", {3, 2}, {3, 2}),
      ByteTarget("x", {3}, {3}));
  task.layer_axes = {1};
  task.targets.push_back(ByteTarget("y", {3}, {3}));
  task.target_axes = {0};
  const std::string directory = Directory("unstacks");
  const auto result = Run({task}, directory);
  ASSERT_OK(result);
  const std::map<std::string, std::string> want = {
      {"x/.zarray", "{}"}, {"x/0", "abc"}, {"y/.zarray", "{}"}, {"y/0", "012"}};
  EXPECT_TRUE(Values(*result->listing) == want);
  EXPECT_EQ(ReadFile(directory + "/d/0"), "abc012");
  EXPECT_EQ(result->num_chunks_written, 2);
  EXPECT_EQ(result->num_bytes_written, 6);
  EXPECT_EQ(result->num_bytes_read, 6);
}

TEST(StacksFromSeveralListings) {
  RewriteTask task =
      PlainTask(ByteSource(MakeListing({{"a/0", "ab"}}), "a", {2}, {2}),
                ByteTarget("x", {2, 2}, {2, 2}));
  task.shape = {2, 2};
  task.layer_axes = {1};
  task.target_axes = {0, 1};
  task.sources.push_back(
      ByteSource(MakeListing({{"c/0", "??"}}), "b", {2}, {2}));
  task.sources[1].listings.push_back(MakeListing({{"b/0", "01"}}));
  const auto result = Run({task}, Directory("stacks"));
  ASSERT_OK(result);
  EXPECT_EQ(Values(*result->listing)["x/0.0"], "a0b1");
}

TEST(AbsentChunksStayAbsentUnlessStored) {
  const auto listing = MakeListing({{"a/1", "xy"}});
  RewriteTask task =
      PlainTask(ByteSource(listing, "a", {5}, {2}), ByteTarget("b", {5}, {1}));
  const auto absent = Run({task}, Directory("absent"));
  ASSERT_OK(absent);
  EXPECT_EQ(absent->num_chunks_written, 2);
  task.targets[0].store_fill = true;
  const auto stored = Run({task}, Directory("stored"));
  ASSERT_OK(stored);
  EXPECT_EQ(stored->num_chunks_written, 5);
  EXPECT_EQ(Values(*stored->listing)["b/4"], std::string(1, '\0'));
  task.targets[0].store_fill = false;
  task.targets[0].fill_value = "z";
  const auto other = Run({task}, Directory("other"));
  ASSERT_OK(other);
  EXPECT_EQ(other->num_chunks_written, 5);
}

TEST(RaggedChunksArePaddedWithTheFillValue) {
  RewriteTask task =
      PlainTask(ByteSource(MakeListing({{"a/0", "abc"}}), "a", {3}, {3}),
                ByteTarget("b", {3}, {2}));
  task.targets[0].fill_value = "z";
  const auto result = Run({task}, Directory("ragged"));
  ASSERT_OK(result);
  EXPECT_EQ(Values(*result->listing)["b/1"], "cz");
}

TEST(NoStoredChunkNoFile) {
  const std::string directory = Directory("nothing");
  const auto result = Run({PlainTask(ByteSource(MakeListing({}), "a", {4}, {2}),
                                     ByteTarget("b", {4}, {4})),
                           PlainTask(ByteSource(MakeListing({}), "c", {0}, {2}),
                                     ByteTarget("d", {0}, {4}))},
                          directory);
  ASSERT_OK(result);
  EXPECT_EQ(result->listing->entries.size(), 2);
  EXPECT_EQ(result->listing->files.size(), 0);
  EXPECT_FALSE(std::filesystem::exists(directory + "/d/0"));
}

TEST(CorruptChunkIsNamedAndLeavesNoFile) {
  const std::string bytes(300000, 'x');
  std::string frame = *ZstdCompress(bytes, 3);
  const struct {
    std::string value;
    bool has_zstd;
  } cases[] = {{"", false},
               {bytes + "x", false},
               {frame.substr(0, frame.size() - 1), true},
               {*ZstdCompress(bytes + "x", 3), true},
               {bytes, true}};
  for (const auto& [value, has_zstd] : cases) {
    SourceArray source =
        ByteSource(MakeListing({{"a/0", value}}), "a", {300000}, {300000});
    source.codecs.has_zstd = has_zstd;
    const std::string directory = Directory("corrupt");
    const auto result =
        Run({PlainTask(source, ByteTarget("b", {300000}, {1000}))}, directory);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().kind, ErrorKind::kCorrupt);
    EXPECT_CONTAINS(result.error().message, "array \"a\", chunk \"a/0\"");
    EXPECT_FALSE(std::filesystem::exists(directory + "/d/0"));
  }
}

TEST(CorruptWhenTheDataFileIsGoneOrChanged) {
  const std::string directory = Directory("files");
  ocdbt::Listing listing;
  listing.directory = directory;
  listing.files = {"d/source"};
  listing.file_sizes = {6};
  listing.entries.emplace_back();
  listing.entries[0].key = "a/0";
  listing.entries[0].value = {.file = 0, .length = 4, .offset = 1};
  const auto shared = std::make_shared<const ocdbt::Listing>(listing);
  const RewriteTask task =
      PlainTask(ByteSource(shared, "a", {4}, {4}), ByteTarget("b", {4}, {4}));
  const auto missing = Run({task}, directory);
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().kind, ErrorKind::kCorrupt);
  EXPECT_CONTAINS(missing.error().message, "data file \"d/source\"");
  std::ofstream(directory + "/d/source") << "12345";
  const auto changed = Run({task}, directory);
  ASSERT_FALSE(changed.has_value());
  EXPECT_CONTAINS(changed.error().message, "has 5 bytes; it had 6");
  std::ofstream(directory + "/d/source") << "123456";
  const auto result = Run({task}, directory);
  ASSERT_OK(result);
  EXPECT_EQ(ReadFile(directory + "/d/0"), "2345");
}

TEST(FileMustBeNew) {
  const std::string directory = Directory("new");
  std::ofstream(directory + "/d/0") << "keep";
  const RewriteTask task = PlainTask(ByteSource(MakeListing({}), "a", {4}, {4}),
                                     ByteTarget("b", {4}, {4}));
  const auto result = Run({task}, directory);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, ErrorKind::kSystem);
  EXPECT_EQ(ReadFile(directory + "/d/0"), "keep");
}

TEST(CallerEndsIt) {
  const std::string directory = Directory("ended");
  const RewriteTask task =
      PlainTask(ByteSource(MakeListing({{"a/0", "abcd"}}), "a", {4}, {4}),
                ByteTarget("b", {4}, {4}));
  const auto plan = PlanRewrite({task}, kLimit, 1);
  ASSERT_OK(plan);
  const auto result =
      Rewrite(*plan, {.directory = directory,
                      .data_file = "d/0",
                      .sync = false,
                      .progress = [](uint64_t) { return false; }});
  ASSERT_FALSE(result.has_value());
  EXPECT_CONTAINS(result.error().message, "ended by its caller");
  EXPECT_FALSE(std::filesystem::exists(directory + "/d/0"));
}

TEST(BytesDoNotDependOnThreads) {
  std::string bytes(3000000, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>(i * i >> 5);
  }
  SourceArray source =
      ByteSource(MakeListing({{"a/0.0", *ZstdCompress(bytes, 1)}}), "a",
                 {3000, 1000}, {3000, 1000});
  source.codecs.has_zstd = true;
  for (const std::vector<uint64_t>& chunk :
       {std::vector<uint64_t>{10, 1000}, {3000, 90}, {77, 77}}) {
    TargetArray target = ByteTarget("b", {3000, 1000}, chunk);
    target.zstd_level = 1;
    std::string want;
    for (const int num_threads : {1, 2, 5}) {
      const std::string directory = Directory("threads");
      const auto result =
          Run({PlainTask(source, target)}, directory, num_threads);
      ASSERT_OK(result);
      EXPECT_TRUE(result->peak_buffer_bytes <= kLimit);
      const std::string got = ReadFile(directory + "/d/0");
      if (want.empty()) want = got;
      EXPECT_TRUE(got == want);
      std::filesystem::remove(directory + "/d/0");
    }
  }
}

TEST(PlanRefusesWhatDoesNotFitTheMemory) {
  const RewriteTask task =
      PlainTask(ByteSource(MakeListing({}), "a", {1 << 24}, {1}),
                ByteTarget("big", {1 << 24}, {1 << 24}));
  const auto plan = PlanRewrite({task}, kLimit, 1);
  ASSERT_FALSE(plan.has_value());
  EXPECT_EQ(plan.error().kind, ErrorKind::kInvalidArgument);
  EXPECT_CONTAINS(plan.error().message, "array \"big\"");
  EXPECT_CONTAINS(plan.error().message, "the limit is 8388608");
}

TEST(PlanRefusesOneTargetTwiceAndStrayChunks) {
  const RewriteTask task =
      PlainTask(ByteSource(MakeListing({{"a/0", "abcd"}}), "a", {4}, {4}),
                ByteTarget("b", {4}, {4}));
  const auto twice = PlanRewrite({task, task}, kLimit, 1);
  ASSERT_FALSE(twice.has_value());
  EXPECT_CONTAINS(twice.error().message, "\"b\" is the target of two tasks");
  const RewriteTask stray =
      PlainTask(ByteSource(MakeListing({{"a/1", "abcd"}}), "a", {4}, {4}),
                ByteTarget("b", {4}, {4}));
  const auto outside = PlanRewrite({stray}, kLimit, 1);
  ASSERT_FALSE(outside.has_value());
  EXPECT_EQ(outside.error().kind, ErrorKind::kCorrupt);
  EXPECT_CONTAINS(outside.error().message, "\"a/1\" lies outside");
}

TEST(PlanRefusesEndlessGrids) {
  const auto plan = PlanRewrite(
      {PlainTask(ByteSource(MakeListing({}), "a", {uint64_t{1} << 50}, {1}),
                 ByteTarget("b", {uint64_t{1} << 50}, {1}))},
      kLimit, 1);
  ASSERT_FALSE(plan.has_value());
  EXPECT_CONTAINS(plan.error().message, "chunks to write to more than");
}

}  // namespace
}  // namespace relayout::rechunk
