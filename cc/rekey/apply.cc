#include "cc/rekey/apply.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "cc/base/quote.h"
#include "cc/base/str_cat.h"
#include "cc/io/file_writer.h"
#include "cc/io/safe_path.h"
#include "cc/ocdbt/btree_node.h"
#include "cc/ocdbt/data_ref.h"
#include "cc/ocdbt/manifest.h"
#include "cc/rekey/tree_writer.h"

namespace relayout::rekey {
namespace {

namespace fs = std::filesystem;

Status CheckPath(std::string_view path) {
  // A bad path is the caller's mistake here, not the checkpoint's.
  const Status status = io::CheckRelativePath(path);
  return status.has_value() ? status : InvalidArgument(status.error().message);
}

/// Checks that the file `path` is there and has the size of `file`.
Status CheckLinkedFile(const fs::path& path, const PlannedFile& file) {
  std::error_code error;
  const uint64_t num_bytes = fs::file_size(path, error);
  if (error) {
    return InvalidArgument(StrCat("data file ", Quote(path.native()),
                                  " is not in the target: ", error.message()));
  }
  if (num_bytes == file.num_bytes) return {};
  return InvalidArgument(StrCat("data file ", Quote(path.native()), " has ",
                                num_bytes, " bytes, its source ",
                                Quote(file.path), " has ", file.num_bytes));
}

Status CheckFiles(const RekeyPlan& plan, const ApplyOptions& options) {
  RELAYOUT_RETURN_IF_ERROR(CheckPath(options.data_file));
  if (options.file_paths.size() != plan.files.size()) {
    return InvalidArgument(StrCat(options.file_paths.size(),
                                  " file paths for a plan of ",
                                  plan.files.size(), " files"));
  }
  for (size_t i = 0; i < plan.files.size(); ++i) {
    RELAYOUT_RETURN_IF_ERROR(CheckPath(options.file_paths[i]));
    RELAYOUT_RETURN_IF_ERROR(CheckLinkedFile(
        fs::path(options.directory) / options.file_paths[i], plan.files[i]));
  }
  return {};
}

/// Returns the files that entries refer to; the new data file is the last.
std::vector<ocdbt::DataFileId> DataFiles(const ApplyOptions& options) {
  std::vector<ocdbt::DataFileId> files;
  for (const std::string& path : options.file_paths) {
    files.push_back({.base_path = "", .relative_path = path});
  }
  files.push_back({.base_path = "", .relative_path = options.data_file});
  return files;
}

/// Writes the values that are too long to be inline into the new data file,
/// and returns the entries with references to them.
Result<std::vector<ocdbt::Entry>> PlaceLongValues(
    std::span<const ocdbt::Entry> entries, uint64_t max_inline_value_bytes,
    uint32_t file, io::FileWriter& writer) {
  std::vector<ocdbt::Entry> placed(entries.begin(), entries.end());
  for (auto& [key, value] : placed) {
    if (!value.is_inline() || value.length <= max_inline_value_bytes) continue;
    const std::string_view bytes = value.inline_bytes();
    value.file = file;
    value.offset = writer.num_bytes();
    RELAYOUT_RETURN_IF_ERROR(writer.Append(bytes));
  }
  return placed;
}

/// Ends a file, and with `sync` makes it and its name durable.
Status EndFile(io::FileWriter& writer, const fs::path& path, bool sync) {
  if (!sync) return writer.Close();
  RELAYOUT_RETURN_IF_ERROR(writer.Finish());
  return io::SyncDirectory(path.parent_path());
}

/// Creates the directories above `path` and then the file.
Result<io::FileWriter> CreateDataFile(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) {
    return SystemError(StrCat("can't create ",
                              Quote(path.parent_path().native()), ": ",
                              error.message()));
  }
  return io::FileWriter::Create(path);
}

/// Writes the new data file of a plan that has entries.
Result<WrittenTree> WriteDataFile(const RekeyPlan& plan,
                                  const ApplyOptions& options,
                                  uint64_t& num_bytes_written) {
  const fs::path path = fs::path(options.directory) / options.data_file;
  RELAYOUT_ASSIGN_OR_RETURN(io::FileWriter writer, CreateDataFile(path));
  const auto files = DataFiles(options);
  const uint32_t node_file = files.size() - 1;
  const uint64_t max_inline = std::min(options.config.max_inline_value_bytes,
                                       ocdbt::kMaxInlineValueBytes);
  RELAYOUT_ASSIGN_OR_RETURN(
      const auto entries,
      PlaceLongValues(plan.entries, max_inline, node_file, writer));
  RELAYOUT_ASSIGN_OR_RETURN(
      WrittenTree tree,
      WriteTree(entries, {files, node_file, options.config, writer},
                options.num_threads));
  RELAYOUT_RETURN_IF_ERROR(EndFile(writer, path, options.sync));
  num_bytes_written += writer.num_bytes();
  // In the manifest it is the only file.
  tree.root.location.file = 0;
  return tree;
}

ocdbt::Manifest MakeManifest(const WrittenTree& tree,
                             const ApplyOptions& options) {
  ocdbt::Manifest manifest;
  manifest.config = options.config;
  manifest.config.manifest_kind = ocdbt::ManifestKind::kSingle;
  // The missing root of an empty database is in a file without a name.
  const bool has_root = !tree.root.location.is_missing();
  manifest.files = {
      {.base_path = "", .relative_path = has_root ? options.data_file : ""}};
  manifest.versions = {{.generation = 1,
                        .root_height = tree.height,
                        .root = tree.root,
                        .commit_time_ns = options.commit_time_ns}};
  return manifest;
}

Status CheckNoManifest(const fs::path& path) {
  std::error_code error;
  if (fs::symlink_status(path, error).type() == fs::file_type::not_found) {
    return {};
  }
  return SystemError(StrCat(Quote(path.native()), " already exists"));
}

/// Writes the manifest under another name first, so that it is there whole or
/// not at all.
Status WriteManifest(const fs::path& path, std::string_view record, bool sync) {
  const fs::path partial = path.native() + ".partial";
  RELAYOUT_ASSIGN_OR_RETURN(io::FileWriter writer,
                            io::FileWriter::Create(partial));
  RELAYOUT_RETURN_IF_ERROR(writer.Append(record));
  RELAYOUT_RETURN_IF_ERROR(sync ? writer.Finish() : writer.Close());
  std::error_code error;
  fs::rename(partial, path, error);
  if (error) {
    return SystemError(StrCat("can't rename ", Quote(partial.native()), ": ",
                              error.message()));
  }
  return sync ? io::SyncDirectory(path.parent_path()) : Status();
}

}  // namespace

Result<ApplyReport> Apply(const RekeyPlan& plan, const ApplyOptions& options) {
  const fs::path manifest_path =
      fs::path(options.directory) / ocdbt::kManifestName;
  RELAYOUT_RETURN_IF_ERROR(CheckFiles(plan, options));
  RELAYOUT_RETURN_IF_ERROR(CheckNoManifest(manifest_path));
  ApplyReport report;
  WrittenTree tree = {
      .root = {.location = ocdbt::DataRef::Missing(), .statistics = {}}};
  if (!plan.entries.empty()) {
    RELAYOUT_ASSIGN_OR_RETURN(
        tree, WriteDataFile(plan, options, report.num_bytes_written));
  }
  RELAYOUT_ASSIGN_OR_RETURN(const std::string record,
                            ocdbt::EncodeManifest(MakeManifest(tree, options)));
  RELAYOUT_RETURN_IF_ERROR(WriteManifest(manifest_path, record, options.sync));
  report.num_keys = plan.entries.size();
  report.num_nodes = tree.num_nodes;
  report.height = tree.height;
  report.num_bytes_written += record.size();
  return report;
}

}  // namespace relayout::rekey
