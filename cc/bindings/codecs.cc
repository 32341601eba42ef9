#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "cc/base/compression.h"
#include "cc/base/crc32c.h"
#include "cc/bindings/buffer.h"
#include "cc/bindings/gil.h"
#include "cc/bindings/register.h"
#include "cc/bindings/status.h"
#include "cc/zarr/shard_index.h"

namespace relayout::bindings {
namespace {

namespace py = pybind11;

/// A range as (offset, length).
using RangeTuple = std::pair<uint64_t, uint64_t>;

uint32_t ComputeCrc32c(const py::buffer& data) {
  const ByteView view = ViewBuffer(data);
  return WithoutGil([&] { return Crc32c(view.bytes()); });
}

py::bytes Decompress(const py::buffer& data, uint64_t max_num_bytes) {
  const ByteView frame = ViewBuffer(data);
  const ByteView bytes = ValueOrThrow(
      WithoutGil([&] { return ZstdDecompress(frame.bytes(), max_num_bytes); }));
  return py::bytes(bytes.bytes().data(), bytes.size());
}

std::vector<std::optional<RangeTuple>> DecodeIndex(
    const py::buffer& data, uint64_t num_chunks, bool checksum, bool at_end,
    std::optional<uint64_t> num_value_bytes) {
  const ByteView view = ViewBuffer(data);
  const zarr::ShardIndexFormat format = {num_chunks, checksum, at_end};
  const auto index = ValueOrThrow(WithoutGil([&] {
    return num_value_bytes.has_value()
               ? zarr::DecodeShardIndexBytes(view.bytes(), *num_value_bytes,
                                             format)
               : zarr::DecodeShardIndex(view.bytes(), format);
  }));
  std::vector<std::optional<RangeTuple>> ranges(index.size());
  for (size_t i = 0; i < index.size(); ++i) {
    if (index[i]) ranges[i] = RangeTuple(index[i]->offset, index[i]->length);
  }
  return ranges;
}

}  // namespace

void RegisterCodecs(py::module_& module) {
  module.def("crc32c", &ComputeCrc32c, py::arg("data"), py::pos_only(),
             "Returns the CRC-32C of `data`.");
  module.def("zstd_decompress", &Decompress, py::arg("data"), py::pos_only(),
             py::kw_only(), py::arg("max_num_bytes"),
             "Returns the content of one zstd frame.");
  module.def("decode_shard_index", &DecodeIndex, py::arg("data"),
             py::pos_only(), py::kw_only(), py::arg("num_chunks"),
             py::arg("checksum"), py::arg("at_end") = true,
             py::arg("num_value_bytes") = py::none(),
             "Returns (offset, length) of each inner chunk of a zarr shard, "
             "None if absent.\n\n`data` is the whole stored value, or its "
             "index alone if `num_value_bytes`,\nthe length of the value, is "
             "given.");
}

}  // namespace relayout::bindings
