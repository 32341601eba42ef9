#include "cc/bindings/buffer.h"

#include <memory>
#include <string_view>
#include <utility>

namespace relayout::bindings {
namespace {

namespace py = pybind11;

void ReleaseBuffer(Py_buffer* buffer) {
  const py::gil_scoped_acquire acquire;
  PyBuffer_Release(buffer);
  delete buffer;
}

/// Exports immutable bytes through the buffer protocol.
py::buffer_info DescribeBytes(const ByteView& view) {
  return py::buffer_info(const_cast<char*>(view.bytes().data()), sizeof(char),
                         py::format_descriptor<unsigned char>::format(),
                         /*ndim=*/1, {static_cast<py::ssize_t>(view.size())},
                         {py::ssize_t{1}},
                         /*readonly=*/true);
}

}  // namespace

ByteView ViewBuffer(const py::buffer& buffer) {
  auto raw = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(buffer.ptr(), raw.get(), PyBUF_FULL_RO) != 0) {
    throw py::error_already_set();
  }
  std::shared_ptr<Py_buffer> owner(raw.release(), &ReleaseBuffer);
  if (PyBuffer_IsContiguous(owner.get(), 'C') == 0) {
    throw py::value_error(
        "the buffer is not C-contiguous; pass a contiguous copy of it");
  }
  const std::string_view bytes(static_cast<const char*>(owner->buf),
                               static_cast<size_t>(owner->len));
  return ByteView(bytes, std::move(owner));
}

py::memoryview ToMemoryView(ByteView bytes) {
  return py::memoryview(py::cast(std::move(bytes)));
}

void RegisterBuffer() {
  py::class_<ByteView>(py::handle(), "Bytes", py::buffer_protocol())
      .def_buffer(&DescribeBytes);
}

}  // namespace relayout::bindings
