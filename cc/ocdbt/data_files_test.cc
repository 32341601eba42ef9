#include "cc/ocdbt/data_files.h"

#include <string>

#include "cc/base/result.h"
#include "cc/base/str_cat.h"
#include "cc/io/safe_path.h"
#include "cc/ocdbt/test_tree.h"
#include "cc/testing/test.h"

namespace relayout::ocdbt {
namespace {

TEST(OpensMoreFilesThanItKeepsOpen) {
  const std::string directory = NewDirectory("many");
  for (int i = 0; i < 200; ++i) {
    WriteFile(directory, StrCat("d/", i), StrCat("content ", i));
  }
  DataFiles files(*io::RealDirectory(directory));
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 200; ++i) {
      const auto reader = files.Open(StrCat("d/", i));
      ASSERT_OK(reader);
      const auto bytes = (*reader)->Read(0, (*reader)->size());
      ASSERT_OK(bytes);
      EXPECT_EQ(bytes->bytes(), StrCat("content ", i));
    }
  }
}

TEST(CorruptUnsafePath) {
  const std::string directory = NewDirectory("unsafe/root");
  WriteFile(directory, "../secret", "x");
  DataFiles files(*io::RealDirectory(directory));
  for (const std::string path : {"../secret", "/etc/passwd", "", "none"}) {
    const auto reader = files.Open(path);
    ASSERT_FALSE(reader.has_value());
    EXPECT_EQ(reader.error().kind, ErrorKind::kCorrupt);
  }
}

}  // namespace
}  // namespace relayout::ocdbt
