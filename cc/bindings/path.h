#ifndef RELAYOUT_CC_BINDINGS_PATH_H_
#define RELAYOUT_CC_BINDINGS_PATH_H_

/// \file
/// Paths as arguments of Python functions.

#include <pybind11/pybind11.h>

#include <string>

namespace relayout::bindings {

/// A path given as `str` or `os.PathLike[str]`, encoded as `os.fsencode` does.
struct Path {
  std::string bytes;
};

}  // namespace relayout::bindings

namespace pybind11::detail {

template <>
struct type_caster<relayout::bindings::Path> {
  PYBIND11_TYPE_CASTER(relayout::bindings::Path,
                       const_name("os.PathLike[str] | str"));

  bool load(handle source, bool /*convert*/) {
    PyObject* encoded = nullptr;
    if (PyUnicode_FSConverter(source.ptr(), &encoded) == 0) {
      PyErr_Clear();
      return false;
    }
    value.bytes = std::string(reinterpret_steal<pybind11::bytes>(encoded));
    return true;
  }
};

}  // namespace pybind11::detail

#endif  // RELAYOUT_CC_BINDINGS_PATH_H_
