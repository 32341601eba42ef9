#ifndef RELAYOUT_CC_BINDINGS_LISTING_H_
#define RELAYOUT_CC_BINDINGS_LISTING_H_

#include <memory>

#include "cc/ocdbt/listing.h"

namespace relayout::bindings {

/// The Python class `Listing`.
struct ListingHandle {
  std::shared_ptr<const ocdbt::Listing> listing;
};

}  // namespace relayout::bindings

#endif  // RELAYOUT_CC_BINDINGS_LISTING_H_
