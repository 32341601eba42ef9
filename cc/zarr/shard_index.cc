#include "cc/zarr/shard_index.h"

#include "cc/base/crc32c.h"
#include "cc/base/str_cat.h"

namespace relayout::zarr {
namespace {

constexpr uint64_t kBytesPerChunk = 16;
constexpr uint64_t kChecksumBytes = 4;
/// Offset and length of a chunk that is absent.
constexpr uint64_t kAbsent = UINT64_MAX;

/// Reads an integer of `num_bytes` bytes, little endian.
uint64_t ReadLittleEndian(std::string_view bytes, size_t num_bytes) {
  uint64_t value = 0;
  for (size_t i = num_bytes; i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

void AppendLittleEndian(uint64_t value, size_t num_bytes, std::string& out) {
  for (size_t i = 0; i < num_bytes; ++i) {
    out.push_back(static_cast<char>(value >> (8 * i)));
  }
}

Status CheckChecksum(std::string_view ranges, std::string_view checksum) {
  const uint64_t stored = ReadLittleEndian(checksum, kChecksumBytes);
  const uint64_t computed = Crc32c(ranges);
  if (stored == computed) return {};
  return Corrupt(StrCat("shard index: stored CRC-32C is ", stored,
                        ", the bytes give ", computed));
}

Status CheckRange(const ShardRange& range, uint64_t num_value_bytes,
                  uint64_t chunk) {
  const auto [offset, length] = range;
  if (offset <= num_value_bytes && length <= num_value_bytes - offset) {
    return {};
  }
  return Corrupt(StrCat("shard index: range [", offset, ", +", length,
                        ") of inner chunk ", chunk, " leaves the ",
                        num_value_bytes, "-byte value"));
}

Status CheckLength(uint64_t num_bytes, uint64_t index_length) {
  if (num_bytes >= index_length) return {};
  return Corrupt(StrCat("shard of ", num_bytes, " bytes is shorter than its ",
                        index_length, "-byte index"));
}

}  // namespace

Result<uint64_t> ShardIndexLength(const ShardIndexFormat& format) {
  if (format.num_chunks > (UINT64_MAX - kChecksumBytes) / kBytesPerChunk) {
    return InvalidArgument(StrCat("shard index: ", format.num_chunks,
                                  " inner chunks exceed 64 bits"));
  }
  return format.num_chunks * kBytesPerChunk +
         (format.has_checksum ? kChecksumBytes : 0);
}

Result<ShardIndex> DecodeShardIndex(std::string_view value,
                                    const ShardIndexFormat& format) {
  RELAYOUT_ASSIGN_OR_RETURN(const uint64_t length, ShardIndexLength(format));
  RELAYOUT_RETURN_IF_ERROR(CheckLength(value.size(), length));
  const uint64_t start = format.is_at_end ? value.size() - length : 0;
  return DecodeShardIndexBytes(value.substr(start, length), value.size(),
                               format);
}

Result<ShardIndex> DecodeShardIndexBytes(std::string_view index_bytes,
                                         uint64_t num_value_bytes,
                                         const ShardIndexFormat& format) {
  RELAYOUT_ASSIGN_OR_RETURN(const uint64_t length, ShardIndexLength(format));
  RELAYOUT_RETURN_IF_ERROR(CheckLength(num_value_bytes, length));
  if (index_bytes.size() != length) {
    return Corrupt(
        StrCat("shard index has ", index_bytes.size(), " bytes, not ", length));
  }
  const auto ranges = index_bytes.substr(0, format.num_chunks * kBytesPerChunk);
  if (format.has_checksum) {
    RELAYOUT_RETURN_IF_ERROR(
        CheckChecksum(ranges, index_bytes.substr(ranges.size())));
  }
  ShardIndex index(format.num_chunks);
  for (uint64_t chunk = 0; chunk < format.num_chunks; ++chunk) {
    const auto bytes = ranges.substr(chunk * kBytesPerChunk, kBytesPerChunk);
    const ShardRange range = {.offset = ReadLittleEndian(bytes, 8),
                              .length = ReadLittleEndian(bytes.substr(8), 8)};
    if (range == ShardRange{kAbsent, kAbsent}) continue;
    RELAYOUT_RETURN_IF_ERROR(CheckRange(range, num_value_bytes, chunk));
    index[chunk] = range;
  }
  return index;
}

std::string EncodeShardIndex(std::span<const std::optional<ShardRange>> ranges,
                             bool has_checksum) {
  std::string out;
  for (const auto& range : ranges) {
    const auto [offset, length] = range.value_or(ShardRange{kAbsent, kAbsent});
    AppendLittleEndian(offset, 8, out);
    AppendLittleEndian(length, 8, out);
  }
  if (has_checksum) AppendLittleEndian(Crc32c(out), kChecksumBytes, out);
  return out;
}

}  // namespace relayout::zarr
