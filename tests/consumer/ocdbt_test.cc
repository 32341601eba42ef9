// Reads the keys of a real checkpoint through the public C++ library.

#include <iostream>
#include <string>

#include "cc/io/safe_path.h"
#include "cc/ocdbt/data_files.h"
#include "cc/ocdbt/database.h"
#include "cc/ocdbt/manifest.h"
#include "cc/ocdbt/walk.h"

namespace {

int Fail(const std::string& message) {
  std::cerr << message << "\n";
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return Fail("expected the folder of a run");
  const std::string item = std::string(argv[1]) + "/checkpoints/4/model_params";
  const auto root = relayout::io::RealDirectory(item);
  if (!root) return Fail(root.error().message);
  relayout::ocdbt::DataFiles files(*root);
  const auto manifest = relayout::ocdbt::ReadNewestManifest(files);
  if (!manifest) return Fail(manifest.error().message);
  if (manifest->versions.empty()) return Fail(item + ": no version");
  const auto leaves = relayout::ocdbt::ReadLeaves(
      files, manifest->versions.back(), manifest->files, /*num_threads=*/1);
  if (!leaves) return Fail(leaves.error().message);
  if (leaves->empty()) return Fail(item + ": no keys");
  return 0;
}
