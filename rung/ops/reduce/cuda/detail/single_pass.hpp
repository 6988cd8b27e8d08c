// SPDX-License-Identifier: Apache-2.0
// Code of the one-launch reductions (general, single_pass_last_block and others): the partition of
// a result's terms among threads, warps and blocks, and the tickets that identify the last block.
//
// Tickets are counters in memory that the context owns. A launch zeroes them when the context first
// reduces, and the last block of every launch that used them resets them (as it does the packets of
// single_pass_last_block). The workspace, whose contents are undefined, holds only states; launches
// may be repeated and captured in graphs.
#pragma once

#include <cstdint>

#include "rung/core/bounds.hpp"
#include "rung/core/integer.hpp"
#include "rung/device/last_block.hpp"
#include "rung/device/resident.hpp"
#include "rung/ops/reduce/cuda/detail/store.hpp"

namespace rung::reduce_cuda::inline RUNG_TARGET {

inline constexpr int block_threads = 256;
inline constexpr std::int64_t max_tickets = 4096;  // results that several blocks share
inline constexpr std::int64_t max_packets = 4096;  // blocks that share results

/// The context's memory that is zero between launches; allocated by cuda/115_general.cu.
struct Zeroed {
  unsigned* tickets;
  void* packets;          // max_packets packets of 32 bytes
  void* words;            // max_packets packets for one_row, which never clears them
  std::uint64_t* launch;  // the number of its next launch, from 1
};
Zeroed zeroed_of(Context& context);
inline unsigned* tickets_of(Context& context) { return zeroed_of(context).tickets; }

/// Partition of the results among blocks.
struct Sharing {
  Index results = 0;
  int group = block_threads;  // threads per result: a power of two up to 32, or a block
  int splits = 1;             // blocks per result; above 1 only if a group is a block
  Index share = 0;            // elements per block if splits > 1 and rows have equal lengths
  void* states = nullptr;     // states of blocks that divide a result
  unsigned* tickets = nullptr;

  [[nodiscard]] Index blocks() const {
    constexpr Index most = 0x7fffffff;
    if (group == block_threads) return smaller(results * splits, most / splits * splits);
    return smaller(ceil_div(results, Index{block_threads / group}), most);
  }
};

/// Locations of results and of their terms: all reduced axes, or a segment.
struct Places {
  Collapsed<2> kept;
  Index terms = 0;
  const void* bounds = nullptr;  // segment bounds; null without segments
  bool wide = false;             // bounds are i64, else i32
  Index bound_step = 0;
  Index segments = 1;
  Index segment_step = 0;  // between results in y

  struct ResultLocation {
    Index x = 0;  // offset by the kept axes
    Index y = 0;
    Index first = 0;  // index of the first term
    Index count = 0;
  };
  [[nodiscard]] __device__ __forceinline__ Index bound(Index i) const {
    const Index at = i * bound_step;
    const Index value = wide ? static_cast<const std::int64_t*>(bounds)[at]
                             : Index{static_cast<const std::int32_t*>(bounds)[at]};
    return value < 0 ? 0 : value > terms ? terms : value;
  }
  [[nodiscard]] __device__ __forceinline__ ResultLocation of(Index result) const {
    ResultLocation place;
    const Index outer = bounds != nullptr ? result / segments : result;
    std::int64_t at[2];
    kept.offsets(outer, at);
    place.x = at[0];
    place.y = at[1];
    place.count = terms;
    if (bounds != nullptr) {
      const Index segment = result - outer * segments;
      place.y += segment * segment_step;
      place.first = bound(segment);
      place.count = bound(segment + 1) - place.first;
      if (place.count < 0) place.count = 0;
    }
    return place;
  }
};

/// Returns the combined state of each `group` lanes to all of them; called by every lane of the
/// warp.
template <class State, class Join>
__device__ __forceinline__ State join_lanes(State state, int group, const Join& join) {
  for (int distance = 1; distance < group; distance *= 2) {
    const State other = shuffle_xor(state, distance);
    state =
        (static_cast<int>(threadIdx.x) & distance) != 0 ? join(other, state) : join(state, other);
  }
  return state;
}

inline Places places_of(const Reduce::Args& args) {
  Places places;
  places.kept = args.kept;
  places.terms = args.terms.size();
  if (args.has_segments()) {
    places.bounds = args.offsets.data;
    places.wide = args.offsets.dtype == DType::i64;
    places.bound_step = args.offsets.strides[0];
    places.segments = args.segments();
    places.segment_step = args.segment_step();
  }
  return places;
}

/// Returns the mean number of terms per result, which the partition depends on.
inline Index average_terms(const Reduce::Args& args) {
  const Index cuts = args.has_segments() ? larger<Index>(args.segments(), 1) : 1;
  return ceil_div(args.terms.size(), cuts);
}

}  // namespace rung::reduce_cuda::inline RUNG_TARGET
