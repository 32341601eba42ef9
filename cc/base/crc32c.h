#ifndef RELAYOUT_CC_BASE_CRC32C_H_
#define RELAYOUT_CC_BASE_CRC32C_H_

/// \file
/// CRC-32C (Castagnoli), the checksum of OCDBT records and zarr shard indexes.

#include <cstdint>
#include <string_view>

namespace relayout {

/// Returns the checksum of `bytes`, or, given the checksum of earlier bytes as
/// `crc`, of those followed by `bytes`.  Uses the processor's instruction
/// where there is one.
uint32_t Crc32c(std::string_view bytes, uint32_t crc = 0);

namespace internal_crc32c {

using Function = uint32_t (*)(std::string_view bytes, uint32_t crc);

/// Table-driven, for any processor.
uint32_t Portable(std::string_view bytes, uint32_t crc);

/// Returns the function for this processor's instruction, or null.
Function Hardware();

}  // namespace internal_crc32c
}  // namespace relayout

#endif  // RELAYOUT_CC_BASE_CRC32C_H_
