#include "cc/rekey/value_part.h"

#include <cstdint>
#include <string_view>

#include "cc/testing/test.h"

namespace relayout::rekey {
namespace {

ocdbt::Value InlineValue(std::string_view bytes) {
  ocdbt::Value value;
  value.length = bytes.size();
  value.inline_data = bytes.data();
  return value;
}

TEST(TakesAPartOfAnInlineValue) {
  const ocdbt::Value value = InlineValue("abcdef");
  ASSERT_OK(CheckPart(value, {2, 3}));
  const ocdbt::Value part = PartOf(value, {2, 3});
  ASSERT_TRUE(part.is_inline());
  EXPECT_EQ(part.inline_bytes(), "cde");
}

TEST(TakesAPartOfAnIndirectValue) {
  ocdbt::Value value;
  value.file = 7;
  value.length = 50;
  value.offset = 100;
  ASSERT_OK(CheckPart(value, {20, 30}));
  const ocdbt::Value part = PartOf(value, {20, 30});
  EXPECT_EQ(part.file, 7);
  EXPECT_EQ(part.offset, 120);
  EXPECT_EQ(part.length, 30);
}

TEST(RefusesRangesThatLeaveTheValue) {
  for (const ValueRange range :
       {ValueRange{7, 0}, ValueRange{6, 1}, ValueRange{0, 7},
        ValueRange{1, UINT64_MAX}, ValueRange{UINT64_MAX, 1}}) {
    const Status status = CheckPart(InlineValue("abcdef"), range);
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().kind, ErrorKind::kCorrupt);
    EXPECT_CONTAINS(status.error().message, "6-byte");
  }
}

}  // namespace
}  // namespace relayout::rekey
