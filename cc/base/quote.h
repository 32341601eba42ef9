#ifndef RELAYOUT_CC_BASE_QUOTE_H_
#define RELAYOUT_CC_BASE_QUOTE_H_

/// \file
/// Quoting of bytes that come from a checkpoint, for messages.

#include <string>
#include <string_view>

namespace relayout {

/// Returns `bytes` in double quotes, with whatever isn't printable ASCII as
/// `\xNN`, and shortened if it is very long.
[[nodiscard]] std::string Quote(std::string_view bytes);

}  // namespace relayout

#endif  // RELAYOUT_CC_BASE_QUOTE_H_
