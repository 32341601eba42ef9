#include "cc/rekey/source_array.h"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "cc/base/quote.h"
#include "cc/base/str_cat.h"

namespace relayout::rekey {
namespace {

using Listings = std::span<const std::shared_ptr<const ocdbt::Listing>>;

/// Indices of moves by listing and source array.
using MovesBySource =
    std::map<std::pair<uint32_t, std::string_view>, std::vector<uint32_t>>;

/// Names that are left out, by listing.
using DroppedNames = std::set<std::pair<uint32_t, std::string_view>>;

std::string InDatabase(const ocdbt::Listing& listing) {
  return StrCat(" of the database in ", Quote(listing.directory));
}

MovesBySource GroupMoves(std::span<const ArrayMove> moves) {
  MovesBySource groups;
  for (uint32_t i = 0; i < moves.size(); ++i) {
    groups[{moves[i].listing, moves[i].source_array}].push_back(i);
  }
  return groups;
}

Status CheckAgreement(std::span<const ArrayMove> moves,
                      std::span<const uint32_t> members) {
  const ArrayMove& first = moves[members.front()];
  for (const uint32_t member : members) {
    if (moves[member].source_keys != first.source_keys ||
        moves[member].source_grid != first.source_grid) {
      return InvalidArgument(StrCat("moves of array ",
                                    Quote(first.source_array),
                                    " disagree about its chunk keys or grid"));
    }
  }
  return {};
}

bool HasStrayKey(const ArrayIndex& index, const ocdbt::Listing& listing,
                 std::string_view key) {
  for (const EntryRange& range : index.stray) {
    for (size_t i = range.inclusive_min; i < range.exclusive_max; ++i) {
      if (listing.entries[i].key == key) return true;
    }
  }
  return false;
}

/// Checks that each drop names an array that is not moved, or a stray key.
Result<DroppedNames> FindDrops(Listings listings,
                               std::span<const ArrayIndex> indices,
                               const Request& request,
                               const MovesBySource& moves) {
  DroppedNames names;
  for (const auto& [listing, name] : request.drops) {
    if (moves.contains({listing, name})) {
      return InvalidArgument(
          StrCat("array ", Quote(name), " is both moved and dropped"));
    }
    if (indices[listing].Find(name) == nullptr &&
        !HasStrayKey(indices[listing], *listings[listing], name)) {
      return InvalidArgument(StrCat("drop of ", Quote(name), ": no such array",
                                    InDatabase(*listings[listing])));
    }
    names.insert({listing, name});
  }
  return names;
}

Status CheckStrayKeys(uint32_t position, const ocdbt::Listing& listing,
                      const ArrayIndex& index, const DroppedNames& drops) {
  for (const EntryRange& range : index.stray) {
    for (size_t i = range.inclusive_min; i < range.exclusive_max; ++i) {
      const std::string_view key = listing.entries[i].key;
      if (drops.contains({position, key})) continue;
      return InvalidArgument(StrCat("key ", Quote(key), InDatabase(listing),
                                    " belongs to no array and is not dropped"));
    }
  }
  return {};
}

Status CheckArrays(uint32_t position, const ocdbt::Listing& listing,
                   const ArrayIndex& index, const MovesBySource& moves,
                   const DroppedNames& drops) {
  for (const ArrayEntries& array : index.arrays) {
    const std::pair source(position, array.name);
    if (moves.contains(source) || drops.contains(source)) continue;
    return InvalidArgument(StrCat("array ", Quote(array.name),
                                  InDatabase(listing),
                                  " is neither moved nor dropped"));
  }
  return {};
}

}  // namespace

Result<std::vector<SourceArray>> FindSourceArrays(
    Listings listings, std::span<const ArrayIndex> indices,
    const Request& request) {
  const MovesBySource groups = GroupMoves(request.moves);
  RELAYOUT_ASSIGN_OR_RETURN(const DroppedNames drops,
                            FindDrops(listings, indices, request, groups));
  for (uint32_t i = 0; i < listings.size(); ++i) {
    RELAYOUT_RETURN_IF_ERROR(
        CheckArrays(i, *listings[i], indices[i], groups, drops));
    RELAYOUT_RETURN_IF_ERROR(
        CheckStrayKeys(i, *listings[i], indices[i], drops));
  }
  std::vector<SourceArray> sources;
  for (const auto& [source, members] : groups) {
    const auto& [listing, name] = source;
    const ArrayEntries* array = indices[listing].Find(name);
    if (array == nullptr) {
      return InvalidArgument(StrCat("move of ", Quote(name), ": no such array",
                                    InDatabase(*listings[listing])));
    }
    RELAYOUT_RETURN_IF_ERROR(CheckAgreement(request.moves, members));
    sources.push_back({listings[listing].get(), array,
                       &request.moves[members.front()],
                       MoveSelector(request.moves, members)});
  }
  return sources;
}

}  // namespace relayout::rekey
