#ifndef RELAYOUT_CC_OCDBT_RECORD_H_
#define RELAYOUT_CC_OCDBT_RECORD_H_

/// \file
/// The envelope of every OCDBT record: magic, length, version, compression, the
/// body, and a checksum.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cc/base/byte_view.h"
#include "cc/base/result.h"

namespace relayout::ocdbt {

/// Each kind's value is its magic number.
enum class RecordKind : uint32_t {
  kManifest = 0x0cdb3a2a,
  kVersionTreeNode = 0x0cdb1234,
  kBtreeNode = 0x0cdb20de,
};

/// Largest record and largest body that are read, in bytes.  Writers aim at
/// nodes of `Config::max_decoded_node_bytes`, 100 MB at the most seen.
inline constexpr uint64_t kMaxRecordBytes = 256 << 20;
inline constexpr uint64_t kMaxBodyBytes = 512 << 20;

/// Returns `body` as a record, compressed if a level is given.
///
/// Errors: `kInvalidArgument` when the level is none, or the body too large.
Result<std::string> EncodeRecord(RecordKind kind, std::string_view body,
                                 std::optional<int32_t> zstd_level);

/// Returns the body of `record`, which must be whole and end where its header
/// says.  The checksum is checked before anything else is believed.
///
/// Errors: `kCorrupt`; `kUnsupported` for an intact record of another version.
Result<ByteView> DecodeRecord(RecordKind kind, const ByteView& record);

}  // namespace relayout::ocdbt

#endif  // RELAYOUT_CC_OCDBT_RECORD_H_
