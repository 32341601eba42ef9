#include "cc/rekey/read_key.h"

#include <algorithm>
#include <utility>

#include "cc/base/quote.h"
#include "cc/base/str_cat.h"

namespace relayout::rekey {
namespace {

Result<std::string> ReadPart(const ocdbt::Listing& listing,
                             const ocdbt::Value& value,
                             const std::optional<ValueRange>& range) {
  if (!range.has_value()) return ocdbt::ReadValue(listing, value);
  RELAYOUT_RETURN_IF_ERROR(CheckPart(value, *range));
  return ocdbt::ReadValue(listing, PartOf(value, *range));
}

}  // namespace

const ocdbt::Entry* FindEntry(const ocdbt::Listing& listing,
                              std::string_view key) {
  const auto found =
      std::ranges::lower_bound(listing.entries, key, {}, &ocdbt::Entry::key);
  return found != listing.entries.end() && found->key == key ? &*found
                                                             : nullptr;
}

Result<std::string> ReadEntry(const ocdbt::Listing& listing,
                              const ocdbt::Entry& entry,
                              const std::optional<ValueRange>& range) {
  auto value = ReadPart(listing, entry.value, range);
  if (value.has_value()) return value;
  return InContext(std::move(value).error(),
                   StrCat("key ", Quote(entry.key), " of the database in ",
                          Quote(listing.directory)));
}

}  // namespace relayout::rekey
