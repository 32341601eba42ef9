#include "cc/base/crc32c.h"

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

#include "cc/testing/test.h"

namespace relayout {
namespace {

using internal_crc32c::Hardware;
using internal_crc32c::Portable;

struct Vector {
  std::string bytes;
  uint32_t crc;
};

std::string Ascending() {
  std::string bytes;
  for (int i = 0; i < 32; ++i) bytes.push_back(static_cast<char>(i));
  return bytes;
}

/// RFC 3720, B.4, and the check value of the CRC catalogue.
TEST(KnownVectors) {
  const Vector vectors[] = {
      {"", 0},
      {"123456789", 0xe3069283},
      {std::string(32, '\0'), 0x8a9136aa},
      {std::string(32, '\xff'), 0x62a8ab43},
      {Ascending(), 0x46dd794e},
  };
  for (const auto& [bytes, crc] : vectors) {
    EXPECT_EQ(Crc32c(bytes), crc);
    EXPECT_EQ(Portable(bytes, 0), crc);
  }
}

TEST(HardwareAgreesWithPortableAtEveryLengthAndAlignment) {
  const auto hardware = Hardware();
  if (hardware == nullptr) return;
  // The same bytes each time.  NOLINTNEXTLINE(bugprone-random-generator-seed)
  std::mt19937 random(1);
  std::string bytes(600, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  for (size_t begin = 0; begin < 9; ++begin) {
    for (size_t length = 0; begin + length <= bytes.size(); ++length) {
      const std::string_view part(bytes.data() + begin, length);
      const auto crc = static_cast<uint32_t>(random());
      ASSERT_EQ(hardware(part, crc), Portable(part, crc));
    }
  }
}

TEST(ContinuesFromEarlierBytes) {
  const std::string_view bytes = "one record, checked in two parts";
  for (size_t split = 0; split <= bytes.size(); ++split) {
    const uint32_t first = Crc32c(bytes.substr(0, split));
    EXPECT_EQ(Crc32c(bytes.substr(split), first), Crc32c(bytes));
  }
}

}  // namespace
}  // namespace relayout
