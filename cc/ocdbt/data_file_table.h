#ifndef RELAYOUT_CC_OCDBT_DATA_FILE_TABLE_H_
#define RELAYOUT_CC_OCDBT_DATA_FILE_TABLE_H_

/// \file
/// The table of data files that stands in every manifest and node; the other
/// columns refer to files by their place in it.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cc/base/result.h"
#include "cc/ocdbt/data_ref.h"
#include "cc/ocdbt/varint.h"

namespace relayout::ocdbt {

/// Longest path of a data file, in bytes.
inline constexpr size_t kMaxPathBytes = 65535;

/// Most bytes that the paths of one table may take together when read.
inline constexpr uint64_t kMaxTableBytes = 64 << 20;

/// Reads a table.  `transitive_path`, the base path of the file that the node
/// came from, goes before every base path.  Paths are not checked for safety.
///
/// Errors: `kCorrupt`.
Result<std::vector<DataFileId>> DecodeDataFileTable(
    ByteReader& reader, std::string_view transitive_path);

/// Writes the table of one record: the files of a list that it uses.
class DataFileTableEncoder {
 public:
  /// `files` must outlive the encoder.
  explicit DataFileTableEncoder(std::span<const DataFileId> files)
      : files_(files) {}

  /// Notes that the record refers to `files[file]`.
  ///
  /// Errors: `kInvalidArgument` when there is none, or its path is too long.
  Status Use(uint32_t file);

  /// Appends the table of the files noted.
  void AppendTo(std::string& out);

  /// Returns the place of `files[file]` in the appended table.
  uint32_t Index(uint32_t file) const;

 private:
  /// Leaves one of each file noted, in table order, and gives out the places.
  void SortByPath();

  std::span<const DataFileId> files_;
  std::vector<uint32_t> used_;
  /// File and its place in the table, by file.
  std::vector<std::pair<uint32_t, uint32_t>> indices_;
};

}  // namespace relayout::ocdbt

#endif  // RELAYOUT_CC_OCDBT_DATA_FILE_TABLE_H_
