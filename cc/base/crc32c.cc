#include "cc/base/crc32c.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

namespace relayout {
namespace internal_crc32c {
namespace {

constexpr uint32_t kReversedPolynomial = 0x82f63b78;
constexpr size_t kNumSlices = 8;

using Table = std::array<std::array<uint32_t, 256>, kNumSlices>;

/// Entry `[k][b]`: what byte `b` contributes when `k` more bytes follow it.
constexpr Table MakeTable() {
  Table table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? kReversedPolynomial : 0);
    }
    table[0][byte] = crc;
  }
  for (size_t slice = 1; slice < kNumSlices; ++slice) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t shorter = table[slice - 1][byte];
      table[slice][byte] = (shorter >> 8) ^ table[0][shorter & 255];
    }
  }
  return table;
}

constexpr Table kTable = MakeTable();

uint64_t LoadLittleEndian64(const char* data) {
  uint64_t word;
  std::memcpy(&word, data, sizeof(word));
  if constexpr (std::endian::native == std::endian::big) {
    word = __builtin_bswap64(word);
  }
  return word;
}

uint32_t FoldWord(uint64_t word) {
  uint32_t crc = 0;
  for (size_t slice = 0; slice < kNumSlices; ++slice) {
    crc ^= kTable[kNumSlices - 1 - slice][(word >> (8 * slice)) & 255];
  }
  return crc;
}

#if defined(__x86_64__)

__attribute__((target("sse4.2"))) uint32_t Sse42(std::string_view bytes,
                                                 uint32_t crc) {
  uint64_t state = ~crc;
  const char* data = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, data += 8) {
    state = _mm_crc32_u64(state, LoadLittleEndian64(data));
  }
  auto narrow = static_cast<uint32_t>(state);
  for (; left > 0; --left, ++data) {
    narrow = _mm_crc32_u8(narrow, static_cast<uint8_t>(*data));
  }
  return ~narrow;
}

#elif defined(__ARM_FEATURE_CRC32)

uint32_t Armv8(std::string_view bytes, uint32_t crc) {
  crc = ~crc;
  const char* data = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, data += 8) {
    crc = __crc32cd(crc, LoadLittleEndian64(data));
  }
  for (; left > 0; --left, ++data) {
    crc = __crc32cb(crc, static_cast<uint8_t>(*data));
  }
  return ~crc;
}

#endif

}  // namespace

uint32_t Portable(std::string_view bytes, uint32_t crc) {
  crc = ~crc;
  const char* data = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, data += 8) {
    crc = FoldWord(LoadLittleEndian64(data) ^ crc);
  }
  for (; left > 0; --left, ++data) {
    crc = (crc >> 8) ^ kTable[0][(crc ^ static_cast<uint8_t>(*data)) & 255];
  }
  return ~crc;
}

Function Hardware() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("sse4.2") ? &Sse42 : nullptr;
#elif defined(__ARM_FEATURE_CRC32)
  return &Armv8;
#else
  return nullptr;
#endif
}

}  // namespace internal_crc32c

uint32_t Crc32c(std::string_view bytes, uint32_t crc) {
  static const internal_crc32c::Function hardware = internal_crc32c::Hardware();
  return hardware != nullptr ? hardware(bytes, crc)
                             : internal_crc32c::Portable(bytes, crc);
}

}  // namespace relayout
