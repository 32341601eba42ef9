#include "cc/rechunk/rewrite.h"

#include <unistd.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cc/base/quote.h"
#include "cc/base/result.h"
#include "cc/base/str_cat.h"
#include "cc/io/file_writer.h"
#include "cc/io/safe_path.h"
#include "cc/rechunk/ordered_writer.h"
#include "cc/rechunk/result_listing.h"
#include "cc/rechunk/rewrite_plan.h"
#include "cc/rechunk/workers.h"

namespace relayout::rechunk {
namespace {

Status CheckDataFile(const std::string& path) {
  if (io::CheckRelativePath(path).has_value()) return {};
  return InvalidArgument(
      StrCat("data file ", Quote(path), " is no path below the directory"));
}

Result<RewriteResult> RunPlan(const RewritePlan& plan,
                              const RewriteOptions& options,
                              io::FileWriter& file) {
  Workers workers(plan, file);
  RELAYOUT_RETURN_IF_ERROR(workers.Run(options.progress));
  RewriteResult result;
  result.num_bytes_read = workers.num_bytes_read();
  result.num_bytes_written = file.num_bytes();
  result.peak_buffer_bytes = workers.peak_bytes();
  result.times = workers.times();
  std::vector<WrittenChunk> chunks = workers.writer().TakeChunks();
  result.num_chunks_written = chunks.size();
  RELAYOUT_ASSIGN_OR_RETURN(
      result.listing,
      MakeResultListing(plan, std::move(chunks), options.directory,
                        options.data_file, file.num_bytes()));
  {
    const PhaseTimer timer(Phase::kWrite, result.times);
    RELAYOUT_RETURN_IF_ERROR(options.sync ? file.Finish() : file.Close());
  }
  return result;
}

}  // namespace

Result<RewriteResult> Rewrite(const RewritePlan& plan,
                              const RewriteOptions& options) {
  RELAYOUT_RETURN_IF_ERROR(CheckDataFile(options.data_file));
  const std::string path = options.directory + "/" + options.data_file;
  RELAYOUT_ASSIGN_OR_RETURN(io::FileWriter file, io::FileWriter::Create(path));
  auto result = RunPlan(plan, options, file);
  const bool is_needed = result.has_value() && result->num_chunks_written > 0;
  if (!is_needed) ::unlink(path.c_str());
  return result;
}

}  // namespace relayout::rechunk
