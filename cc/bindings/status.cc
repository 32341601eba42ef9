#include "cc/bindings/status.h"

#include <pybind11/gil_safe_call_once.h>
#include <pybind11/pybind11.h>

#include "cc/bindings/register.h"
#include "cc/bindings/text.h"

namespace relayout::bindings {
namespace {

namespace py = pybind11;

/// Classes of `relayout.errors`.
struct ErrorClasses {
  py::object corrupt;
  py::object unsupported;
};

/// Imported when the first error needs them: the module `relayout.errors` may
/// not be loaded before this one.
const ErrorClasses& GetErrorClasses() {
  PYBIND11_CONSTINIT static py::gil_safe_call_once_and_store<ErrorClasses>
      storage;
  return storage
      .call_once_and_store_result([] {
        const auto errors = py::module_::import("relayout.errors");
        return ErrorClasses{errors.attr("CorruptCheckpointError"),
                            errors.attr("UnsupportedError")};
      })
      .get_stored();
}

/// The table of error kinds.
py::handle ExceptionClass(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kCorrupt:
      return GetErrorClasses().corrupt;
    case ErrorKind::kUnsupported:
      return GetErrorClasses().unsupported;
    case ErrorKind::kInvalidArgument:
      return PyExc_ValueError;
    case ErrorKind::kSystem:
      return PyExc_OSError;
  }
  return PyExc_SystemError;
}

void Translate(std::exception_ptr pointer) {
  try {
    if (pointer) std::rethrow_exception(pointer);
  } catch (const ErrorException& exception) {
    const Error& error = exception.error();
    try {
      PyErr_SetObject(ExceptionClass(error.kind).ptr(),
                      MessageToStr(error.message).ptr());
    } catch (py::error_already_set& failure) {
      failure.restore();
    }
  }
}

}  // namespace

void RegisterStatus() { py::register_local_exception_translator(&Translate); }

}  // namespace relayout::bindings
