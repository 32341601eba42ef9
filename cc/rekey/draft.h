#ifndef RELAYOUT_CC_REKEY_DRAFT_H_
#define RELAYOUT_CC_REKEY_DRAFT_H_

/// \file
/// A target entry in the making: its key, and where it comes from.

#include <cstdint>
#include <string_view>

#include "cc/ocdbt/listing.h"

namespace relayout::rekey {

struct Draft {
  /// In place of a move: the entry is a literal.
  static constexpr uint32_t kLiteral = UINT32_MAX;

  std::string_view key;  ///< of the target
  const ocdbt::Entry* source = nullptr;
  uint32_t move = kLiteral;  ///< index into `Request::moves`

  bool is_literal() const { return move == kLiteral; }
};

}  // namespace relayout::rekey

#endif  // RELAYOUT_CC_REKEY_DRAFT_H_
