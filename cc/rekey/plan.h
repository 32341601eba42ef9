#ifndef RELAYOUT_CC_REKEY_PLAN_H_
#define RELAYOUT_CC_REKEY_PLAN_H_

/// \file
/// Plans a database whose keys are those of others under new names.
///
/// A plan is pure: it is made from listings and a description in terms of
/// arrays, reads no file, and holds data references instead of values.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cc/base/result.h"
#include "cc/ocdbt/listing.h"
#include "cc/zarr/chunk_key.h"

namespace relayout::rekey {

/// One component of a target chunk index: a source axis, or a constant.
struct AxisTerm {
  bool is_constant = false;
  /// The source axis, or the constant index.
  uint64_t value = 0;
};

/// Takes only the source chunks whose index on `axis` is `index`.
struct AxisFilter {
  uint32_t axis = 0;
  uint64_t index = 0;
};

/// Moves the chunks of one source array to a target array, or to a slice of it.
struct ArrayMove {
  /// Index of the listing that holds the source array.
  uint32_t listing = 0;
  /// Array names: keys are `<name>/<chunk key>`.
  std::string source_array;
  std::string target_array;
  zarr::ChunkKeyFormat source_keys;
  zarr::ChunkKeyFormat target_keys;
  /// Number of chunks along each source axis; its size is the source rank.
  std::vector<uint64_t> source_grid;
  /// One term per target axis.  Stacking layer `l` along axis 1 of rank 2 is
  /// {axis 0, constant l, axis 1}.  Every source axis that is not pinned by a
  /// filter must occur exactly once.
  std::vector<AxisTerm> target_index;
  std::vector<AxisFilter> filters;
};

/// A key with a value that comes from the caller (array metadata, a step).
struct Literal {
  std::string key;
  std::string value;
};

/// A source array that is left out on purpose.
struct ArrayDrop {
  uint32_t listing = 0;
  std::string array;
};

/// A data file that the plan refers to.
struct PlannedFile {
  uint32_t listing = 0;
  /// Path below the listing's directory.
  std::string path;
  uint64_t num_bytes = 0;  ///< size of the file
};

struct Request {
  std::vector<ArrayMove> moves;
  std::vector<Literal> literals;
  std::vector<ArrayDrop> drops;
};

struct RekeyPlan {
  /// Files in order of first use by key order; `Value::file` indexes these.
  std::vector<PlannedFile> files;
  /// Target entries, keys strictly increasing.
  std::vector<ocdbt::Entry> entries;
  uint64_t num_indirect_bytes = 0;  ///< of referenced values
  uint64_t num_inline_bytes = 0;    ///< of values given or kept inline
  /// Keeps keys, literals and listings alive.
  std::vector<std::shared_ptr<const void>> owners;
};

/// Plans the target database.
///
/// Every key of every listing must be accounted for: it belongs to a moved
/// array (its metadata key is replaced by the caller's literal) or to a dropped
/// one.
///
/// Errors: `kInvalidArgument` when a move names no array, ranks disagree, a
/// key is not accounted for, or two sources give one target key (both named);
/// `kCorrupt` when a stored chunk key does not parse or lies outside the grid.
Result<RekeyPlan> Plan(
    const std::vector<std::shared_ptr<const ocdbt::Listing>>& listings,
    Request request, int num_threads = 0);

}  // namespace relayout::rekey

#endif  // RELAYOUT_CC_REKEY_PLAN_H_
