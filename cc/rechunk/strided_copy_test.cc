#include "cc/rechunk/strided_copy.h"

#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "cc/rechunk/element.h"
#include "cc/rechunk/element_copy.h"
#include "cc/testing/test.h"

namespace relayout::rechunk {
namespace {

CopyElements Copy(std::string_view source, bool big_endian,
                  std::string_view target) {
  const auto copy = SelectCopy(*ParseElementType(source), big_endian,
                               *ParseElementType(target));
  return copy.has_value() ? *copy : nullptr;
}

/// Transposes an array of 3 x 4 x 5 elements of `T` as `dtype`.
template <typename T>
void ExpectTransposes(std::string_view dtype) {
  std::vector<T> source(60);
  std::iota(source.begin(), source.end(), T{1});
  std::vector<T> target(60);
  constexpr auto kSize = static_cast<ptrdiff_t>(sizeof(T));
  StridedBox box;
  box.Add(3, 20 * kSize, 1 * kSize);
  box.Add(4, 5 * kSize, 15 * kSize);
  box.Add(5, 1 * kSize, 3 * kSize);
  CopyBox(box, reinterpret_cast<const char*>(source.data()),
          reinterpret_cast<char*>(target.data()), Copy(dtype, false, dtype));
  for (size_t i = 0; i < 60; ++i) {
    const size_t a = i / 20;
    const size_t b = i / 5 % 4;
    const size_t c = i % 5;
    EXPECT_EQ(target[b * 15 + c * 3 + a], source[i]);
  }
}

TEST(Transposes) {
  ExpectTransposes<uint8_t>("float8_e4m3fn");
  ExpectTransposes<uint16_t>("bfloat16");
  ExpectTransposes<uint32_t>("int32");
  ExpectTransposes<uint64_t>("complex64");
}

TEST(CopiesOneElementWithoutAxes) {
  const std::string source = "0123456789abcdef";
  std::string target(16, '\0');
  CopyBox({}, source.data(), target.data(),
          Copy("complex128", false, "complex128"));
  EXPECT_EQ(target, source);
}

TEST(TouchesTheBoxOnly) {
  const std::string source = "abcdef";
  std::string target(9, '.');
  StridedBox box;
  box.Add(2, 3, 4);
  box.Add(2, 1, 1);
  CopyBox(box, source.data(), target.data() + 1, Copy("int8", false, "int8"));
  EXPECT_EQ(target, ".ab..de..");
}

TEST(SwapsBytesWithinHalves) {
  const struct {
    std::string_view dtype;
    std::string_view big, little;
  } cases[] = {
      {"int8", "a", "a"},
      {"float16", "ab", "ba"},
      {"uint32", "abcd", "dcba"},
      {"float64", "abcdefgh", "hgfedcba"},
      {"complex64", "abcdefgh", "dcbahgfe"},
      {"complex128", "abcdefghijklmnop", "hgfedcbaponmlkji"},
  };
  for (const auto& [dtype, big, little] : cases) {
    std::string target(big.size(), '\0');
    CopyBox({}, big.data(), target.data(), Copy(dtype, true, dtype));
    EXPECT_EQ(target, little);
  }
}

TEST(CastsOnTheWay) {
  const std::string_view source("\x3f\x80\x00\x00\xc0\x00\x00\x00", 8);
  std::string target(4, '\0');
  StridedBox box;
  box.Add(2, 4, 2);
  CopyBox(box, source.data(), target.data(), Copy("float32", true, "bfloat16"));
  EXPECT_EQ(target, std::string("\x80\x3f\x00\xc0", 4));
}

TEST(RefusesOtherCastsNamingBoth) {
  const auto copy = SelectCopy(*ParseElementType("int32"), false,
                               *ParseElementType("float32"));
  ASSERT_FALSE(copy.has_value());
  EXPECT_EQ(copy.error().kind, ErrorKind::kInvalidArgument);
  EXPECT_CONTAINS(copy.error().message, "\"int32\" to \"float32\"");
}

TEST(RefusesUnknownTypes) {
  for (const auto name : {"", "string", "int4x", "float128"}) {
    const auto type = ParseElementType(name);
    ASSERT_FALSE(type.has_value());
    EXPECT_EQ(type.error().kind, ErrorKind::kUnsupported);
  }
}

}  // namespace
}  // namespace relayout::rechunk
