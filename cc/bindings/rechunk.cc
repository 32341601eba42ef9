#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cc/base/result.h"
#include "cc/bindings/gil.h"
#include "cc/bindings/listing.h"
#include "cc/bindings/path.h"
#include "cc/bindings/register.h"
#include "cc/bindings/status.h"
#include "cc/rechunk/codec_chain.h"
#include "cc/rechunk/phase_times.h"
#include "cc/rechunk/rewrite.h"
#include "cc/rechunk/rewrite_plan.h"
#include "cc/rechunk/task.h"
#include "cc/zarr/chunk_key.h"

namespace relayout::bindings {
namespace {

namespace py = pybind11;

using rechunk::RewritePlan;
using rechunk::RewriteResult;
using rechunk::RewriteTask;
using rechunk::SourceArray;
using rechunk::TargetArray;

using Lengths = std::vector<uint64_t>;
using Axes = std::vector<uint32_t>;
using ListingOrListings =
    std::variant<ListingHandle, std::vector<ListingHandle>>;
using ProgressFunction = std::function<void(uint64_t, uint64_t)>;

/// The Python class `RewritePlan`.
struct RewritePlanHandle {
  std::shared_ptr<const RewritePlan> plan;
};

std::vector<std::shared_ptr<const ocdbt::Listing>> ToListings(
    const ListingOrListings& listings) {
  if (const auto* one = std::get_if<ListingHandle>(&listings)) {
    return {one->listing};
  }
  std::vector<std::shared_ptr<const ocdbt::Listing>> result;
  for (const auto& [listing] : std::get<std::vector<ListingHandle>>(listings)) {
    result.push_back(listing);
  }
  return result;
}

Axes COrder(size_t rank) {
  Axes axes(rank);
  std::iota(axes.begin(), axes.end(), 0U);
  return axes;
}

SourceArray MakeSource(const ListingOrListings& listing, std::string array,
                       zarr::ChunkKeyFormat keys, Lengths shape,
                       Lengths chunk_shape, std::string dtype,
                       const std::vector<std::string>& codecs, bool big_endian,
                       std::optional<Axes> axis_order,
                       const py::bytes& fill_value) {
  const size_t rank = shape.size();
  return {.listings = ToListings(listing),
          .array = std::move(array),
          .keys = keys,
          .shape = std::move(shape),
          .chunk_shape = std::move(chunk_shape),
          .dtype = std::move(dtype),
          .codecs = ValueOrThrow(rechunk::ParseCodecChain(codecs)),
          .big_endian = big_endian,
          .memory_order = std::move(axis_order).value_or(COrder(rank)),
          .fill_value = std::string(fill_value)};
}

TargetArray MakeTarget(std::string array, zarr::ChunkKeyFormat keys,
                       Lengths shape, Lengths chunk_shape, std::string dtype,
                       std::string metadata_key, const py::bytes& metadata,
                       std::optional<int32_t> zstd_level,
                       const py::bytes& fill_value, bool store_fill) {
  return {.array = std::move(array),
          .keys = keys,
          .shape = std::move(shape),
          .chunk_shape = std::move(chunk_shape),
          .dtype = std::move(dtype),
          .metadata_key = std::move(metadata_key),
          .metadata = std::string(metadata),
          .zstd_level = zstd_level,
          .fill_value = std::string(fill_value),
          .store_fill = store_fill};
}

RewriteTask MakeTask(Lengths shape, Axes layer_axes,
                     std::vector<SourceArray> sources,
                     std::vector<TargetArray> targets, Axes source_axes,
                     Axes target_axes) {
  return {.shape = std::move(shape),
          .layer_axes = std::move(layer_axes),
          .sources = std::move(sources),
          .targets = std::move(targets),
          .source_axes = std::move(source_axes),
          .target_axes = std::move(target_axes)};
}

RewritePlanHandle PlanRewrite(std::vector<RewriteTask> tasks,
                              uint64_t memory_limit, int num_threads) {
  auto plan = ValueOrThrow(WithoutGil([&] {
    return rechunk::PlanRewrite(std::move(tasks), memory_limit, num_threads);
  }));
  return {std::make_shared<const RewritePlan>(std::move(plan))};
}

/// Calls `progress`, and sees to signals, such as Ctrl-C; keeps what they raise
/// for the caller.
class Watcher {
 public:
  Watcher(const std::optional<ProgressFunction>& progress, uint64_t num_bytes)
      : progress_(progress), num_bytes_(num_bytes) {}

  /// Returns false when the work must end.
  bool Tick(uint64_t num_bytes_done) {
    const py::gil_scoped_acquire acquire;
    try {
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      if (progress_.has_value()) (*progress_)(num_bytes_done, num_bytes_);
    } catch (...) {
      raised_ = std::current_exception();
    }
    return raised_ == nullptr;
  }

  void RethrowIfRaised() const {
    if (raised_ != nullptr) std::rethrow_exception(raised_);
  }

