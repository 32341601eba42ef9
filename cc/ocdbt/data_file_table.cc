#include "cc/ocdbt/data_file_table.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "cc/base/result.h"
#include "cc/base/str_cat.h"
#include "cc/ocdbt/column.h"
#include "cc/ocdbt/common_prefix.h"
#include "cc/ocdbt/data_ref.h"
#include "cc/ocdbt/varint.h"

namespace relayout::ocdbt {
namespace {

/// The columns of a table, before the suffixes; one element for each file.
struct Lengths {
  std::vector<uint16_t> prefix;  ///< shared with the path before
  std::vector<uint16_t> suffix;
  std::vector<uint16_t> base;

  size_t path(size_t i) const { return size_t{prefix[i]} + suffix[i]; }
};

Result<Lengths> ReadLengths(ByteReader& reader, size_t num_files) {
  Lengths lengths;
  if (num_files == 0) return lengths;
  RELAYOUT_ASSIGN_OR_RETURN(
      lengths.prefix,
      ReadColumn<uint16_t>(reader, "path prefix length", num_files - 1));
  lengths.prefix.insert(lengths.prefix.begin(), 0);
  RELAYOUT_ASSIGN_OR_RETURN(
      lengths.suffix,
      ReadColumn<uint16_t>(reader, "path suffix length", num_files));
  RELAYOUT_ASSIGN_OR_RETURN(
      lengths.base,
      ReadColumn<uint16_t>(reader, "base path length", num_files));
  return lengths;
}

Status CheckPathLength(const Lengths& lengths, size_t i,
                       size_t max_path_length) {
  const size_t previous = i == 0 ? 0 : lengths.path(i - 1);
  if (lengths.prefix[i] > previous) {
    return Corrupt(StrCat("path prefix length ", lengths.prefix[i], " of file ",
                          i, " exceeds previous path's ", previous));
  }
  if (lengths.path(i) > max_path_length) {
    return Corrupt(StrCat("path length ", lengths.path(i), " of file ", i,
                          " exceeds the limit of ", max_path_length));
  }
  return {};
}

/// A prefix may only reach beyond a base path that the two files share.
Status CheckBaseLength(const Lengths& lengths, size_t i) {
  if (lengths.base[i] > lengths.path(i)) {
    return Corrupt(StrCat("base path length ", lengths.base[i], " of file ", i,
                          " exceeds path length ", lengths.path(i)));
  }
  const size_t previous = i == 0 ? 0 : lengths.base[i - 1];
  const size_t shared = std::min<size_t>(previous, lengths.base[i]);
  if (lengths.prefix[i] > shared && lengths.base[i] != previous) {
    return Corrupt(StrCat("path prefix length ", lengths.prefix[i], " of file ",
                          i, " leaves the base paths, of ", previous, " and ",
                          lengths.base[i], " bytes"));
  }
  return {};
}

Status CheckLengths(const Lengths& lengths, size_t num_files,
                    std::string_view transitive_path) {
  if (transitive_path.size() > kMaxPathBytes) {
    return Corrupt("base path is too long");
  }
  uint64_t num_bytes = 0;
  for (size_t i = 0; i < num_files; ++i) {
    RELAYOUT_RETURN_IF_ERROR(
        CheckPathLength(lengths, i, kMaxPathBytes - transitive_path.size()));
    RELAYOUT_RETURN_IF_ERROR(CheckBaseLength(lengths, i));
    num_bytes += transitive_path.size() + lengths.path(i);
  }
  if (num_bytes > kMaxTableBytes) {
    return Corrupt(StrCat("data file table of ", num_bytes,
                          " bytes exceeds the limit of ", kMaxTableBytes));
  }
  return {};
}

Result<std::vector<DataFileId>> ReadPaths(ByteReader& reader,
                                          const Lengths& lengths,
                                          size_t num_files,
                                          std::string_view transitive_path) {
  std::vector<DataFileId> files(num_files);
  std::string path;
  for (size_t i = 0; i < num_files; ++i) {
    RELAYOUT_ASSIGN_OR_RETURN(
        const std::string_view suffix,
        ReadByteColumn(reader, "path suffix", lengths.suffix[i]));
    path.resize(lengths.prefix[i]);
    path += suffix;
    files[i].base_path = StrCat(
        transitive_path, std::string_view(path).substr(0, lengths.base[i]));
    files[i].relative_path = path.substr(lengths.base[i]);
  }
  return files;
}

/// Returns how many bytes of `path` the table can take from `previous`.
size_t SharedLength(const DataFileId& previous, const DataFileId& path) {
  const size_t base = CommonPrefixLength(previous.base_path, path.base_path);
  if (previous.base_path != path.base_path) return base;
  return base + CommonPrefixLength(previous.relative_path, path.relative_path);
}

}  // namespace

Result<std::vector<DataFileId>> DecodeDataFileTable(
    ByteReader& reader, std::string_view transitive_path) {
  RELAYOUT_ASSIGN_OR_RETURN(
      const uint64_t num_files,
      ReadCount(reader, "number of data files", UINT32_MAX));
  RELAYOUT_ASSIGN_OR_RETURN(const Lengths lengths,
                            ReadLengths(reader, num_files));
  RELAYOUT_RETURN_IF_ERROR(CheckLengths(lengths, num_files, transitive_path));
  return ReadPaths(reader, lengths, num_files, transitive_path);
}

Status DataFileTableEncoder::Use(uint32_t file) {
  if (!used_.empty() && used_.back() == file) return {};
  if (file >= files_.size()) {
    return InvalidArgument(
        StrCat("data file ", file, " of only ", files_.size()));
  }
  const size_t size =
      files_[file].base_path.size() + files_[file].relative_path.size();
  if (size > kMaxPathBytes) {
    return InvalidArgument(StrCat("path of data file ", file, " has ", size,
                                  " bytes, more than ", kMaxPathBytes));
  }
  used_.push_back(file);
  return {};
}

void DataFileTableEncoder::SortByPath() {
  std::ranges::sort(used_);
  used_.erase(std::ranges::unique(used_).begin(), used_.end());
  std::ranges::sort(used_, [this](uint32_t a, uint32_t b) {
    return std::tie(files_[a].base_path, files_[a].relative_path, a) <
           std::tie(files_[b].base_path, files_[b].relative_path, b);
  });
  indices_.clear();
  for (uint32_t i = 0; i < used_.size(); ++i)
    indices_.emplace_back(used_[i], i);
  std::ranges::sort(indices_);
}

void DataFileTableEncoder::AppendTo(std::string& out) {
  SortByPath();
  std::vector<size_t> shared(used_.size());
  AppendVarint(out, used_.size());
  for (size_t i = 1; i < used_.size(); ++i) {
    shared[i] = SharedLength(files_[used_[i - 1]], files_[used_[i]]);
    AppendVarint(out, shared[i]);
  }
  for (size_t i = 0; i < used_.size(); ++i) {
    AppendVarint(out, files_[used_[i]].path().size() - shared[i]);
  }
  for (const uint32_t file : used_) {
    AppendVarint(out, files_[file].base_path.size());
  }
  for (size_t i = 0; i < used_.size(); ++i) {
    out.append(files_[used_[i]].path(), shared[i]);
  }
}

uint32_t DataFileTableEncoder::Index(uint32_t file) const {
  return std::ranges::lower_bound(indices_, file, {},
                                  &std::pair<uint32_t, uint32_t>::first)
      ->second;
}

}  // namespace relayout::ocdbt
