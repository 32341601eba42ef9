#ifndef RELAYOUT_CC_RECHUNK_STORED_CHUNK_H_
#define RELAYOUT_CC_RECHUNK_STORED_CHUNK_H_

/// \file
/// Where the stored bytes of a source chunk lie, and how to read them.

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

#include "cc/base/result.h"
#include "cc/io/file_reader.h"
#include "cc/ocdbt/data_files.h"
#include "cc/ocdbt/listing.h"
#include "cc/rechunk/task.h"

namespace relayout::rechunk {

/// An entry and the listing that it is from.
struct FoundChunk {
  const ocdbt::Listing* listing = nullptr;
  ocdbt::Entry entry;
};

/// Finds the chunk of `source` at `index`; none: it is absent.
std::optional<FoundChunk> FindChunk(const SourceArray& source,
                                    std::span<const uint64_t> index);

/// The bytes of a value.
class StoredBytes {
 public:
  StoredBytes(ocdbt::Value value, std::shared_ptr<const io::FileReader> file)
      : value_(value), file_(std::move(file)) {}

  uint64_t size() const { return value_.length; }

  /// Fills `output` with the bytes from `offset` on; the range must lie within.
  Status Read(uint64_t offset, std::span<char> output) const;

 private:
  ocdbt::Value value_;
  std::shared_ptr<const io::FileReader> file_;  ///< null: inline
};

/// Opens the data files of listings.  Threads may use it at once.
class SourceFiles {
 public:
  /// Errors: `kCorrupt` naming the file when it is missing or not what it was
  /// when it was listed; `kSystem` when the system refuses.
  Result<StoredBytes> Open(const FoundChunk& chunk);

 private:
  Result<ocdbt::DataFiles*> FilesOf(const ocdbt::Listing& listing);

  std::mutex mutex_;
  std::unordered_map<const ocdbt::Listing*, std::unique_ptr<ocdbt::DataFiles>>
      files_;
};

}  // namespace relayout::rechunk

#endif  // RELAYOUT_CC_RECHUNK_STORED_CHUNK_H_
