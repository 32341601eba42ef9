#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cc/base/result.h"
#include "cc/base/str_cat.h"
#include "cc/bindings/buffer.h"
#include "cc/bindings/gil.h"
#include "cc/bindings/listing.h"
#include "cc/bindings/path.h"
#include "cc/bindings/register.h"
#include "cc/bindings/status.h"
#include "cc/bindings/text.h"
#include "cc/rekey/apply.h"
#include "cc/rekey/plan.h"

namespace relayout::bindings {
namespace {

namespace py = pybind11;

using rekey::ApplyReport;
using rekey::PlannedFile;
using rekey::RekeyPlan;

/// A string is taken as UTF-8.
using Key = std::variant<py::str, py::bytes>;
using LiteralTuple = std::pair<Key, py::bytes>;
using DropTuple = std::pair<uint32_t, Key>;

/// The Python class `RekeyPlan`.
struct PlanHandle {
  std::shared_ptr<const RekeyPlan> plan;
};

/// The Python class `PlannedEntry`.
struct PlannedEntry {
  std::shared_ptr<const RekeyPlan> plan;
  ocdbt::Entry entry;

  const ocdbt::Value& value() const { return entry.value; }
};

std::string ToString(const Key& key) {
  return std::visit([](const auto& text) { return std::string(text); }, key);
}

rekey::Request MakeRequest(std::vector<rekey::ArrayMove> moves,
                           const std::vector<LiteralTuple>& literals,
                           const std::vector<DropTuple>& drops) {
  rekey::Request request = {
      .moves = std::move(moves), .literals = {}, .drops = {}};
  for (const auto& [key, value] : literals) {
    request.literals.push_back({ToString(key), std::string(value)});
  }
  for (const auto& [listing, array] : drops) {
    request.drops.push_back({listing, ToString(array)});
  }
  return request;
}

PlanHandle PlanRekey(const std::vector<ListingHandle>& handles,
                     std::vector<rekey::ArrayMove> moves,
                     const std::vector<LiteralTuple>& literals,
                     const std::vector<DropTuple>& drops, int num_threads) {
  std::vector<std::shared_ptr<const ocdbt::Listing>> listings;
  for (const auto& [listing] : handles) listings.push_back(listing);
  rekey::Request request = MakeRequest(std::move(moves), literals, drops);
  auto plan = ValueOrThrow(WithoutGil(
      [&] { return rekey::Plan(listings, std::move(request), num_threads); }));
  return {std::make_shared<const RekeyPlan>(std::move(plan))};
}

std::vector<PlannedEntry> Entries(const PlanHandle& self, size_t start,
                                  size_t stop) {
  const auto& entries = self.plan->entries;
  std::vector<PlannedEntry> slice;
  for (size_t i = start; i < std::min(stop, entries.size()); ++i) {
    slice.push_back({self.plan, entries[i]});
  }
  return slice;
}

std::optional<py::memoryview> InlineValue(const PlannedEntry& self) {
  if (!self.value().is_inline()) return std::nullopt;
  return ToMemoryView(ByteView(self.value().inline_bytes(), self.plan));
}

Result<ocdbt::Uuid> MakeUuid(std::string_view bytes) {
  ocdbt::Uuid uuid;
  if (bytes.size() != uuid.size()) {
    return InvalidArgument(
        StrCat("uuid has ", bytes.size(), " bytes, not ", uuid.size()));
  }
  std::ranges::copy(bytes, uuid.begin());
  return uuid;
}

ApplyReport ApplyRekey(const PlanHandle& plan, const Path& directory,
                       const std::vector<Path>& file_paths,
                       const py::bytes& uuid, uint64_t max_inline_value_bytes,
                       uint64_t max_decoded_node_bytes,
                       std::optional<int32_t> zstd_level, const Path& data_file,
                       uint64_t commit_time_ns, bool sync, int num_threads) {
  rekey::ApplyOptions options;
  options.directory = directory.bytes;
  options.config.uuid = ValueOrThrow(MakeUuid(std::string_view(uuid)));
  options.config.max_inline_value_bytes = max_inline_value_bytes;
  options.config.max_decoded_node_bytes = max_decoded_node_bytes;
  options.config.zstd_level = zstd_level;
  for (const auto& path : file_paths) {
    options.file_paths.push_back(path.bytes);
  }
  options.data_file = data_file.bytes;
  options.commit_time_ns = commit_time_ns;
  options.sync = sync;
  options.num_threads = num_threads;
  return ValueOrThrow(
      WithoutGil([&] { return rekey::Apply(*plan.plan, options); }));
}

void RegisterPlannedFile(py::module_& module) {
  py::class_<PlannedFile>(module, "PlannedFile",
                          "A data file that a plan refers to.")
      .def_readonly("listing", &PlannedFile::listing)
      .def_property_readonly(
          "path", [](const PlannedFile& self) { return PathToStr(self.path); },
          "Below the directory of the listing's database.")
      .def_readonly("num_bytes", &PlannedFile::num_bytes);
}

void RegisterPlannedEntry(py::module_& module) {
  py::class_<PlannedEntry>(module, "PlannedEntry",
                           "A target key and where its value lies.")
      .def_property_readonly("key",
                             [](const PlannedEntry& self) {
                               return py::bytes(self.entry.key.data(),
                                                self.entry.key.size());
                             })
      .def_property_readonly(
          "file",
          [](const PlannedEntry& self) {
            return self.value().is_inline() ? std::nullopt
                                            : std::optional(self.value().file);
          },
          "Index into `RekeyPlan.files`; None: the value is inline.")
      .def_property_readonly("offset",
                             [](const PlannedEntry& self) {
                               return self.value().is_inline()
                                          ? std::nullopt
                                          : std::optional(self.value().offset);
                             })
      .def_property_readonly(
          "length",
          [](const PlannedEntry& self) { return self.value().length; })
      .def_property_readonly("inline_value", &InlineValue);
}

void RegisterPlan(py::module_& module) {
  py::class_<PlanHandle>(module, "RekeyPlan",
                         "The keys and data references of a new database.")
      .def_property_readonly(
          "files", [](const PlanHandle& self) { return self.plan->files; })
      .def_property_readonly(
          "num_keys",
          [](const PlanHandle& self) { return self.plan->entries.size(); })
      .def_property_readonly(
          "num_indirect_bytes",
          [](const PlanHandle& self) { return self.plan->num_indirect_bytes; })
      .def_property_readonly(
          "num_inline_bytes",
          [](const PlanHandle& self) { return self.plan->num_inline_bytes; })
      .def("entries", &Entries, py::arg("start"), py::arg("stop"),
           "Returns some entries, for inspection.");
}

void RegisterReport(py::module_& module) {
  py::class_<ApplyReport>(module, "ApplyReport", "What `apply_rekey` wrote.")
      .def_readonly("num_keys", &ApplyReport::num_keys)
      .def_readonly("num_nodes", &ApplyReport::num_nodes)
      .def_readonly("height", &ApplyReport::height, "Of the root node.")
      .def_readonly("num_bytes_written", &ApplyReport::num_bytes_written,
                    "Of the data file and the manifest.");
}

}  // namespace

void RegisterRekey(py::module_& module) {
  RegisterBuffer();
  RegisterPlannedFile(module);
  RegisterPlannedEntry(module);
  RegisterPlan(module);
  RegisterReport(module);
  module.def("plan_rekey", &PlanRekey, py::arg("listings"), py::kw_only(),
             py::arg("moves"), py::arg("literals"), py::arg("drops"),
             py::arg("num_threads") = 0,
             "Plans a database of the arrays of others under new keys.\n\n"
             "`literals` are (key, value); `drops` are (listing, array name "
             "or stray key) to\nleave out.");
  module.def("apply_rekey", &ApplyRekey, py::arg("plan"), py::kw_only(),
             py::arg("directory"), py::arg("file_paths"), py::arg("uuid"),
             py::arg("max_inline_value_bytes"),
             py::arg("max_decoded_node_bytes"), py::arg("zstd_level"),
             py::arg("data_file"), py::arg("commit_time_ns"),
             py::arg("sync") = true, py::arg("num_threads") = 0,
             "Writes the nodes and the manifest of `plan`.");
}

}  // namespace relayout::bindings
