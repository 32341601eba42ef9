#include "cc/rechunk/codec_chain.h"

#include <string>
#include <vector>

#include "cc/base/result.h"
#include "cc/testing/test.h"

namespace relayout::rechunk {
namespace {

TEST(ParsesChains) {
  EXPECT_FALSE(ParseCodecChain({})->has_zstd);
  EXPECT_TRUE(ParseCodecChain({"zstd"})->has_zstd);
  EXPECT_TRUE(ParseCodecChain({"crc32c"})->has_inner_checksum);
  const auto all = ParseCodecChain({"crc32c", "zstd", "crc32c"});
  ASSERT_OK(all);
  EXPECT_TRUE(all->has_inner_checksum);
  EXPECT_TRUE(all->has_zstd);
  EXPECT_TRUE(all->has_outer_checksum);
}

TEST(RefusesOtherChains) {
  const std::vector<std::string> chains[] = {{"gzip"},
                                             {"zstd", "zstd"},
                                             {"crc32c", "crc32c"},
                                             {"zstd", "crc32c", "crc32c"}};
  for (const auto& names : chains) {
    const auto chain = ParseCodecChain(names);
    ASSERT_FALSE(chain.has_value());
    EXPECT_EQ(chain.error().kind, ErrorKind::kUnsupported);
    EXPECT_CONTAINS(chain.error().message, names.back());
  }
}

}  // namespace
}  // namespace relayout::rechunk
