#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cc/bindings/gil.h"
#include "cc/bindings/listing.h"
#include "cc/bindings/register.h"
#include "cc/bindings/status.h"
#include "cc/bindings/text.h"
#include "cc/rekey/flatten_shards.h"
#include "cc/zarr/chunk_key.h"

namespace relayout::bindings {
namespace {

namespace py = pybind11;

using rekey::ShardedArray;

ShardedArray MakeArray(std::string name, zarr::ChunkKeyFormat keys,
                       std::vector<uint64_t> shard_grid,
                       std::vector<uint64_t> inner_grid_per_shard,
                       std::vector<uint64_t> inner_grid, bool checksum,
                       bool at_end, const py::bytes& metadata) {
  return {.name = std::move(name),
          .keys = keys,
          .shard_grid = std::move(shard_grid),
          .inner_grid_per_shard = std::move(inner_grid_per_shard),
          .inner_grid = std::move(inner_grid),
          .has_checksum = checksum,
          .index_is_at_end = at_end,
          .metadata = std::string(metadata)};
}

ListingHandle Flatten(const ListingHandle& handle,
                      std::vector<ShardedArray> arrays, int num_threads) {
  auto flat = ValueOrThrow(WithoutGil([&] {
    return rekey::FlattenShards(handle.listing, std::move(arrays), num_threads);
  }));
  return {std::make_shared<const ocdbt::Listing>(std::move(flat))};
}

}  // namespace

void RegisterShards(py::module_& module) {
  py::class_<ShardedArray>(module, "ShardedArray",
                           "An array of codec `sharding_indexed`.")
      .def(py::init(&MakeArray), py::arg("name"), py::arg("keys"),
           py::arg("shard_grid"), py::arg("inner_grid_per_shard"),
           py::arg("inner_grid"), py::kw_only(), py::arg("checksum"),
           py::arg("at_end"), py::arg("metadata"),
           "`keys` spells shards and inner chunks; the grids are numbers of "
           "shards, of inner\nchunks in one shard, and of inner chunks in the "
           "array. `checksum` and `at_end`\ntell of the shard index; "
           "`metadata` is the `zarr.json` of the ordinary array.")
      .def_property_readonly("name", [](const ShardedArray& self) {
        return NameToStr(self.name);
      });
  module.def(
      "flatten_shards", &Flatten, py::arg("listing"), py::arg("arrays"),
      py::kw_only(), py::arg("num_threads") = 0,
      "Returns a listing of these arrays alone, with the inner chunks of "
      "their shards\nfor chunks: ranges of the same data files.");
}

}  // namespace relayout::bindings
