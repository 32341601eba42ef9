#ifndef RELAYOUT_CC_BASE_STR_CAT_H_
#define RELAYOUT_CC_BASE_STR_CAT_H_

/// \file
/// Concatenation of strings, characters and integers, for messages.

#include <charconv>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>

namespace relayout {
namespace internal_str_cat {

inline void Append(std::string& out, std::string_view part) {
  out.append(part);
}

inline void Append(std::string& out, char part) { out.push_back(part); }

template <std::integral T>
  requires(!std::same_as<T, char> && !std::same_as<T, bool>)
void Append(std::string& out, T part) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof(digits), part).ptr;
  out.append(digits, static_cast<size_t>(end - digits));
}

}  // namespace internal_str_cat

/// Appends `parts` to `out`: strings and characters as they are, integers (one
/// byte wide ones included) in decimal.
template <typename... Parts>
void StrAppend(std::string& out, const Parts&... parts) {
  (internal_str_cat::Append(out, parts), ...);
}

/// Returns the concatenation of `parts`; see `StrAppend`.
template <typename... Parts>
[[nodiscard]] std::string StrCat(const Parts&... parts) {
  std::string out;
  StrAppend(out, parts...);
  return out;
}

}  // namespace relayout

#endif  // RELAYOUT_CC_BASE_STR_CAT_H_
