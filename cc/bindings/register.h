#ifndef RELAYOUT_CC_BINDINGS_REGISTER_H_
#define RELAYOUT_CC_BINDINGS_REGISTER_H_

/// \file
/// One function for each topic of the module `relayout._native`.

#include <pybind11/pybind11.h>

namespace relayout::bindings {

/// Translates `ErrorException`; see status.h.
void RegisterStatus();
/// `crc32c`, `zstd_decompress`, `decode_shard_index`.
void RegisterCodecs(pybind11::module_& module);
/// `list_database`, `list_directory` and what it returns.
void RegisterListing(pybind11::module_& module);
/// `ChunkKeyFormat`, `ArrayMove`.
void RegisterMoves(pybind11::module_& module);
/// `plan_rekey`, `apply_rekey` and what they return.
void RegisterRekey(pybind11::module_& module);
/// `plan_rewrite`, `rewrite`, what they take and what they return.
void RegisterRechunk(pybind11::module_& module);
/// `ShardedArray`, `flatten_shards`.
void RegisterShards(pybind11::module_& module);

}  // namespace relayout::bindings

#endif  // RELAYOUT_CC_BINDINGS_REGISTER_H_
