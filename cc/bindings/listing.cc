#include "cc/bindings/listing.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cc/bindings/gil.h"
#include "cc/bindings/path.h"
#include "cc/bindings/register.h"
#include "cc/bindings/status.h"
#include "cc/bindings/text.h"
#include "cc/rekey/array_summary.h"
#include "cc/rekey/directory_listing.h"
#include "cc/rekey/read_key.h"

namespace relayout::bindings {
namespace {

namespace py = pybind11;

using rekey::ArraySummary;

/// The Python class `DataFile`.
struct DataFile {
  std::string path;
  uint64_t num_bytes = 0;
};

ListingHandle ListDatabase(const Path& directory, int num_threads) {
  auto listing = ValueOrThrow(
      WithoutGil([&] { return ocdbt::List(directory.bytes, num_threads); }));
  return {std::make_shared<const ocdbt::Listing>(std::move(listing))};
}

ListingHandle ListDirectory(const Path& directory, int num_threads) {
  auto listing = ValueOrThrow(WithoutGil(
      [&] { return rekey::ListDirectory(directory.bytes, num_threads); }));
  return {std::make_shared<const ocdbt::Listing>(std::move(listing))};
}

std::vector<DataFile> Files(const ListingHandle& self) {
  std::vector<DataFile> files;
  for (size_t i = 0; i < self.listing->files.size(); ++i) {
    files.push_back({self.listing->files[i], self.listing->file_sizes[i]});
  }
  return files;
}

std::vector<ArraySummary> Arrays(const ListingHandle& self) {
  return ValueOrThrow(
      WithoutGil([&] { return rekey::SummarizeArrays(*self.listing); }));
}

std::vector<py::bytes> ChunkKeys(const ListingHandle& self,
                                 const std::string& array) {
  const auto keys = ValueOrThrow(
      WithoutGil([&] { return rekey::ChunkKeys(*self.listing, array); }));
  return {keys.begin(), keys.end()};
}

std::vector<py::bytes> StrayKeys(const ListingHandle& self, size_t limit) {
  const auto keys = ValueOrThrow(
      WithoutGil([&] { return rekey::StrayKeys(*self.listing, limit); }));
  return {keys.begin(), keys.end()};
}

const ocdbt::Entry& EntryOf(const ListingHandle& self, const py::bytes& key) {
  const auto* entry = rekey::FindEntry(*self.listing, std::string_view(key));
  if (entry != nullptr) return *entry;
  PyErr_SetObject(PyExc_KeyError, key.ptr());
  throw py::error_already_set();
}

py::bytes Read(const ListingHandle& self, const py::bytes& key, uint64_t offset,
               std::optional<uint64_t> length) {
  const ocdbt::Entry& entry = EntryOf(self, key);
  const uint64_t rest =
      entry.value.length - std::min(offset, entry.value.length);
  const rekey::ValueRange range = {offset, length.value_or(rest)};
  return ValueOrThrow(WithoutGil(
      [&] { return rekey::ReadEntry(*self.listing, entry, range); }));
}

uint64_t NumValueBytes(const ListingHandle& self, const py::bytes& key) {
  return EntryOf(self, key).value.length;
}

py::bytes UuidBytes(const ocdbt::Uuid& uuid) {
  return py::bytes(reinterpret_cast<const char*>(uuid.data()), uuid.size());
}

void RegisterDataFile(py::module_& module) {
  py::class_<DataFile>(module, "DataFile", "A data file of a database.")
      .def_property_readonly(
          "path", [](const DataFile& self) { return PathToStr(self.path); },
          "Below the directory of the database.")
      .def_readonly("num_bytes", &DataFile::num_bytes);
}

void RegisterArrayEntry(py::module_& module) {
  py::class_<ArraySummary>(module, "ArrayEntry", "An array of a database.")
      .def_property_readonly(
          "name", [](const ArraySummary& self) { return NameToStr(self.name); })
      .def_readonly("metadata_key", &ArraySummary::metadata_key,
                    "`.zarray` or `zarr.json`.")
      .def_property_readonly(
          "metadata",
          [](const ArraySummary& self) { return py::bytes(self.metadata); })
      .def_readonly("num_chunks", &ArraySummary::num_chunks,
                    "Number of chunks that are stored.")
      .def_readonly("num_stored_bytes", &ArraySummary::num_stored_bytes)
      .def_readonly("num_inline_chunks", &ArraySummary::num_inline_chunks);
}

/// Adds the properties that come from the manifest.
void AddConfig(py::class_<ListingHandle>& listing) {
  listing
      .def_property_readonly("uuid",
                             [](const ListingHandle& self) {
                               return UuidBytes(self.listing->config.uuid);
                             })
      .def_property_readonly(
          "generation",
          [](const ListingHandle& self) { return self.listing->generation; })
      .def_property_readonly(
          "max_inline_value_bytes",
          [](const ListingHandle& self) {
            return self.listing->config.max_inline_value_bytes;
          })
      .def_property_readonly(
          "max_decoded_node_bytes",
          [](const ListingHandle& self) {
            return self.listing->config.max_decoded_node_bytes;
          })
      .def_property_readonly(
          "zstd_level",
          [](const ListingHandle& self) {
            return self.listing->config.zstd_level;
          },
          "Level of nodes and manifests; None: not compressed.");
}

/// Adds what comes from the entries.
void AddContent(py::class_<ListingHandle>& listing) {
  listing
      .def_property_readonly("directory",
                             [](const ListingHandle& self) {
                               return PathToStr(self.listing->directory);
                             })
      .def_property_readonly("num_keys",
                             [](const ListingHandle& self) {
                               return self.listing->entries.size();
                             })
      .def_property_readonly("files", &Files)
      .def("arrays", &Arrays, "Returns the arrays, sorted by name.")
      .def("chunk_keys", &ChunkKeys, py::arg("array"),
           "Returns the keys of the stored chunks of an array, below its name.")
      .def("stray_keys", &StrayKeys, py::arg("limit"),
           "Returns the first keys that belong to no array.")
      .def("read", &Read, py::arg("key"), py::kw_only(), py::arg("offset") = 0,
           py::arg("length") = py::none(),
           "Returns a value, or a range of it; raises KeyError.")
      .def("num_value_bytes", &NumValueBytes, py::arg("key"),
           "Returns the length of a value; raises KeyError.");
}

}  // namespace

void RegisterListing(py::module_& module) {
  RegisterDataFile(module);
  RegisterArrayEntry(module);
  py::class_<ListingHandle> listing(module, "Listing",
                                    "The keys of one version of a database.");
  AddConfig(listing);
  AddContent(listing);
  module.def("list_database", &ListDatabase, py::arg("directory"),
             py::kw_only(), py::arg("num_threads") = 0,
             "Lists the newest version of the OCDBT database in `directory`.");
  module.def("list_directory", &ListDirectory, py::arg("directory"),
             py::kw_only(), py::arg("num_threads") = 0,
             "Lists the zarr arrays that lie as plain files below `directory`: "
             "each file is one\nvalue, its path the key.");
}

}  // namespace relayout::bindings
