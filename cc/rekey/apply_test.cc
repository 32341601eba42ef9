#include "cc/rekey/apply.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cc/ocdbt/listing.h"
#include "cc/rekey/fake_listing.h"
#include "cc/testing/test.h"

namespace relayout::rekey {
namespace {

namespace fs = std::filesystem;

std::string NewDirectory() {
  static int count = 0;
  const std::string path =
      testing::TempDir() + "/target" + std::to_string(count++);
  fs::create_directories(path + "/d");
  return path;
}

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

ApplyOptions OptionsFor(const std::string& directory) {
  ApplyOptions options;
  options.directory = directory;
  options.config.uuid.fill(7);
  options.config.max_decoded_node_bytes = 300;
  options.config.zstd_level = std::nullopt;
  options.commit_time_ns = 12345;
  return options;
}

/// Plans literals only.
RekeyPlan PlanOf(const std::map<std::string, std::string>& values) {
  Request request;
  for (const auto& [key, value] : values) {
    request.literals.push_back({key, value});
  }
  return Plan({}, std::move(request)).value();
}

std::map<std::string, std::string> ManyValues() {
  std::map<std::string, std::string> values;
  for (int i = 0; i < 1000; ++i) {
    // Some too long to be inline.
    values["a/long/shared/prefix/" + std::to_string(i)] =
        std::string(i % 150, static_cast<char>('a' + i % 26));
  }
  return values;
}

void ExpectContent(const std::string& directory,
                   const std::map<std::string, std::string>& values) {
  const auto listing = ocdbt::List(directory);
  ASSERT_OK(listing);
  EXPECT_EQ(listing->generation, 1);
  ASSERT_EQ(listing->entries.size(), values.size());
  auto want = values.begin();
  for (const auto& [key, value] : listing->entries) {
    EXPECT_EQ(key, want->first);
    const auto bytes = ocdbt::ReadValue(*listing, value);
    ASSERT_OK(bytes);
    EXPECT_EQ(*bytes, want->second);
    ++want;
  }
}

void ExpectInvalid(const RekeyPlan& plan, const ApplyOptions& options,
                   std::string_view message) {
  const auto report = Apply(plan, options);
  if (!EXPECT_FALSE(report.has_value())) return;
  EXPECT_EQ(report.error().kind, ErrorKind::kInvalidArgument);
  EXPECT_CONTAINS(report.error().message, message);
  EXPECT_FALSE(fs::exists(options.directory + "/manifest.ocdbt"));
}

TEST(WritesAnEmptyDatabase) {
  const std::string directory = NewDirectory();
  const auto report = Apply(RekeyPlan(), OptionsFor(directory));
  ASSERT_OK(report);
  EXPECT_EQ(report->num_nodes, 0);
  ExpectContent(directory, {});
  EXPECT_FALSE(fs::exists(directory + "/d/nodes"));
}

TEST(WritesOneEntry) {
  const std::string directory = NewDirectory();
  const auto report = Apply(PlanOf({{"key", "value"}}), OptionsFor(directory));
  ASSERT_OK(report);
  EXPECT_EQ(report->num_nodes, 1);
  EXPECT_EQ(report->height, 0);
  ExpectContent(directory, {{"key", "value"}});
}

TEST(WritesManyLevels) {
  const std::string directory = NewDirectory();
  const auto values = ManyValues();
  const auto report = Apply(PlanOf(values), OptionsFor(directory));
  ASSERT_OK(report);
  EXPECT_TRUE(report->height >= 2);
  EXPECT_EQ(report->num_keys, 1000);
  EXPECT_EQ(report->num_bytes_written,
            fs::file_size(directory + "/d/nodes") +
                fs::file_size(directory + "/manifest.ocdbt"));
  ExpectContent(directory, values);
}

TEST(AnyNumberOfThreadsGivesTheSameBytes) {
  const RekeyPlan plan = PlanOf(ManyValues());
  std::vector<std::string> nodes;
  std::vector<std::string> manifests;
  for (const int num_threads : {1, 2, 7}) {
    ApplyOptions options = OptionsFor(NewDirectory());
    options.config.zstd_level = 3;
    options.num_threads = num_threads;
    ASSERT_OK(Apply(plan, options));
    nodes.push_back(ReadFile(options.directory + "/d/nodes"));
    manifests.push_back(ReadFile(options.directory + "/manifest.ocdbt"));
  }
  EXPECT_TRUE(nodes[0] == nodes[1] && nodes[0] == nodes[2]);
  EXPECT_TRUE(manifests[0] == manifests[1] && manifests[0] == manifests[2]);
}

TEST(RefersToLinkedFiles) {
  const std::string directory = NewDirectory();
  std::ofstream(directory + "/d/x")
      << std::string(400, 'x') << "value" << std::string(595, 'x');
  const auto listing = FakeListing()
                           .AddInline("a/.zarray", "{}")
                           .AddIndirect("a/0", 1, 400, 5)
                           .Build();
  ArrayMove move;
  move.source_array = "a";
  move.target_array = "b";
  const auto plan = Plan({listing}, {{move}, {{"b/.zarray", "new"}}, {}});
  ASSERT_OK(plan);
  ApplyOptions options = OptionsFor(directory);
  options.file_paths = {"d/x"};
  ASSERT_OK(Apply(*plan, options));
  ExpectContent(directory, {{"b/.zarray", "new"}, {"b/0", "value"}});
}

TEST(RefusesFilesThatDoNotMatch) {
  const auto listing = FakeListing()
                           .AddInline("a/.zarray", "{}")
                           .AddIndirect("a/0", 1, 400, 5)
                           .Build();
  ArrayMove move;
  move.source_array = "a";
  move.target_array = "b";
  const auto plan = Plan({listing}, {{move}, {{"b/.zarray", ""}}, {}});
  ASSERT_OK(plan);
  ApplyOptions options = OptionsFor(NewDirectory());
  ExpectInvalid(*plan, options, "0 file paths for a plan of 1");
  options.file_paths = {"d/x"};
  ExpectInvalid(*plan, options, "not in the target");
  std::ofstream(options.directory + "/d/x") << "short";
  ExpectInvalid(*plan, options, "5 bytes");
  options.file_paths = {"../x"};
  ExpectInvalid(*plan, options, "..");
  options.file_paths = {"/x"};
  ExpectInvalid(*plan, options, "/x");
}

TEST(RefusesAnEntryLargerThanANode) {
  ExpectInvalid(PlanOf({{"a", ""}, {std::string(400, 'k'), ""}}),
                OptionsFor(NewDirectory()), "limit of 300");
}

TEST(RefusesInteriorNodesWithoutRoomForTwo) {
  ApplyOptions options = OptionsFor(NewDirectory());
  options.config.max_decoded_node_bytes = 60;
  ExpectInvalid(
      PlanOf({{std::string(30, 'a'), ""}, {std::string(30, 'b'), ""}}), options,
      "two entries");
}

TEST(KeepsWhatExists) {
  const RekeyPlan plan = PlanOf({{"a", ""}});
  ApplyOptions options = OptionsFor(NewDirectory());
  std::ofstream(options.directory + "/d/nodes") << "precious";
  const auto data_file = Apply(plan, options);
  ASSERT_FALSE(data_file.has_value());
  EXPECT_EQ(data_file.error().kind, ErrorKind::kSystem);
  EXPECT_EQ(ReadFile(options.directory + "/d/nodes"), "precious");
  options.data_file = "d/other";
  std::ofstream(options.directory + "/manifest.ocdbt") << "precious";
  const auto manifest = Apply(plan, options);
  ASSERT_FALSE(manifest.has_value());
  EXPECT_EQ(manifest.error().kind, ErrorKind::kSystem);
  EXPECT_EQ(ReadFile(options.directory + "/manifest.ocdbt"), "precious");
}

TEST(SystemErrorWithoutADirectory) {
  ApplyOptions options = OptionsFor(testing::TempDir() + "/nowhere");
  const auto report = Apply(RekeyPlan(), options);
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().kind, ErrorKind::kSystem);
}

}  // namespace
}  // namespace relayout::rekey
