#ifndef RELAYOUT_CC_BINDINGS_BUFFER_H_
#define RELAYOUT_CC_BINDINGS_BUFFER_H_

/// \file
/// Bytes across the boundary without a copy.

#include <pybind11/pybind11.h>

#include "cc/base/byte_view.h"

namespace relayout::bindings {

/// Views the bytes of an object with the buffer protocol.  The view holds the
/// buffer, and may be dropped on any thread.
///
/// Throws `ValueError` when the bytes are not contiguous.
ByteView ViewBuffer(const pybind11::buffer& buffer);

/// Returns a read-only `memoryview` that keeps `bytes` alive.
pybind11::memoryview ToMemoryView(ByteView bytes);

/// Registers the class behind `ToMemoryView`, which no module shows.
void RegisterBuffer();

}  // namespace relayout::bindings

#endif  // RELAYOUT_CC_BINDINGS_BUFFER_H_
