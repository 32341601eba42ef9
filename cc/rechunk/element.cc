#include "cc/rechunk/element.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "cc/base/quote.h"
#include "cc/base/result.h"
#include "cc/base/str_cat.h"

namespace relayout::rechunk {
namespace {

struct Row {
  std::string_view name;
  uint32_t num_bytes;
  uint32_t num_swap_bytes;
  FloatKind kind = FloatKind::kNone;
};

constexpr Row kRows[] = {
    {"bool", 1, 1},
    {"int8", 1, 1},
    {"uint8", 1, 1},
    {"int16", 2, 2},
    {"uint16", 2, 2},
    {"int32", 4, 4},
    {"uint32", 4, 4},
    {"int64", 8, 8},
    {"uint64", 8, 8},
    {"float16", 2, 2, FloatKind::kFloat16},
    {"bfloat16", 2, 2, FloatKind::kBfloat16},
    {"float32", 4, 4, FloatKind::kFloat32},
    {"float64", 8, 8, FloatKind::kFloat64},
    {"complex64", 8, 4},
    {"complex128", 16, 8},
};

/// The names of those that take one byte each, however few bits they use.
constexpr std::string_view kNarrowPrefixes[] = {
    "int2", "uint2", "int4", "uint4", "float4_", "float6_", "float8_"};

}  // namespace

Result<ElementType> ParseElementType(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) {
      return ElementType{.name = std::string(name),
                         .num_bytes = row.num_bytes,
                         .num_swap_bytes = row.num_swap_bytes,
                         .kind = row.kind};
    }
  }
  for (const std::string_view prefix : kNarrowPrefixes) {
    const bool is_whole_name = prefix.back() != '_';
    if (is_whole_name ? name == prefix : name.starts_with(prefix)) {
      return ElementType{
          .name = std::string(name), .num_bytes = 1, .num_swap_bytes = 1};
    }
  }
  return Unsupported(StrCat("dtype ", Quote(name), " can't be rewritten"));
}

}  // namespace relayout::rechunk
