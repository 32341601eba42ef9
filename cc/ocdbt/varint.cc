#include "cc/ocdbt/varint.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace relayout::ocdbt {
namespace {

template <typename T>
T LoadLittleEndian(std::string_view bytes) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    value |= static_cast<T>(static_cast<uint8_t>(bytes[i])) << (8 * i);
  }
  return value;
}

template <typename T>
void AppendLittleEndian(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    out.push_back(static_cast<char>(value >> (8 * i)));
  }
}

}  // namespace

void AppendVarint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) {
    out.push_back(static_cast<char>(value | 0x80));
  }
  out.push_back(static_cast<char>(value));
}

void AppendLittleEndian32(std::string& out, uint32_t value) {
  AppendLittleEndian(out, value);
}

void AppendLittleEndian64(std::string& out, uint64_t value) {
  AppendLittleEndian(out, value);
}

void AppendBigEndian32(std::string& out, uint32_t value) {
  AppendLittleEndian(out, __builtin_bswap32(value));
}

bool ByteReader::ReadLongVarint(uint64_t& value) {
  uint64_t result = 0;
  const size_t max_bytes = std::min(rest_.size(), kMaxVarintBytes);
  for (size_t i = 0; i < max_bytes; ++i) {
    const auto byte = static_cast<uint8_t>(rest_[i]);
    // The tenth byte has room for one bit.
    if (i == kMaxVarintBytes - 1 && byte > 1) return false;
    result |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      value = result;
      rest_.remove_prefix(i + 1);
      return true;
    }
  }
  return false;
}

bool ByteReader::ReadBytes(size_t count, std::string_view& bytes) {
  if (count > rest_.size()) return false;
  bytes = rest_.substr(0, count);
  rest_.remove_prefix(count);
  return true;
}

bool ByteReader::ReadByte(uint8_t& value) {
  if (rest_.empty()) return false;
  value = static_cast<uint8_t>(rest_.front());
  rest_.remove_prefix(1);
  return true;
}

bool ByteReader::ReadLittleEndian32(uint32_t& value) {
  std::string_view bytes;
  if (!ReadBytes(sizeof(value), bytes)) return false;
  value = LoadLittleEndian<uint32_t>(bytes);
  return true;
}

bool ByteReader::ReadLittleEndian64(uint64_t& value) {
  std::string_view bytes;
  if (!ReadBytes(sizeof(value), bytes)) return false;
  value = LoadLittleEndian<uint64_t>(bytes);
  return true;
}

bool ByteReader::ReadBigEndian32(uint32_t& value) {
  if (!ReadLittleEndian32(value)) return false;
  value = __builtin_bswap32(value);
  return true;
}

}  // namespace relayout::ocdbt
