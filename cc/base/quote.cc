#include "cc/base/quote.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace relayout {
namespace {

constexpr size_t kMaxQuotedBytes = 300;
constexpr char kHexDigits[] = "0123456789abcdef";

void AppendEscaped(std::string& out, char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (c == '"' || c == '\\') {
    out += '\\';
    out += c;
  } else if (byte >= 0x20 && byte < 0x7f) {
    out += c;
  } else {
    out += "\\x";
    out += kHexDigits[byte >> 4];
    out += kHexDigits[byte & 15];
  }
}

}  // namespace

std::string Quote(std::string_view bytes) {
  std::string out = "\"";
  for (const char c : bytes.substr(0, kMaxQuotedBytes)) AppendEscaped(out, c);
  out += '"';
  if (bytes.size() > kMaxQuotedBytes) out += "...";
  return out;
}

}  // namespace relayout
