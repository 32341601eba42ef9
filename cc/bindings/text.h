#ifndef RELAYOUT_CC_BINDINGS_TEXT_H_
#define RELAYOUT_CC_BINDINGS_TEXT_H_

/// \file
/// From bytes to Python strings.  The bytes may come from anyone, so no
/// function takes them to be UTF-8.

#include <pybind11/pybind11.h>

#include <string_view>

namespace relayout::bindings {

/// Returns a name of a checkpoint; throws a `kCorrupt` `ErrorException` if it
/// is not UTF-8.
pybind11::str NameToStr(std::string_view name);

/// Returns a path, as `os.fsdecode` does: `os.fsencode` gives it back.
pybind11::str PathToStr(std::string_view path);

/// Returns a message; bytes that are not UTF-8 become `\xNN`.
pybind11::str MessageToStr(std::string_view message);

}  // namespace relayout::bindings

#endif  // RELAYOUT_CC_BINDINGS_TEXT_H_
