#include "cc/bindings/text.h"

#include "cc/base/quote.h"
#include "cc/base/result.h"
#include "cc/base/str_cat.h"
#include "cc/bindings/status.h"

namespace relayout::bindings {
namespace {

namespace py = pybind11;

/// Takes over a new reference; throws the pending exception if there is none.
py::str Steal(PyObject* object) {
  if (object == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(object);
}

PyObject* DecodeUtf8(std::string_view bytes, const char* errors) {
  return PyUnicode_DecodeUTF8(bytes.data(),
                              static_cast<Py_ssize_t>(bytes.size()), errors);
}

}  // namespace

py::str NameToStr(std::string_view name) {
  PyObject* const object = DecodeUtf8(name, "strict");
  if (object != nullptr) return py::reinterpret_steal<py::str>(object);
  PyErr_Clear();
  throw ErrorException(
      {.kind = ErrorKind::kCorrupt,
       .message = StrCat("name ", Quote(name), " is not valid UTF-8")});
}

py::str PathToStr(std::string_view path) {
  return Steal(PyUnicode_DecodeFSDefaultAndSize(
      path.data(), static_cast<Py_ssize_t>(path.size())));
}

py::str MessageToStr(std::string_view message) {
  return Steal(DecodeUtf8(message, "backslashreplace"));
}

}  // namespace relayout::bindings
