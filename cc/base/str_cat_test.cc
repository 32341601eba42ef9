#include "cc/base/str_cat.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "cc/testing/test.h"

namespace relayout {
namespace {

TEST(JoinsStringsAndCharacters) {
  EXPECT_EQ(StrCat("a", std::string("b"), std::string_view("c"), 'd'), "abcd");
  EXPECT_EQ(StrCat(), "");
}

TEST(WritesIntegersOfEveryWidthInDecimal) {
  EXPECT_EQ(StrCat(uint8_t{200}, ",", int8_t{-5}, ",", uint16_t{65535}),
            "200,-5,65535");
  EXPECT_EQ(StrCat(UINT64_MAX), "18446744073709551615");
  EXPECT_EQ(StrCat(INT64_MIN), "-9223372036854775808");
}

TEST(AppendsToWhatIsThere) {
  std::string out = "x";
  StrAppend(out, 1, "y");
  EXPECT_EQ(out, "x1y");
}

}  // namespace
}  // namespace relayout
