#ifndef RELAYOUT_CC_RECHUNK_ELEMENT_H_
#define RELAYOUT_CC_RECHUNK_ELEMENT_H_

/// \file
/// What is to be known of a dtype in order to move its elements.

#include <cstdint>
#include <string>
#include <string_view>

#include "cc/base/result.h"

namespace relayout::rechunk {

enum class FloatKind : uint8_t {
  kNone,  ///< elements that are moved as they are
  kFloat16,
  kBfloat16,
  kFloat32,
  kFloat64,
};

struct ElementType {
  std::string name;
  uint32_t num_bytes = 0;  ///< of one element
  /// Bytes that change places with the byte order: those of one half of a
  /// complex number.
  uint32_t num_swap_bytes = 0;
  FloatKind kind = FloatKind::kNone;
};

/// Errors: `kUnsupported` when no dtype of that name is known.
Result<ElementType> ParseElementType(std::string_view name);

}  // namespace relayout::rechunk

#endif  // RELAYOUT_CC_RECHUNK_ELEMENT_H_
