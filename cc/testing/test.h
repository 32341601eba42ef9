// A small unit test framework: tests, expectations and a JUnit report.
//
//   TEST(SplitsAtSlash) {
//     auto parts = Split("a/b");
//     ASSERT_OK(parts);
//     EXPECT_EQ(parts->size(), 2);
//   }
//
// An EXPECT notes a failure and goes on; an ASSERT also returns from the
// function it stands in. //cc/testing:test brings main().
#ifndef RELAYOUT_CC_TESTING_TEST_H_
#define RELAYOUT_CC_TESTING_TEST_H_

#include <concepts>
#include <cstddef>
#include <ostream>
#include <ranges>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace relayout::testing {

// Adds a test to the list that main() runs; the result is only a reason for
// a static initializer.
bool Register(const char* name, void (*body)()) noexcept;

// Notes a failure of the test that runs now. Threads may call it.
void Fail(const char* file, int line, const std::string& message);

// A directory for this test program's files; exists, ends without a slash.
std::string TempDir();

// `text` with every byte that is not printable ASCII as \xNN.
std::string EscapeBytes(std::string_view text);

template <typename T>
concept Streamable =
    requires(std::ostream& os, const T& value) { os << value; };

template <typename T>
concept ComparableInteger =
    std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char> &&
    !std::same_as<T, wchar_t> && !std::same_as<T, char8_t> &&
    !std::same_as<T, char16_t> && !std::same_as<T, char32_t>;

template <typename T>
void PrintTo(std::ostream& os, const T& value) {
  if constexpr (std::convertible_to<const T&, std::string_view>) {
    os << '"' << EscapeBytes(std::string_view(value)) << '"';
  } else if constexpr (std::same_as<T, bool>) {
    os << (value ? "true" : "false");
  } else if constexpr (std::same_as<T, std::nullptr_t>) {
    os << "nullptr";
  } else if constexpr (std::integral<T> && sizeof(T) == 1) {
    os << static_cast<int>(value);
  } else if constexpr (std::is_enum_v<T>) {
    os << "enum " << +static_cast<std::underlying_type_t<T>>(value);
  } else if constexpr (Streamable<T>) {
    os << value;
  } else if constexpr (std::ranges::input_range<const T>) {
    os << '[';
    const char* separator = "";
    for (const auto& item : value) {
      os << std::exchange(separator, ", ");
      PrintTo(os, item);
    }
    os << ']';
  } else if constexpr (requires {
                         value.has_value();
                         *value;
                       }) {
    if (value.has_value()) {
      PrintTo(os, *value);
    } else {
      os << "(no value)";
    }
  } else if constexpr (requires {
                         value.first;
                         value.second;
                       }) {
    os << '(';
    PrintTo(os, value.first);
    os << ", ";
    PrintTo(os, value.second);
    os << ')';
  } else {
    os << '<' << sizeof(T) << "-byte object>";
  }
}

// Equality that does not warn about, and is not fooled by, mixed signs.
template <typename A, typename B>
bool Equal(const A& a, const B& b) {
  if constexpr (ComparableInteger<A> && ComparableInteger<B>) {
    return std::cmp_equal(a, b);
  } else {
    return static_cast<bool>(a == b);
  }
}

template <typename A, typename B>
bool CheckEqual(const A& a, const B& b, bool want, const char* text,
                const char* file, int line) {
  if (Equal(a, b) == want) return true;
  std::ostringstream os;
  os << text << "\n  left:  ";
  PrintTo(os, a);
  os << "\n  right: ";
  PrintTo(os, b);
  Fail(file, line, os.str());
  return false;
}

inline bool CheckBool(bool got, bool want, const char* text, const char* file,
                      int line) {
  if (got == want) return true;
  Fail(file, line, std::string(text) + (got ? "\n  is true" : "\n  is false"));
  return false;
}

template <typename R>
bool CheckOk(const R& result, const char* text, const char* file, int line) {
  if (result.has_value()) return true;
  std::ostringstream os;
  os << text << "\n  error: ";
  if constexpr (requires { os << result.error().message; }) {
    os << EscapeBytes(result.error().message);
  } else if constexpr (requires { os << result.error().message(); }) {
    os << EscapeBytes(result.error().message());
  } else if constexpr (requires { result.error(); }) {
    PrintTo(os, result.error());
  } else {
    os << "(no value)";
  }
  Fail(file, line, os.str());
  return false;
}

inline bool CheckContains(std::string_view whole, std::string_view part,
                          const char* text, const char* file, int line) {
  if (whole.find(part) != std::string_view::npos) return true;
  Fail(file, line,
       std::string(text) + "\n  whole: \"" + EscapeBytes(whole) +
           "\"\n  lacks: \"" + EscapeBytes(part) + '"');
  return false;
}

}  // namespace relayout::testing

#define TEST(name)                                                \
  static void RelayoutTest_##name();                              \
  [[maybe_unused]] static const bool relayout_registered_##name = \
      ::relayout::testing::Register(#name, &RelayoutTest_##name); \
  static void RelayoutTest_##name()

#define RELAYOUT_AT __FILE__, __LINE__
#define RELAYOUT_OR_RETURN(check) \
  do {                            \
    if (!(check)) return;         \
  } while (false)

#define EXPECT_TRUE(...)                                               \
  ::relayout::testing::CheckBool(static_cast<bool>(__VA_ARGS__), true, \
                                 #__VA_ARGS__, RELAYOUT_AT)
#define EXPECT_FALSE(...)                                               \
  ::relayout::testing::CheckBool(static_cast<bool>(__VA_ARGS__), false, \
                                 #__VA_ARGS__, RELAYOUT_AT)
#define EXPECT_EQ(a, ...)                               \
  ::relayout::testing::CheckEqual(a, __VA_ARGS__, true, \
                                  #a " == " #__VA_ARGS__, RELAYOUT_AT)
#define EXPECT_NE(a, ...)                                \
  ::relayout::testing::CheckEqual(a, __VA_ARGS__, false, \
                                  #a " != " #__VA_ARGS__, RELAYOUT_AT)
#define EXPECT_OK(...) \
  ::relayout::testing::CheckOk(__VA_ARGS__, #__VA_ARGS__, RELAYOUT_AT)
#define EXPECT_CONTAINS(whole, ...)   \
  ::relayout::testing::CheckContains( \
      whole, __VA_ARGS__, #whole " contains " #__VA_ARGS__, RELAYOUT_AT)

#define ASSERT_TRUE(...) RELAYOUT_OR_RETURN(EXPECT_TRUE(__VA_ARGS__))
#define ASSERT_FALSE(...) RELAYOUT_OR_RETURN(EXPECT_FALSE(__VA_ARGS__))
#define ASSERT_EQ(...) RELAYOUT_OR_RETURN(EXPECT_EQ(__VA_ARGS__))
#define ASSERT_NE(...) RELAYOUT_OR_RETURN(EXPECT_NE(__VA_ARGS__))
#define ASSERT_OK(...) RELAYOUT_OR_RETURN(EXPECT_OK(__VA_ARGS__))

#endif  // RELAYOUT_CC_TESTING_TEST_H_
