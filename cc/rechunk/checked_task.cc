#include "cc/rechunk/checked_task.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cc/base/compression.h"
#include "cc/base/quote.h"
#include "cc/base/result.h"
#include "cc/base/str_cat.h"
#include "cc/rechunk/coords.h"
#include "cc/rechunk/element.h"
#include "cc/rechunk/element_copy.h"
#include "cc/rechunk/placement.h"
#include "cc/rechunk/strided_copy.h"
#include "cc/rechunk/task.h"

namespace relayout::rechunk {
namespace {

using Axes = std::vector<uint32_t>;

/// Returns whether `axes` are different numbers below `rank`.
bool AreAxes(std::span<const uint32_t> axes, size_t rank) {
  std::vector<bool> seen(rank);
  for (const uint32_t axis : axes) {
    if (axis >= rank || seen[axis]) return false;
    seen[axis] = true;
  }
  return true;
}

bool Contains(const Axes& axes, uint32_t axis) {
  return std::ranges::find(axes, axis) != axes.end();
}

/// So that the bytes of as many elements can be counted.
constexpr uint64_t kMaxElements = kMaxLength / 16;

/// Returns the product of `lengths`, none if it reaches `kMaxElements`.
std::optional<uint64_t> Product(std::span<const uint64_t> lengths) {
  if (std::ranges::find(lengths, uint64_t{0}) != lengths.end()) return 0;
  uint64_t product = 1;
  for (const uint64_t length : lengths) {
    if (length >= kMaxElements / product) return std::nullopt;
    product *= length;
  }
  return product;
}

Status CheckSpace(const RewriteTask& task) {
  if (task.shape.size() > kMaxRank) {
    return InvalidArgument(StrCat("the common space has ", task.shape.size(),
                                  " axes; the most are ", kMaxRank));
  }
  if (!AreAxes(task.layer_axes, task.shape.size())) {
    return InvalidArgument("layer axes are not different axes of the space");
  }
  for (const uint64_t length : task.shape) {
    if (length >= kMaxLength) {
      return InvalidArgument(StrCat("an axis has length ", length));
    }
  }
  return {};
}

/// Returns whether the side that has `axes` is stacked.
Result<bool> CheckSide(const RewriteTask& task, const Axes& axes,
                       size_t num_arrays) {
  const size_t rank = task.shape.size();
  if (!AreAxes(axes, rank)) {
    return InvalidArgument("axes of a side are not different axes");
  }
  const bool is_stacked = axes.size() == rank;
  uint64_t num_wanted = 1;
  if (!is_stacked) {
    if (axes.size() + task.layer_axes.size() != rank) {
      return InvalidArgument(
          StrCat("a side has ", axes.size(), " of ", rank,
                 " axes, neither all nor all but the layer axes"));
    }
    for (const uint32_t axis : task.layer_axes) {
      if (Contains(axes, axis)) {
        return InvalidArgument(StrCat("layer axis ", axis, " is half stacked"));
      }
      num_wanted *= std::min(task.shape[axis], uint64_t{num_arrays} + 1);
      num_wanted = std::min(num_wanted, uint64_t{num_arrays} + 1);
    }
  }
  if (num_wanted == num_arrays) return is_stacked;
  return InvalidArgument(
      StrCat("a side has ", num_arrays, " arrays, but not one a layer"));
}

template <typename Array>
Status CheckShape(const RewriteTask& task, const Axes& axes,
                  const Array& array) {
  if (array.shape.size() != axes.size() ||
      array.chunk_shape.size() != axes.size()) {
    return InvalidArgument(
        StrCat("shape or chunk shape is not of rank ", axes.size()));
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    if (array.shape[i] != task.shape[axes[i]]) {
      return InvalidArgument(StrCat("axis ", i, " has length ", array.shape[i],
                                    " instead of ", task.shape[axes[i]]));
    }
  }
  return {};
}

Status CheckFill(const std::string& fill_value, const ElementType& type) {
  if (fill_value.size() == type.num_bytes) return {};
  return InvalidArgument(StrCat("fill value has ", fill_value.size(),
                                " bytes, dtype ", Quote(type.name), " has ",
                                type.num_bytes));
}

Result<uint64_t> NumChunkBytes(const Placement& placement,
                               const ElementType& type) {
  if (placement.num_chunk_elements < kMaxLength / type.num_bytes) {
    return placement.num_chunk_elements * type.num_bytes;
  }
  return InvalidArgument(
      StrCat("a chunk has ", placement.num_chunk_elements, " elements"));
}

/// Returns `fill_value`, little endian, as an element of the target.
Result<std::string> ConvertFill(const std::string& fill_value,
                                const ElementType& source,
                                const ElementType& target) {
  RELAYOUT_ASSIGN_OR_RETURN(const CopyElements copy,
                            SelectCopy(source, /*big_endian=*/false, target));
  std::string fill(target.num_bytes, '\0');
  CopyBox({}, fill_value.data(), fill.data(), copy);
  return fill;
}

Result<SourceForm> MakeSource(const RewriteTask& task,
                              const SourceArray& source,
                              const ElementType& target) {
  RELAYOUT_RETURN_IF_ERROR(CheckShape(task, task.source_axes, source));
  if (source.memory_order.size() != source.shape.size() ||
      !AreAxes(source.memory_order, source.shape.size())) {
    return InvalidArgument("the order of axes is no permutation");
  }
  RELAYOUT_ASSIGN_OR_RETURN(const ElementType type,
                            ParseElementType(source.dtype));
  RELAYOUT_RETURN_IF_ERROR(CheckFill(source.fill_value, type));
  SourceForm form;
  form.num_element_bytes = type.num_bytes;
  RELAYOUT_ASSIGN_OR_RETURN(
      form.placement, Place(task.shape, source.chunk_shape, task.source_axes,
                            source.memory_order));
  RELAYOUT_ASSIGN_OR_RETURN(form.num_chunk_bytes,
                            NumChunkBytes(form.placement, type));
  RELAYOUT_ASSIGN_OR_RETURN(form.copy,
                            SelectCopy(type, source.big_endian, target));
  RELAYOUT_ASSIGN_OR_RETURN(form.fill,
                            ConvertFill(source.fill_value, type, target));
  form.keeps_fill = form.fill == task.targets.front().fill_value;
  return form;
}

bool HaveOneForm(const TargetArray& a, const TargetArray& b) {
  return a.shape == b.shape && a.chunk_shape == b.chunk_shape &&
         a.dtype == b.dtype && a.zstd_level == b.zstd_level &&
         a.fill_value == b.fill_value && a.store_fill == b.store_fill;
}

Status CheckTarget(const RewriteTask& task, const TargetArray& target,
                   const ElementType& type) {
  RELAYOUT_RETURN_IF_ERROR(CheckShape(task, task.target_axes, target));
  RELAYOUT_RETURN_IF_ERROR(CheckFill(target.fill_value, type));
  if (target.zstd_level.has_value() && (*target.zstd_level < kMinZstdLevel ||
                                        *target.zstd_level > kMaxZstdLevel)) {
    return InvalidArgument(StrCat("zstd level ", *target.zstd_level,
                                  " is outside [", kMinZstdLevel, ", ",
                                  kMaxZstdLevel, "]"));
  }
  if (HaveOneForm(task.targets.front(), target)) return {};
  return InvalidArgument("it differs in form from the task's first target");
}

Result<TargetForm> MakeTarget(const RewriteTask& task,
                              const ElementType& type) {
  TargetForm form;
  form.num_element_bytes = type.num_bytes;
  Axes order(task.target_axes.size());
  std::iota(order.begin(), order.end(), 0U);
  RELAYOUT_ASSIGN_OR_RETURN(form.placement,
                            Place(task.shape, task.targets.front().chunk_shape,
                                  task.target_axes, order));
  RELAYOUT_ASSIGN_OR_RETURN(form.num_chunk_bytes,
                            NumChunkBytes(form.placement, type));
  RELAYOUT_ASSIGN_OR_RETURN(form.copy,
                            SelectCopy(type, /*big_endian=*/false, type));
  return form;
}

template <typename T>
auto InArray(Result<T> result, const std::string& array) {
  if (result.has_value()) return result;
  return Result<T>(
      InContext(std::move(result).error(), StrCat("array ", Quote(array))));
}

Result<ElementType> CheckTargets(const RewriteTask& task) {
  const TargetArray& first = task.targets.front();
  RELAYOUT_ASSIGN_OR_RETURN(
      ElementType type, InArray(ParseElementType(first.dtype), first.array));
  for (const TargetArray& target : task.targets) {
    RELAYOUT_RETURN_IF_ERROR(
        InArray(CheckTarget(task, target, type), target.array));
  }
  return type;
}

Status AddForms(CheckedTask& result) {
  const RewriteTask& task = result.task;
  if (task.targets.empty()) return {};  // a layer axis has length 0
  RELAYOUT_ASSIGN_OR_RETURN(const ElementType type, CheckTargets(task));
  RELAYOUT_ASSIGN_OR_RETURN(result.target, InArray(MakeTarget(task, type),
                                                   task.targets.front().array));
  for (const SourceArray& source : task.sources) {
    RELAYOUT_ASSIGN_OR_RETURN(
        SourceForm form, InArray(MakeSource(task, source, type), source.array));
    result.sources.push_back(std::move(form));
  }
  return {};
}

}  // namespace

uint64_t CheckedTask::LayerAt(const Coords& position) const {
  uint64_t layer = 0;
  for (const uint32_t axis : task.layer_axes) {
    layer = layer * shape[axis] + position[axis];
  }
  return layer;
}

Result<CheckedTask> CheckTask(RewriteTask task) {
  RELAYOUT_RETURN_IF_ERROR(CheckSpace(task));
  CheckedTask result;
  result.rank = static_cast<uint32_t>(task.shape.size());
  std::ranges::copy(task.shape, result.shape.begin());
  RELAYOUT_ASSIGN_OR_RETURN(
      result.is_source_stacked,
      CheckSide(task, task.source_axes, task.sources.size()));
  RELAYOUT_ASSIGN_OR_RETURN(
      result.is_target_stacked,
      CheckSide(task, task.target_axes, task.targets.size()));
  const auto num_elements = Product(task.shape);
  if (!num_elements.has_value()) {
    return InvalidArgument("the common space has too many elements");
  }
  result.num_elements = *num_elements;
  result.task = std::move(task);
  RELAYOUT_RETURN_IF_ERROR(AddForms(result));
  return result;
}

}  // namespace relayout::rechunk
