#include "cc/rechunk/cast.h"

#include <cstdint>

#include "cc/rechunk/element.h"
#include "cc/testing/test.h"

namespace relayout::rechunk {
namespace {

using enum FloatKind;

TEST(Float32ToBfloat16RoundsToEven) {
  EXPECT_EQ((Cast<kFloat32, kBfloat16>(0x3f800000)), 0x3f80);
  EXPECT_EQ((Cast<kFloat32, kBfloat16>(0x3f808000)), 0x3f80);  // tie
  EXPECT_EQ((Cast<kFloat32, kBfloat16>(0x3f808001)), 0x3f81);
  EXPECT_EQ((Cast<kFloat32, kBfloat16>(0x3f818000)), 0x3f82);  // tie
  EXPECT_EQ((Cast<kFloat32, kBfloat16>(0x7f7fffff)), 0x7f80);  // overflow
  EXPECT_EQ((Cast<kFloat32, kBfloat16>(0xff800000)), 0xff80);
  EXPECT_EQ((Cast<kFloat32, kBfloat16>(0xff800001)), 0xffc0);  // NaN
}

TEST(Float32ToFloat16) {
  EXPECT_EQ((Cast<kFloat32, kFloat16>(0x3f800000)), 0x3c00);
  EXPECT_EQ((Cast<kFloat32, kFloat16>(0x3f801000)), 0x3c00);  // tie
  EXPECT_EQ((Cast<kFloat32, kFloat16>(0x3f803000)), 0x3c02);  // tie
  EXPECT_EQ((Cast<kFloat32, kFloat16>(0x477fefff)), 0x7bff);
  EXPECT_EQ((Cast<kFloat32, kFloat16>(0x477ff000)), 0x7c00);  // overflow
  EXPECT_EQ((Cast<kFloat32, kFloat16>(0x33800000)), 0x0001);  // subnormal
  EXPECT_EQ((Cast<kFloat32, kFloat16>(0x33000000)), 0x0000);  // tie
  EXPECT_EQ((Cast<kFloat32, kFloat16>(0x33000001)), 0x0001);
  EXPECT_EQ((Cast<kFloat32, kFloat16>(0x387fffff)), 0x0400);  // carry
  EXPECT_EQ((Cast<kFloat32, kFloat16>(0x80000001)), 0x8000);
  EXPECT_EQ((Cast<kFloat32, kFloat16>(0xff800000)), 0xfc00);
  EXPECT_EQ((Cast<kFloat32, kFloat16>(0x7f800001)), 0x7c01);  // NaN stays one
}

TEST(Float64ToFloat16RoundsOnce) {
  // Rounded to float32 first, it would be a tie.
  EXPECT_EQ((Cast<kFloat64, kFloat16>(0x3ff0020000000001)), 0x3c01);
  EXPECT_EQ((Cast<kFloat64, kFloat16>(0x3ff0020000000000)), 0x3c00);
}

TEST(Float64ToBfloat16RoundsTwiceAsMlDtypes) {
  EXPECT_EQ((Cast<kFloat64, kBfloat16>(0x3ff0100000000001)), 0x3f80);
}

TEST(NotANumber) {
  EXPECT_EQ((Cast<kFloat16, kFloat64>(0xfc01)), 0xfff0040000000000);
  EXPECT_EQ((Cast<kBfloat16, kFloat16>(0xff81)), 0xfe00);
  EXPECT_EQ((Cast<kFloat16, kFloat32>(0x7c01)), 0x7f802000);
}

TEST(WideningLosesNothing) {
  for (uint32_t bits = 0; bits < 1 << 16; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    EXPECT_EQ((Cast<kFloat32, kFloat16>(Cast<kFloat16, kFloat32>(half))), half);
    EXPECT_EQ((Cast<kFloat64, kFloat16>(Cast<kFloat16, kFloat64>(half))), half);
    if ((half & 0x7fff) > 0x7f80) continue;  // NaN
    EXPECT_EQ((Cast<kFloat32, kBfloat16>(Cast<kBfloat16, kFloat32>(half))),
              half);
  }
}

}  // namespace
}  // namespace relayout::rechunk