 private:
  const std::optional<ProgressFunction>& progress_;
  uint64_t num_bytes_;
  std::exception_ptr raised_;
};

RewriteResult Rewrite(const RewritePlanHandle& plan, const Path& directory,
                      const Path& data_file, bool sync,
                      const std::optional<ProgressFunction>& progress) {
  Watcher watcher(progress, plan.plan->num_target_bytes);
  const rechunk::RewriteOptions options = {
      .directory = directory.bytes,
      .data_file = data_file.bytes,
      .sync = sync,
      .progress = [&](uint64_t num_bytes) { return watcher.Tick(num_bytes); }};
  auto result =
      WithoutGil([&] { return rechunk::Rewrite(*plan.plan, options); });
  watcher.RethrowIfRaised();
  return ValueOrThrow(std::move(result));
}

std::map<std::string, double> PhaseSeconds(const RewriteResult& self) {
  std::map<std::string, double> seconds;
  for (size_t i = 0; i < rechunk::kPhaseNames.size(); ++i) {
    seconds[rechunk::kPhaseNames[i]] = self.times.seconds[i];
  }
  return seconds;
}

void RegisterArrays(py::module_& module) {
  py::class_<SourceArray>(module, "RewriteSource",
                          "An array whose chunks are read.")
      .def(py::init(&MakeSource), py::arg("listing"), py::arg("array"),
           py::arg("keys"), py::arg("shape"), py::arg("chunk_shape"),
           py::arg("dtype"), py::kw_only(),
           py::arg("codecs") = std::vector<std::string>{"zstd"},
           py::arg("big_endian") = false, py::arg("axis_order") = py::none(),
           py::arg("fill_value"),
           "`listing` may be several, of which the first that has a chunk "
           "wins.  `codecs`,\nof \"zstd\" and \"crc32c\", are in the order of "
           "encoding.  `axis_order` has the\narray's axes in the order of a "
           "chunk's memory, slowest first; None: C order.\n`fill_value` is one "
           "element, little endian.")
      .def_readonly("array", &SourceArray::array);
  py::class_<TargetArray>(module, "RewriteTarget",
                          "An array whose chunks are written, in C order and "
                          "little endian.")
      .def(py::init(&MakeTarget), py::arg("array"), py::arg("keys"),
           py::arg("shape"), py::arg("chunk_shape"), py::arg("dtype"),
           py::kw_only(), py::arg("metadata_key"), py::arg("metadata"),
           py::arg("zstd_level"), py::arg("fill_value"), py::arg("store_fill"),
           "`zstd_level` None leaves chunks uncompressed.  With `store_fill`, "
           "chunks that\nthe source does not store are stored.")
      .def_readonly("array", &TargetArray::array);
}

void RegisterPlan(py::module_& module) {
  py::class_<RewriteTask>(module, "RewriteTask",
                          "Arrays that become others, within one space of "
                          "axes.")
      .def(py::init(&MakeTask), py::arg("shape"), py::arg("layer_axes"),
           py::arg("sources"), py::arg("targets"), py::kw_only(),
           py::arg("source_axes"), py::arg("target_axes"),
           "A side is one array with all axes of the space, or an array for "
           "each layer, in\nC order, without the layer axes; `source_axes` "
           "and `target_axes` have the axis\nof the space for each axis of "
           "the side's arrays.");
  py::class_<RewritePlanHandle>(module, "RewritePlan",
                                "How tasks are done within a memory limit.")
      .def_property_readonly(
          "num_units",
          [](const RewritePlanHandle& self) { return self.plan->num_units; })
      .def_property_readonly(
          "num_source_bytes",
          [](const RewritePlanHandle& self) {
            return self.plan->num_source_bytes;
          },
          "Of the source arrays, decoded.")
      .def_property_readonly(
          "num_stored_bytes",
          [](const RewritePlanHandle& self) {
            return self.plan->num_stored_bytes;
          },
          "Of the source arrays, as they are stored.")
      .def_property_readonly(
          "num_target_bytes",
          [](const RewritePlanHandle& self) {
            return self.plan->num_target_bytes;
          },
          "Of the target arrays, decoded.")
      .def_property_readonly(
          "num_streamed_bytes",
          [](const RewritePlanHandle& self) {
            return self.plan->num_streamed_bytes;
          },
          "To be decoded of large source chunks, as often "
          "as they are needed.")
      .def_property_readonly("expected_memory_bytes",
                             [](const RewritePlanHandle& self) {
                               return self.plan->expected_memory_bytes;
                             });
}

void RegisterResult(py::module_& module) {
  py::class_<RewriteResult>(module, "RewriteResult", "What `rewrite` wrote.")
      .def_property_readonly(
          "listing",
          [](const RewriteResult& self) { return ListingHandle{self.listing}; },
          "The target arrays, for `plan_rekey`.")
      .def_readonly("num_bytes_read", &RewriteResult::num_bytes_read)
      .def_readonly("num_bytes_written", &RewriteResult::num_bytes_written)
      .def_readonly("num_chunks_written", &RewriteResult::num_chunks_written)
      .def_readonly("peak_buffer_bytes", &RewriteResult::peak_buffer_bytes)
      .def_property_readonly("phase_seconds", &PhaseSeconds,
                             "Summed over threads.");
}

}  // namespace

void RegisterRechunk(py::module_& module) {
  RegisterArrays(module);
  RegisterPlan(module);
  RegisterResult(module);
  module.def("plan_rewrite", &PlanRewrite, py::arg("tasks"), py::kw_only(),
             py::arg("memory_limit"), py::arg("num_threads") = 0,
             "Plans to do `tasks` in `memory_limit` bytes of buffers; reads no "
             "data.");
  module.def("rewrite", &Rewrite, py::arg("plan"), py::kw_only(),
             py::arg("directory"), py::arg("data_file"), py::arg("sync") = true,
             py::arg("progress") = py::none(),
             "Writes the chunks of `plan` to the new file `data_file` below "
             "`directory`.\n\n`progress` is called, a few times a second, with "
             "the decoded bytes done and in\nall; what it raises ends the "
             "work.");
}

}  // namespace relayout::bindings
