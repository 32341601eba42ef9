#ifndef RELAYOUT_CC_RECHUNK_ELEMENT_COPY_H_
#define RELAYOUT_CC_RECHUNK_ELEMENT_COPY_H_

/// \file
/// The innermost loops of a copy: elements with strides, converted on the way.

#include <cstddef>
#include <cstdint>

#include "cc/base/result.h"
#include "cc/rechunk/element.h"

namespace relayout::rechunk {

/// Two nested loops over elements; strides are in bytes.
struct ElementLoop {
  const char* source;
  char* target;
  uint64_t num_outer;
  uint64_t num_inner;
  ptrdiff_t source_outer;
  ptrdiff_t target_outer;
  ptrdiff_t source_inner;
  ptrdiff_t target_inner;
};

using CopyElements = void (*)(const ElementLoop& loop);

/// Returns the function that turns `source` elements, big endian if so said,
/// into little-endian `target` ones.
///
/// Errors: `kInvalidArgument` naming both when there is no such conversion.
Result<CopyElements> SelectCopy(const ElementType& source, bool big_endian,
                                const ElementType& target);

}  // namespace relayout::rechunk

#endif  // RELAYOUT_CC_RECHUNK_ELEMENT_COPY_H_
