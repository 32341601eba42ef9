#ifndef RELAYOUT_CC_OCDBT_DATA_REF_H_
#define RELAYOUT_CC_OCDBT_DATA_REF_H_

/// \file
/// References into data files.

#include <cstdint>
#include <string>

namespace relayout::ocdbt {

/// A data file, relative to the directory of the database.
struct DataFileId {
  /// The part that also goes before the data files of a node that is reached
  /// through this file; empty, or with a slash at its end.
  std::string base_path;
  std::string relative_path;

  std::string path() const { return base_path + relative_path; }

  bool operator==(const DataFileId&) const = default;
};

/// A range of a data file.
struct DataRef {
  /// Index into a list of `DataFileId` that goes with the reference.
  uint32_t file = 0;
  uint64_t offset = 0;
  uint64_t length = 0;  ///< bytes

  /// The root of a database without keys.
  static DataRef Missing() { return {0, UINT64_MAX, UINT64_MAX}; }
  bool is_missing() const {
    return offset == UINT64_MAX && length == UINT64_MAX;
  }

  bool operator==(const DataRef&) const = default;
};

}  // namespace relayout::ocdbt

#endif  // RELAYOUT_CC_OCDBT_DATA_REF_H_
