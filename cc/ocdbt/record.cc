#include "cc/ocdbt/record.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cc/base/byte_view.h"
#include "cc/base/compression.h"
#include "cc/base/crc32c.h"
#include "cc/base/result.h"
#include "cc/base/str_cat.h"
#include "cc/ocdbt/column.h"
#include "cc/ocdbt/varint.h"

namespace relayout::ocdbt {
namespace {

constexpr size_t kMagicBytes = 4;
constexpr size_t kLengthBytes = 8;
constexpr size_t kChecksumBytes = 4;
/// With one byte each for version and compression.
constexpr size_t kMinRecordBytes =
    kMagicBytes + kLengthBytes + 2 + kChecksumBytes;
constexpr uint64_t kFormatVersion = 0;

enum Compression : uint64_t { kUncompressed = 0, kZstd = 1 };

std::string_view Name(RecordKind kind) {
  switch (kind) {
    case RecordKind::kManifest:
      return "manifest";
    case RecordKind::kVersionTreeNode:
      return "version tree node";
    case RecordKind::kBtreeNode:
      return "B+tree node";
  }
  return "record";
}

Status CheckSize(RecordKind kind, size_t size) {
  if (size >= kMinRecordBytes && size <= kMaxRecordBytes) return {};
  return Corrupt(StrCat(Name(kind), " of ", size, " bytes is outside [",
                        kMinRecordBytes, ", ", kMaxRecordBytes, "]"));
}

/// Checks the checksum of `record` and returns what it covers.
Result<std::string_view> CheckChecksum(std::string_view record) {
  const auto covered = record.substr(0, record.size() - kChecksumBytes);
  uint32_t stored = 0;
  ByteReader reader(record.substr(covered.size()));
  (void)reader.ReadLittleEndian32(stored);
  const uint32_t actual = Crc32c(covered);
  if (stored == actual) return covered;
  return Corrupt(StrCat("checksum is ", actual, ", stored was ", stored));
}

Status ReadMagicAndLength(RecordKind kind, size_t record_size,
                          ByteReader& reader) {
  uint32_t magic = 0;
  uint64_t length = 0;
  if (!reader.ReadBigEndian32(magic) || !reader.ReadLittleEndian64(length)) {
    return EndsEarly("the header", reader);
  }
  if (magic != static_cast<uint32_t>(kind)) {
    return Corrupt(StrCat("magic number is ", magic, ", not that of a ",
                          Name(kind), ", ", static_cast<uint32_t>(kind)));
  }
  if (length != record_size) {
    return Corrupt(
        StrCat("header says ", length, " bytes, but there are ", record_size));
  }
  return {};
}

Status ReadVersion(ByteReader& reader) {
  RELAYOUT_ASSIGN_OR_RETURN(const uint64_t version,
                            ReadField(reader, "format version", UINT32_MAX));
  if (version == kFormatVersion) return {};
  return Unsupported(StrCat("format version ", version, " is not supported"));
}

}  // namespace

Result<std::string> EncodeRecord(RecordKind kind, std::string_view body,
                                 std::optional<int32_t> zstd_level) {
  if (body.size() > kMaxBodyBytes) {
    return InvalidArgument(StrCat(Name(kind), " of ", body.size(),
                                  " bytes exceeds the limit of ",
                                  kMaxBodyBytes));
  }
  std::string compressed;
  if (zstd_level.has_value()) {
    RELAYOUT_ASSIGN_OR_RETURN(compressed, ZstdCompress(body, *zstd_level));
    body = compressed;
  }
  std::string out;
  out.reserve(kMinRecordBytes + body.size());
  AppendBigEndian32(out, static_cast<uint32_t>(kind));
  AppendLittleEndian64(out, kMinRecordBytes + body.size());
  AppendVarint(out, kFormatVersion);
  AppendVarint(out, zstd_level.has_value() ? kZstd : kUncompressed);
  out += body;
  AppendLittleEndian32(out, Crc32c(out));
  return out;
}

Result<ByteView> DecodeRecord(RecordKind kind, const ByteView& record) {
  RELAYOUT_RETURN_IF_ERROR(CheckSize(kind, record.size()));
  RELAYOUT_ASSIGN_OR_RETURN(const std::string_view covered,
                            CheckChecksum(record.bytes()));
  ByteReader reader(covered);
  RELAYOUT_RETURN_IF_ERROR(ReadMagicAndLength(kind, record.size(), reader));
  RELAYOUT_RETURN_IF_ERROR(ReadVersion(reader));
  RELAYOUT_ASSIGN_OR_RETURN(
      const uint64_t compression,
      ReadField(reader, "compression format", UINT32_MAX));
  if (compression == kUncompressed) return record.Part(reader.rest());
  if (compression == kZstd) return ZstdDecompress(reader.rest(), kMaxBodyBytes);
  return Unsupported(
      StrCat("compression format ", compression, " is not supported"));
}

}  // namespace relayout::ocdbt
