#include "cc/rechunk/stored_chunk.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "cc/base/quote.h"
#include "cc/base/result.h"
#include "cc/base/str_cat.h"
#include "cc/io/file_reader.h"
#include "cc/io/safe_path.h"
#include "cc/ocdbt/data_files.h"
#include "cc/ocdbt/listing.h"
#include "cc/rechunk/task.h"
#include "cc/zarr/chunk_key.h"

namespace relayout::rechunk {

std::optional<FoundChunk> FindChunk(const SourceArray& source,
                                    std::span<const uint64_t> index) {
  std::string key = source.array + "/";
  zarr::AppendChunkKey(index, source.keys, key);
  for (const auto& listing : source.listings) {
    const auto found = std::ranges::lower_bound(
        listing->entries, std::string_view(key), {}, &ocdbt::Entry::key);
    if (found != listing->entries.end() && found->key == key) {
      return FoundChunk{.listing = listing.get(), .entry = *found};
    }
  }
  return std::nullopt;
}

Status StoredBytes::Read(uint64_t offset, std::span<char> output) const {
  if (file_ != nullptr) return file_->ReadInto(value_.offset + offset, output);
  if (!output.empty()) {
    std::memcpy(output.data(), value_.inline_data + offset, output.size());
  }
  return {};
}

Result<StoredBytes> SourceFiles::Open(const FoundChunk& chunk) {
  const ocdbt::Value& value = chunk.entry.value;
  if (value.is_inline()) return StoredBytes(value, nullptr);
  const std::string& path = chunk.listing->files[value.file];
  const uint64_t size = chunk.listing->file_sizes[value.file];
  RELAYOUT_ASSIGN_OR_RETURN(ocdbt::DataFiles * files, FilesOf(*chunk.listing));
  auto file = files->Open(path);
  if (!file.has_value()) {
    return InContext(std::move(file).error(),
                     StrCat("data file ", Quote(path), " in ",
                            Quote(chunk.listing->directory)));
  }
  if ((*file)->size() != size) {
    return Corrupt(StrCat("data file ", Quote(path), " in ",
                          Quote(chunk.listing->directory), " has ",
                          (*file)->size(), " bytes; it had ", size,
                          " when it was listed"));
  }
  return StoredBytes(value, *std::move(file));
}

Result<ocdbt::DataFiles*> SourceFiles::FilesOf(const ocdbt::Listing& listing) {
  const std::lock_guard lock(mutex_);
  auto& files = files_[&listing];
  if (files == nullptr) {
    RELAYOUT_ASSIGN_OR_RETURN(std::string real_root,
                              io::RealDirectory(listing.directory));
    files = std::make_unique<ocdbt::DataFiles>(std::move(real_root));
  }
  return files.get();
}

}  // namespace relayout::rechunk
