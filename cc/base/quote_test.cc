#include "cc/base/quote.h"

#include <string>
#include <string_view>

#include "cc/testing/test.h"

namespace relayout {
namespace {

TEST(LeavesPlainTextAsItIs) { EXPECT_EQ(Quote("d/1f 0"), "\"d/1f 0\""); }

TEST(EscapesWhatCouldConfuseATerminal) {
  EXPECT_EQ(Quote(std::string_view("\0\n\x7f\xff", 4)),
            "\"\\x00\\x0a\\x7f\\xff\"");
  EXPECT_EQ(Quote("\"\\"), "\"\\\"\\\\\"");
}

TEST(ShortensLongBytes) {
  EXPECT_EQ(Quote(std::string(300, 'a')), "\"" + std::string(300, 'a') + "\"");
  EXPECT_EQ(Quote(std::string(70000, 'a')),
            "\"" + std::string(300, 'a') + "\"...");
}

}  // namespace
}  // namespace relayout
