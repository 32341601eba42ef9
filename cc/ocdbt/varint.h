#ifndef RELAYOUT_CC_OCDBT_VARINT_H_
#define RELAYOUT_CC_OCDBT_VARINT_H_

/// \file
/// Unsigned LEB128 integers, and fixed-size ones, to and from bytes.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace relayout::ocdbt {

/// Longest varint of a 64-bit value, in bytes.
inline constexpr size_t kMaxVarintBytes = 10;

/// Returns the number of bytes that `AppendVarint` appends.
constexpr size_t VarintSize(uint64_t value) {
  return (static_cast<size_t>(std::bit_width(value | 1)) + 6) / 7;
}

void AppendVarint(std::string& out, uint64_t value);
void AppendLittleEndian32(std::string& out, uint32_t value);
void AppendLittleEndian64(std::string& out, uint64_t value);
void AppendBigEndian32(std::string& out, uint32_t value);

/// Takes values off the front of bytes.
///
/// Each function returns false, and takes nothing, when the bytes are too few
/// or are no such value.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  std::string_view rest() const { return rest_; }
  size_t num_remaining() const { return rest_.size(); }

  [[nodiscard]] bool ReadVarint(uint64_t& value) {
    if (!rest_.empty() && static_cast<uint8_t>(rest_.front()) < 0x80) {
      value = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      return true;
    }
    return ReadLongVarint(value);
  }

  [[nodiscard]] bool ReadBytes(size_t count, std::string_view& bytes);
  [[nodiscard]] bool ReadByte(uint8_t& value);
  [[nodiscard]] bool ReadLittleEndian32(uint32_t& value);
  [[nodiscard]] bool ReadLittleEndian64(uint64_t& value);
  [[nodiscard]] bool ReadBigEndian32(uint32_t& value);

 private:
  [[nodiscard]] bool ReadLongVarint(uint64_t& value);

  std::string_view rest_;
};

}  // namespace relayout::ocdbt

#endif  // RELAYOUT_CC_OCDBT_VARINT_H_
