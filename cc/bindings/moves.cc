#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cc/base/quote.h"
#include "cc/base/result.h"
#include "cc/base/str_cat.h"
#include "cc/bindings/register.h"
#include "cc/bindings/status.h"
#include "cc/rekey/plan.h"
#include "cc/zarr/chunk_key.h"

namespace relayout::bindings {
namespace {

namespace py = pybind11;

using rekey::ArrayMove;
using zarr::ChunkKeyFormat;
using Style = ChunkKeyFormat::Style;

/// ("axis", source axis) or ("index", constant).
using TermTuple = std::pair<std::string, uint64_t>;
using FilterTuple = std::pair<uint32_t, uint64_t>;

Result<Style> ParseStyle(const std::string& style) {
  if (style == "v2") return Style::kV2;
  if (style == "default") return Style::kDefault;
  return InvalidArgument(
      StrCat("style ", Quote(style), " is neither \"v2\" nor \"default\""));
}

Result<char> ParseSeparator(const std::string& separator) {
  if (separator == "." || separator == "/") return separator.front();
  return InvalidArgument(
      StrCat("separator ", Quote(separator), " is neither \".\" nor \"/\""));
}

Result<ChunkKeyFormat> MakeFormat(const std::string& style,
                                  const std::string& separator) {
  ChunkKeyFormat format;
  RELAYOUT_ASSIGN_OR_RETURN(format.style, ParseStyle(style));
  RELAYOUT_ASSIGN_OR_RETURN(format.separator, ParseSeparator(separator));
  return format;
}

Result<rekey::AxisTerm> MakeTerm(const TermTuple& term) {
  const auto& [kind, value] = term;
  if (kind == "axis") return rekey::AxisTerm{false, value};
  if (kind == "index") return rekey::AxisTerm{true, value};
  return InvalidArgument(
      StrCat("term ", Quote(kind), " is neither \"axis\" nor \"index\""));
}

ArrayMove MakeMove(uint32_t listing, std::string source_array,
                   std::string target_array, ChunkKeyFormat source_keys,
                   ChunkKeyFormat target_keys,
                   std::vector<uint64_t> source_grid,
                   const std::vector<TermTuple>& target_index,
                   const std::vector<FilterTuple>& filters) {
  ArrayMove move = {.listing = listing,
                    .source_array = std::move(source_array),
                    .target_array = std::move(target_array),
                    .source_keys = source_keys,
                    .target_keys = target_keys,
                    .source_grid = std::move(source_grid),
                    .target_index = {},
                    .filters = {}};
  for (const TermTuple& term : target_index) {
    move.target_index.push_back(ValueOrThrow(MakeTerm(term)));
  }
  for (const auto& [axis, index] : filters) {
    move.filters.push_back({axis, index});
  }
  return move;
}

void RegisterFormat(py::module_& module) {
  py::class_<ChunkKeyFormat>(module, "ChunkKeyFormat",
                             "How the keys of chunks are spelled.")
      .def(py::init([](const std::string& style, const std::string& separator) {
             return ValueOrThrow(MakeFormat(style, separator));
           }),
           py::arg("style"), py::arg("separator"),
           "`style` is \"v2\" (`0.1`) or \"default\" (`c/0/1`).")
      .def_property_readonly("style",
                             [](const ChunkKeyFormat& self) {
                               return self.style == Style::kV2 ? "v2"
                                                               : "default";
                             })
      .def_readonly("separator", &ChunkKeyFormat::separator);
}

}  // namespace

void RegisterMoves(py::module_& module) {
  RegisterFormat(module);
  py::class_<ArrayMove>(module, "ArrayMove",
                        "Moves the chunks of an array to another, or to a "
                        "slice of it.")
      .def(py::init(&MakeMove), py::arg("listing"), py::arg("source_array"),
           py::arg("target_array"), py::arg("source_keys"),
           py::arg("target_keys"), py::arg("source_grid"),
           py::arg("target_index"), py::arg("filters") = py::tuple(),
           "`target_index` has (\"axis\", source axis) or (\"index\", "
           "constant) for each\ntarget axis; `filters` has (axis, index) to "
           "take only the chunks there.")
      .def_readonly("listing", &ArrayMove::listing)
      .def_readonly("source_array", &ArrayMove::source_array)
      .def_readonly("target_array", &ArrayMove::target_array);
}

}  // namespace relayout::bindings
