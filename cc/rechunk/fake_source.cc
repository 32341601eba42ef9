#include "cc/rechunk/fake_source.h"

#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace relayout::rechunk {
namespace {

std::vector<uint32_t> AllAxes(size_t rank) {
  std::vector<uint32_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0U);
  return axes;
}

}  // namespace

std::shared_ptr<const ocdbt::Listing> MakeListing(
    const std::map<std::string, std::string>& values) {
  auto owner =
      std::make_shared<const std::map<std::string, std::string>>(values);
  auto listing = std::make_shared<ocdbt::Listing>();
  for (const auto& [key, value] : *owner) {
    ocdbt::Entry& entry = listing->entries.emplace_back();
    entry.key = key;
    entry.value.length = value.size();
    entry.value.inline_data = value.data();
  }
  listing->owners.push_back(std::move(owner));
  return listing;
}

SourceArray ByteSource(std::shared_ptr<const ocdbt::Listing> listing,
                       std::string array, std::vector<uint64_t> shape,
                       std::vector<uint64_t> chunk_shape) {
  const size_t rank = shape.size();
  return {.listings = {std::move(listing)},
          .array = std::move(array),
          .keys = {},
          .shape = std::move(shape),
          .chunk_shape = std::move(chunk_shape),
          .dtype = "uint8",
          .codecs = {},
          .memory_order = AllAxes(rank),
          .fill_value = std::string(1, '\0')};
}

TargetArray ByteTarget(std::string array, std::vector<uint64_t> shape,
                       std::vector<uint64_t> chunk_shape) {
  return {.array = std::move(array),
          .keys = {},
          .shape = std::move(shape),
          .chunk_shape = std::move(chunk_shape),
          .dtype = "uint8",
          .metadata_key = ".zarray",
          .metadata = "{}",
          .zstd_level = std::nullopt,
          .fill_value = std::string(1, '\0'),
          .store_fill = false};
}

RewriteTask PlainTask(SourceArray source, TargetArray target) {
  const size_t rank = source.shape.size();
  return {.shape = source.shape,
          .layer_axes = {},
          .sources = {std::move(source)},
          .targets = {std::move(target)},
          .source_axes = AllAxes(rank),
          .target_axes = AllAxes(rank)};
}

}  // namespace relayout::rechunk
