#ifndef RELAYOUT_CC_RECHUNK_CHAINS_H_
#define RELAYOUT_CC_RECHUNK_CHAINS_H_

/// \file
/// Which units read on in a source chunk where another unit stopped.
///
/// A large compressed chunk can only be decoded from its start.  Units that
/// need parts of it one after another, in the order of its memory, form a
/// chain and share one stream.

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "cc/rechunk/checked_task.h"
#include "cc/rechunk/linear_range.h"
#include "cc/rechunk/source_parts.h"
#include "cc/rechunk/unit_grid.h"

namespace relayout::rechunk {

/// One unit's turn in a chain.
struct ChainUse {
  uint64_t unit = 0;  ///< number within the task
  uint64_t chain = 0;
  uint64_t turn = 0;
  bool is_last = false;
};

class Chains {
 public:
  Chains() = default;

  /// Finds the chains of the chunks whose length exceeds `num_piece_bytes`;
  /// they are numbered from `first_chain` on.
  Chains(const CheckedTask& task, const UnitGrid& grid,
         uint64_t num_piece_bytes, uint64_t first_chain);

  /// Returns the turn of `unit` with the chunk of `part`; none: it reads the
  /// chunk alone.
  std::optional<ChainUse> Find(const CheckedTask& task, uint64_t unit,
                               const SourcePart& part) const;

  uint64_t num_chains() const { return num_chains_; }

  /// Returns whether a chunk is decoded more than once.
  bool has_passes() const { return num_chains_ > chunks_.size(); }

  /// Number of bytes of chunks longer than a piece that all units decode.
  uint64_t num_streamed_bytes() const { return num_streamed_bytes_; }

 private:
  struct Uses {
    uint64_t end = 0;  ///< of what the last use needs, elements
    std::vector<ChainUse> uses;
  };
  /// Number of the source array, and of the chunk within it.
  using ChunkId = std::pair<uint64_t, uint64_t>;

  void AddUse(const CheckedTask& task, uint64_t unit, const SourcePart& part,
              uint64_t first_chain);
  void MarkLast();

  uint64_t num_chains_ = 0;
  uint64_t num_streamed_bytes_ = 0;
  std::map<ChunkId, Uses> chunks_;
};

}  // namespace relayout::rechunk

#endif  // RELAYOUT_CC_RECHUNK_CHAINS_H_
