#include "cc/rekey/fake_listing.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace relayout::rekey {
namespace {

/// Returns a view of a copy of `bytes` that `listing` keeps alive.
std::string_view Keep(ocdbt::Listing& listing, const std::string& bytes) {
  auto owner = std::make_shared<const std::string>(bytes);
  const std::string_view view = *owner;
  listing.owners.push_back(std::move(owner));
  return view;
}

}  // namespace

FakeListing::FakeListing(std::string directory) {
  listing_.directory = std::move(directory);
  listing_.files = {"d/0", "d/1", "d/2"};
  listing_.file_sizes = {1000, 1000, 1000};
}

FakeListing& FakeListing::AddInline(const std::string& key,
                                    const std::string& value) {
  ocdbt::Entry& entry = listing_.entries.emplace_back();
  entry.key = Keep(listing_, key);
  const std::string_view bytes = Keep(listing_, value);
  entry.value.length = bytes.size();
  entry.value.inline_data = bytes.data();
  return *this;
}

FakeListing& FakeListing::AddIndirect(const std::string& key, uint32_t file,
                                      uint64_t offset, uint64_t length) {
  ocdbt::Entry& entry = listing_.entries.emplace_back();
  entry.key = Keep(listing_, key);
  entry.value.file = file;
  entry.value.length = length;
  entry.value.offset = offset;
  return *this;
}

std::shared_ptr<const ocdbt::Listing> FakeListing::Build() {
  std::ranges::sort(listing_.entries, {}, &ocdbt::Entry::key);
  return std::make_shared<const ocdbt::Listing>(std::move(listing_));
}

}  // namespace relayout::rekey
