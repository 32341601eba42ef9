#include "cc/base/result.h"

#include <memory>

#include "cc/testing/test.h"

namespace relayout {
namespace {

Result<int> Half(int value) {
  if (value % 2 != 0) return InvalidArgument("odd");
  return value / 2;
}

Result<int> Quarter(int value) {
  RELAYOUT_ASSIGN_OR_RETURN(const int half, Half(value));
  RELAYOUT_ASSIGN_OR_RETURN(const int quarter, Half(half));
  return quarter;
}

Status CheckQuarter(int value) {
  RELAYOUT_RETURN_IF_ERROR(Quarter(value));
  return {};
}

Result<std::unique_ptr<int>> MakeUnique() { return std::make_unique<int>(7); }

Result<int> MovesTheValue() {
  RELAYOUT_ASSIGN_OR_RETURN(const std::unique_ptr<int> value, MakeUnique());
  return *value;
}

TEST(AssignsOrReturns) {
  EXPECT_EQ(*Quarter(8), 2);
  const auto result = Quarter(6);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, ErrorKind::kInvalidArgument);
  EXPECT_EQ(result.error().message, "odd");
  EXPECT_EQ(*MovesTheValue(), 7);
}

TEST(ReturnsIfError) {
  EXPECT_OK(CheckQuarter(4));
  EXPECT_FALSE(CheckQuarter(2).has_value());
}

TEST(AddsContextInFront) {
  const Status status = InContext(Error{ErrorKind::kCorrupt, "bad"}, "node 3");
  EXPECT_EQ(status.error().message, "node 3: bad");
  EXPECT_EQ(status.error().kind, ErrorKind::kCorrupt);
}

}  // namespace
}  // namespace relayout
