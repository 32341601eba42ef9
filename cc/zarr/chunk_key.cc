#include "cc/zarr/chunk_key.h"

#include <charconv>
#include <system_error>

#include "cc/base/quote.h"
#include "cc/base/str_cat.h"

namespace relayout::zarr {
namespace {

using Style = ChunkKeyFormat::Style;

/// Takes a decimal number without leading zeros off the front of `rest`.
bool TakeNumber(std::string_view& rest, uint64_t& number) {
  const char* end = rest.data() + rest.size();
  const auto [stop, code] = std::from_chars(rest.data(), end, number);
  if (code != std::errc()) return false;
  const size_t num_digits = stop - rest.data();
  if (num_digits > 1 && rest.front() == '0') return false;
  rest.remove_prefix(num_digits);
  return true;
}

bool TakeSeparator(std::string_view& rest, char separator) {
  if (!rest.starts_with(separator)) return false;
  rest.remove_prefix(1);
  return true;
}

bool TakeIndex(std::string_view rest, ChunkKeyFormat format,
               std::span<uint64_t> index) {
  const bool is_default = format.style == Style::kDefault;
  if (!is_default && index.empty()) return rest == "0";
  if (is_default) {
    if (!rest.starts_with('c')) return false;
    rest.remove_prefix(1);
  }
  for (size_t axis = 0; axis < index.size(); ++axis) {
    const bool is_separated = is_default || axis > 0;
    if (is_separated && !TakeSeparator(rest, format.separator)) return false;
    if (!TakeNumber(rest, index[axis])) return false;
  }
  return rest.empty();
}

}  // namespace

Status ParseChunkKey(std::string_view key, ChunkKeyFormat format,
                     std::span<uint64_t> index) {
  if (TakeIndex(key, format, index)) return {};
  return Corrupt(StrCat("chunk key ", Quote(key),
                        " does not spell an index of rank ", index.size()));
}

void AppendChunkKey(std::span<const uint64_t> index, ChunkKeyFormat format,
                    std::string& out) {
  const bool is_default = format.style == Style::kDefault;
  if (is_default) out.push_back('c');
  if (!is_default && index.empty()) out.push_back('0');
  for (size_t axis = 0; axis < index.size(); ++axis) {
    if (is_default || axis > 0) out.push_back(format.separator);
    StrAppend(out, index[axis]);
  }
}

}  // namespace relayout::zarr
