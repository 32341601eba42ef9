#include "cc/ocdbt/database.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "cc/base/byte_view.h"
#include "cc/base/quote.h"
#include "cc/base/result.h"
#include "cc/base/str_cat.h"
#include "cc/ocdbt/config.h"
#include "cc/ocdbt/data_files.h"
#include "cc/ocdbt/manifest.h"
#include "cc/ocdbt/record.h"

namespace relayout::ocdbt {
namespace {

Result<Manifest> ReadWhole(DataFiles& files, const std::string& name) {
  RELAYOUT_ASSIGN_OR_RETURN(const auto reader, files.Open(name));
  if (reader->size() > kMaxRecordBytes) {
    return Corrupt(StrCat("file of ", reader->size(),
                          " bytes exceeds the limit of ", kMaxRecordBytes));
  }
  RELAYOUT_ASSIGN_OR_RETURN(const ByteView record,
                            reader->Read(0, reader->size()));
  return DecodeManifest(record);
}

Result<Manifest> ReadManifest(DataFiles& files, const std::string& name) {
  auto manifest = ReadWhole(files, name);
  if (manifest.has_value()) return manifest;
  return InContext(std::move(manifest).error(),
                   StrCat("manifest ", Quote(name)));
}

/// Returns the newest generation that has a numbered manifest, or 0.
Result<uint64_t> FindNewestGeneration(const std::string& directory) {
  std::error_code error;
  std::filesystem::directory_iterator it(directory, error);
  uint64_t newest = 0;
  for (; !error && it != std::filesystem::directory_iterator();
       it.increment(error)) {
    const auto name = it->path().filename().string();
    newest = std::max(newest, ParseNumberedManifestName(name).value_or(0));
  }
  if (error) {
    return SystemError(
        StrCat("can't list ", Quote(directory), ": ", error.message()));
  }
  return newest;
}

Status CheckNumbered(const Manifest& numbered, const Config& config,
                     uint64_t generation) {
  Config expected = config;
  expected.manifest_kind = ManifestKind::kSingle;
  if (numbered.config != expected) {
    return Corrupt(
        StrCat("configuration differs from that of ", Quote(kManifestName)));
  }
  const uint64_t newest = numbered.versions.back().generation;
  if (newest != generation) {
    return Corrupt(StrCat("newest generation is ", newest,
                          ", but its name says ", generation));
  }
  return {};
}

Result<Manifest> ReadNewestNumbered(DataFiles& files, Manifest root) {
  RELAYOUT_ASSIGN_OR_RETURN(const uint64_t generation,
                            FindNewestGeneration(files.real_root()));
  if (generation == 0) return root;
  const std::string name = NumberedManifestName(generation);
  RELAYOUT_ASSIGN_OR_RETURN(Manifest numbered, ReadManifest(files, name));
  if (Status status = CheckNumbered(numbered, root.config, generation);
      !status.has_value()) {
    return InContext(std::move(status).error(),
                     StrCat("manifest ", Quote(name)));
  }
  numbered.config.manifest_kind = ManifestKind::kNumbered;
  return numbered;
}

}  // namespace

Result<Manifest> ReadNewestManifest(DataFiles& files) {
  RELAYOUT_ASSIGN_OR_RETURN(Manifest manifest,
                            ReadManifest(files, std::string(kManifestName)));
  if (manifest.config.manifest_kind == ManifestKind::kSingle) return manifest;
  return ReadNewestNumbered(files, std::move(manifest));
}

}  // namespace relayout::ocdbt
