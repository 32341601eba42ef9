#include "cc/ocdbt/manifest.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cc/base/byte_view.h"
#include "cc/base/result.h"
#include "cc/ocdbt/config.h"
#include "cc/ocdbt/record.h"
#include "cc/ocdbt/test_tree.h"
#include "cc/ocdbt/varint.h"
#include "cc/testing/test.h"

namespace relayout::ocdbt {
namespace {

/// Written by TensorStore 0.1.86: generation 5 of a tree of arity 2.
const char kTensorStoreManifest[] =
    "0cdb3a2a72000000000000000000000102030405060708090a0b0c0d0e0f000480808004"
    "0100012200642f6461393633653330313566636634386639616333333637346230306366"
    "6563640105000006a40104a401125ec8a6eceee3ec18010400a70279044d07e5e7eee3ec"
    "1801064839cc";

Manifest MakeManifest(const std::vector<uint64_t>& generations) {
  Manifest manifest;
  manifest.config.uuid = {1, 2, 3};
  manifest.config.version_tree_arity_log2 = 2;
  manifest.files = {{"", "d/0"}, {"p/", "d/1"}};
  for (const uint64_t generation : generations) {
    manifest.versions.push_back({.generation = generation,
                                 .root_height = 1,
                                 .root = {{1, 10, 20}, {3, 20, 5}},
                                 .commit_time_ns = generation});
  }
  return manifest;
}

VersionNodeRef MakeRef(uint64_t generation, uint8_t height) {
  return {.location = {0, 30, 40},
          .generation = generation,
          .height = height,
          .num_generations = 4,
          .commit_time_ns = 5};
}

Result<Manifest> RoundTrip(const Manifest& manifest) {
  RELAYOUT_ASSIGN_OR_RETURN(std::string record, EncodeManifest(manifest));
  return DecodeManifest(ByteView::Own(std::move(record)));
}

void ExpectInvalid(const Manifest& manifest, std::string_view message) {
  const auto record = EncodeManifest(manifest);
  ASSERT_FALSE(record.has_value());
  EXPECT_EQ(record.error().kind, ErrorKind::kInvalidArgument);
  EXPECT_CONTAINS(record.error().message, message);
}

/// The body of a manifest of no versions, up to the data file table.
std::string ConfigBody(uint8_t kind, uint64_t max_bytes, uint8_t arity_log2,
                       std::string_view compression) {
  std::string body(16, 'u');
  body.push_back(static_cast<char>(kind));
  AppendVarint(body, max_bytes);
  AppendVarint(body, max_bytes);
  body.push_back(static_cast<char>(arity_log2));
  body += compression;
  return body;
}

void ExpectError(std::string_view body, ErrorKind kind,
                 std::string_view message) {
  const auto manifest = DecodeManifest(MakeRecord(RecordKind::kManifest, body));
  ASSERT_FALSE(manifest.has_value());
  EXPECT_EQ(manifest.error().kind, kind);
  EXPECT_CONTAINS(manifest.error().message, message);
}

TEST(RoundTrips) {
  for (const auto level :
       {std::optional<int32_t>(), std::optional(-7), std::optional(22)}) {
    Manifest manifest = MakeManifest({21, 23});
    manifest.config.zstd_level = level;
    manifest.version_nodes = {MakeRef(16, 2), MakeRef(20, 1)};
    const auto back = RoundTrip(manifest);
    ASSERT_OK(back);
    EXPECT_TRUE(back->config == manifest.config);
    EXPECT_TRUE(back->versions == manifest.versions);
    EXPECT_TRUE(back->version_nodes == manifest.version_nodes);
    EXPECT_TRUE(back->files == manifest.files);
  }
}

TEST(RoundTripsWithoutRoot) {
  Manifest manifest = MakeManifest({1});
  manifest.files = {{"", ""}};
  manifest.versions[0].root = {DataRef::Missing(), {}};
  manifest.versions[0].root_height = 0;
  const auto back = RoundTrip(manifest);
  ASSERT_OK(back);
  EXPECT_TRUE(back->versions[0].root.location.is_missing());
}

TEST(NumberedKindHasOnlyItsConfig) {
  Manifest manifest;
  manifest.config.manifest_kind = ManifestKind::kNumbered;
  const auto back = RoundTrip(manifest);
  ASSERT_OK(back);
  EXPECT_TRUE(back->config == manifest.config);
  EXPECT_TRUE(back->versions.empty());
  manifest.versions = MakeManifest({1}).versions;
  ExpectInvalid(manifest, "has versions itself");
}

TEST(DecodesAndEncodesAsTensorStoreDoes) {
  const std::string record = FromHex(kTensorStoreManifest);
  const auto manifest = DecodeManifest(ByteView::Own(record));
  ASSERT_OK(manifest);
  EXPECT_EQ(manifest->config.max_inline_value_bytes, 4);
  EXPECT_EQ(manifest->config.max_decoded_node_bytes, 8 << 20);
  EXPECT_FALSE(manifest->config.zstd_level.has_value());
  ASSERT_EQ(manifest->versions.size(), 1);
  EXPECT_EQ(manifest->versions[0].generation, 5);
  EXPECT_EQ(manifest->versions[0].root.statistics.num_keys, 4);
  ASSERT_EQ(manifest->version_nodes.size(), 1);
  EXPECT_EQ(manifest->version_nodes[0].generation, 4);
  EXPECT_EQ(*EncodeManifest(*manifest), record);
}

TEST(NumberedNames) {
  EXPECT_EQ(NumberedManifestName(0x1f), "manifest.000000000000001f");
  EXPECT_TRUE(ParseNumberedManifestName("manifest.000000000000001f") == 0x1f);
  EXPECT_TRUE(ParseNumberedManifestName(NumberedManifestName(UINT64_MAX)) ==
              UINT64_MAX);
  for (const auto name :
       {"manifest.ocdbt", "manifest.", "manifest.00000000000001f",
        "manifest.0000000000000001f", "manifest.000000000000001F",
        "manifest.-00000000000001f", "Manifest.000000000000001f"}) {
    EXPECT_FALSE(ParseNumberedManifestName(name).has_value());
  }
}

TEST(InvalidConfig) {
  Manifest manifest = MakeManifest({1});
  manifest.config.version_tree_arity_log2 = 0;
  ExpectInvalid(manifest, "arity");
  manifest = MakeManifest({1});
  manifest.config.zstd_level = 23;
  ExpectInvalid(manifest, "zstd level 23");
  manifest = MakeManifest({1});
  manifest.config.max_decoded_node_bytes = uint64_t{1} << 32;
  ExpectInvalid(manifest, "32 bits");
}

TEST(InvalidVersions) {
  ExpectInvalid(MakeManifest({}), "number of entries 0");
  ExpectInvalid(MakeManifest({4, 5}), "generations 4 and 5");
  Manifest manifest = MakeManifest({1});
  manifest.versions[0].root.location.file = 2;
  ExpectInvalid(manifest, "data file 2 of only 2");
}

TEST(InvalidVersionNodes) {
  const struct {
    uint64_t newest;
    std::vector<VersionNodeRef> nodes;
    std::string_view message;
  } cases[] = {
      {23, {MakeRef(20, 1), MakeRef(16, 1)}, "height 1 is outside [1, 1)"},
      {23, {MakeRef(16, 1)}, "ends with generation 16, outside (16, 20]"},
      {23, {MakeRef(24, 1)}, "outside (16, 20]"},
      {23, {MakeRef(20, 2)}, "outside (0, 16]"},
      {23, {MakeRef(16, 0)}, "height 0 is outside"},
      {23, {MakeRef(16, 32)}, "height 32 is outside [1, 32)"},
      {23, {MakeRef(16, 31)}, "outside"},
      {4, {MakeRef(4, 1)}, "outside (0, 0]"},
      {17, {MakeRef(16, 2)}, "outside (0, 0]"},
  };
  for (const auto& [newest, nodes, message] : cases) {
    Manifest manifest = MakeManifest({newest});
    manifest.version_nodes = nodes;
    ExpectInvalid(manifest, message);
  }
}

TEST(CorruptConfig) {
  const std::string_view none("\0", 1);
  ExpectError(std::string(15, 'u'), ErrorKind::kCorrupt, "uuid");
  ExpectError(std::string(16, 'u'), ErrorKind::kCorrupt, "manifest kind");
  ExpectError(ConfigBody(2, 1, 4, none), ErrorKind::kUnsupported, "kind 2");
  ExpectError(ConfigBody(0, uint64_t{1} << 32, 4, none), ErrorKind::kCorrupt,
              "max inline value bytes 4294967296 exceeds");
  ExpectError(ConfigBody(0, 1, 0, none), ErrorKind::kCorrupt, "arity log2 0");
  ExpectError(ConfigBody(0, 1, 17, none), ErrorKind::kCorrupt, "arity log2 17");
  ExpectError(ConfigBody(0, 1, 4, "\x02"), ErrorKind::kUnsupported, "method 2");
  ExpectError(ConfigBody(0, 1, 4, "\x01zz"), ErrorKind::kCorrupt, "zstd level");
  ExpectError(ConfigBody(0, 1, 4, "\x01zzzz"), ErrorKind::kCorrupt,
              "zstd level 2054847098 is outside");
  ExpectError(ConfigBody(1, 1, 4, none) + "x", ErrorKind::kCorrupt,
              "1 bytes follow");
}

TEST(CorruptWhenCutAnywhere) {
  Manifest manifest = MakeManifest({21, 23});
  manifest.config.zstd_level.reset();
  manifest.version_nodes = {MakeRef(16, 2), MakeRef(20, 1)};
  const std::string record = *EncodeManifest(manifest);
  for (size_t size = 0; size < record.size() - 4; ++size) {
    const auto back = DecodeManifest(Reseal(record.substr(0, size) + "crc!"));
    ASSERT_FALSE(back.has_value());
  }
}

}  // namespace
}  // namespace relayout::ocdbt
