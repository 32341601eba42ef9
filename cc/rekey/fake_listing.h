#ifndef RELAYOUT_CC_REKEY_FAKE_LISTING_H_
#define RELAYOUT_CC_REKEY_FAKE_LISTING_H_

/// \file
/// Listings for tests, without a database.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cc/ocdbt/listing.h"

namespace relayout::rekey {

/// Makes a listing from keys and values that need not be sorted.
class FakeListing {
 public:
  explicit FakeListing(std::string directory = "db");

  FakeListing& AddInline(const std::string& key, const std::string& value);

  /// Adds a value in a range of data file `file`, of which there are three of
  /// 1000 bytes: `d/0` to `d/2`.
  FakeListing& AddIndirect(const std::string& key, uint32_t file,
                           uint64_t offset, uint64_t length);

  std::shared_ptr<const ocdbt::Listing> Build();

 private:
  ocdbt::Listing listing_;
};

}  // namespace relayout::rekey

#endif  // RELAYOUT_CC_REKEY_FAKE_LISTING_H_
