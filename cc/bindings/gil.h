#ifndef RELAYOUT_CC_BINDINGS_GIL_H_
#define RELAYOUT_CC_BINDINGS_GIL_H_

/// \file
/// The rules on the global interpreter lock.
///
/// 1. Work of the core runs through `WithoutGil`; it sees no Python object.
/// 2. What it reads is immutable, or held by the call alone.
/// 3. Results and exceptions become Python objects after it has returned.

#include <pybind11/pybind11.h>

#include <utility>

namespace relayout::bindings {

/// Returns `work()`, which runs without the lock.
template <typename Work>
auto WithoutGil(Work&& work) {
  const pybind11::gil_scoped_release release;
  return std::forward<Work>(work)();
}

}  // namespace relayout::bindings

#endif  // RELAYOUT_CC_BINDINGS_GIL_H_
