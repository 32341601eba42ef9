#include "cc/ocdbt/database.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "cc/base/result.h"
#include "cc/io/safe_path.h"
#include "cc/ocdbt/config.h"
#include "cc/ocdbt/data_files.h"
#include "cc/ocdbt/manifest.h"
#include "cc/ocdbt/test_tree.h"
#include "cc/testing/test.h"

namespace relayout::ocdbt {
namespace {

Manifest MakeManifest(uint64_t generation) {
  Manifest manifest;
  manifest.files = {{"", "d/0"}};
  manifest.versions = {{.generation = generation,
                        .root_height = 0,
                        .root = {{0, 0, 100}, {1, 100, 0}},
                        .commit_time_ns = 0}};
  return manifest;
}

void WriteManifest(const std::string& directory, std::string_view name,
                   const Manifest& manifest) {
  WriteFile(directory, std::string(name), *EncodeManifest(manifest));
}

/// A directory whose `manifest.ocdbt` says that manifests are numbered.
std::string NewNumbered(std::string_view name) {
  const std::string directory = NewDirectory(name);
  Manifest root;
  root.config.manifest_kind = ManifestKind::kNumbered;
  WriteManifest(directory, kManifestName, root);
  return directory;
}

Result<Manifest> Read(const std::string& directory) {
  DataFiles files(*io::RealDirectory(directory));
  return ReadNewestManifest(files);
}

void ExpectCorrupt(const std::string& directory,
                   const std::vector<std::string_view>& messages) {
  const auto manifest = Read(directory);
  ASSERT_FALSE(manifest.has_value());
  EXPECT_EQ(manifest.error().kind, ErrorKind::kCorrupt);
  for (const auto message : messages) {
    EXPECT_CONTAINS(manifest.error().message, message);
  }
}

TEST(ReadsASingleManifest) {
  const std::string directory = NewDirectory("single");
  WriteManifest(directory, kManifestName, MakeManifest(3));
  // Not of this kind of database, so of no account.
  WriteManifest(directory, NumberedManifestName(9), MakeManifest(9));
  const auto manifest = Read(directory);
  ASSERT_OK(manifest);
  EXPECT_EQ(manifest->versions.back().generation, 3);
}

TEST(ReadsTheNewestNumberedManifest) {
  const std::string directory = NewNumbered("numbered");
  for (const uint64_t generation : {2, 255, 16}) {
    WriteManifest(directory, NumberedManifestName(generation),
                  MakeManifest(generation));
  }
  WriteFile(directory, "manifest.00000000000fffff.tmp", "x");
  const auto manifest = Read(directory);
  ASSERT_OK(manifest);
  EXPECT_EQ(manifest->versions.back().generation, 255);
  EXPECT_TRUE(manifest->config.manifest_kind == ManifestKind::kNumbered);
}

TEST(NothingWrittenYet) {
  const auto manifest = Read(NewNumbered("nothing"));
  ASSERT_OK(manifest);
  EXPECT_TRUE(manifest->versions.empty());
}

TEST(CorruptWhenMissing) {
  ExpectCorrupt(NewDirectory("missing"),
                {"manifest \"manifest.ocdbt\": ", "No such file"});
}

TEST(CorruptWhenDamaged) {
  const std::string directory = NewDirectory("damaged");
  WriteFile(directory, std::string(kManifestName), "no manifest, by no means");
  ExpectCorrupt(directory, {"manifest \"manifest.ocdbt\": ", "checksum"});
}

TEST(CorruptWhenNumberedIsDamaged) {
  const std::string directory = NewNumbered("damaged_numbered");
  WriteManifest(directory, NumberedManifestName(1), MakeManifest(1));
  WriteFile(directory, NumberedManifestName(2), "");
  ExpectCorrupt(directory,
                {"manifest \"manifest.0000000000000002\": ", "of 0 bytes"});
}

TEST(CorruptWhenNameAndGenerationDiffer) {
  const std::string directory = NewNumbered("renamed");
  WriteManifest(directory, NumberedManifestName(2), MakeManifest(1));
  ExpectCorrupt(directory, {"generation is 1, but its name says 2"});
}

TEST(CorruptWhenConfigurationsDiffer) {
  const std::string directory = NewNumbered("differs");
  Manifest other = MakeManifest(2);
  other.config.uuid[0] = 1;
  WriteManifest(directory, NumberedManifestName(2), other);
  ExpectCorrupt(directory, {"manifest.0000000000000002", "configuration"});
}

TEST(CorruptWhenNumberedIsOfNumberedKind) {
  const std::string directory = NewNumbered("nested");
  Manifest nested;
  nested.config.manifest_kind = ManifestKind::kNumbered;
  WriteManifest(directory, NumberedManifestName(2), nested);
  ExpectCorrupt(directory, {"configuration differs"});
}

TEST(CorruptWhenManifestIsALinkOutside) {
  const std::string directory = NewDirectory("link/inside");
  WriteManifest(directory + "/..", "manifest", MakeManifest(1));
  std::filesystem::create_symlink("../manifest", directory + "/manifest.ocdbt");
  ExpectCorrupt(directory, {"leads out"});
}

}  // namespace
}  // namespace relayout::ocdbt
