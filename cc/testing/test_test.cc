#include "cc/testing/test.h"

#include <cstdint>
#include <expected>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace relayout::testing {
namespace {

struct Error {
  std::string message;
};

enum class Kind { kOne = 1 };

template <typename T>
std::string Print(const T& value) {
  std::ostringstream os;
  PrintTo(os, value);
  return os.str();
}

TEST(PrintsValues) {
  EXPECT_EQ(Print(std::string("a\0b", 3)), "\"a\\x00b\"");
  EXPECT_EQ(Print(std::vector<int>{1, 2}), "[1, 2]");
  EXPECT_EQ(Print(std::vector<std::string>{"a"}), "[\"a\"]");
  EXPECT_EQ(Print(std::optional<int>(3)), "3");
  EXPECT_EQ(Print(std::optional<int>()), "(no value)");
  EXPECT_EQ(Print(std::pair(1, true)), "(1, true)");
  EXPECT_EQ(Print(std::uint8_t{7}), "7");
  EXPECT_EQ(Print(Kind::kOne), "enum 1");
  EXPECT_EQ(Print(Error{"x"}), "<32-byte object>");
}

TEST(ComparesMixedSigns) {
  EXPECT_EQ(std::size_t{2}, 2);
  EXPECT_NE(std::uint32_t{0xffffffff}, -1);
  EXPECT_EQ((std::pair<int, int>(1, 2)), std::pair<int, int>(1, 2));
}

TEST(AcceptsResults) {
  const std::expected<int, Error> value(3);
  ASSERT_OK(value);
  EXPECT_EQ(*value, 3);
  EXPECT_OK((std::expected<void, Error>()));
  EXPECT_FALSE((std::expected<int, Error>(std::unexpected(Error{"no"}))));
}

TEST(FindsSubstrings) { EXPECT_CONTAINS("abc", "b"); }

TEST(HasTemporaryDirectory) {
  EXPECT_TRUE(std::filesystem::is_directory(TempDir()));
}

}  // namespace
}  // namespace relayout::testing
