// SPDX-License-Identifier: Apache-2.0
// QueryJob: what a kernel of the tensor-core rungs is given - the call, and in which order blocks
// take the tiles of queries. Sizes are below 2^30: indices are int.
#pragma once

#include <cstdint>

#include "rung/ops/attention/cuda/detail/heads.hpp"

namespace rung::attention_cuda::inline RUNG_TARGET {

/// A block's queries of one head, and how many keys they see.
struct BlockQueries {
  int batch, head, first;
  int length;   // keys of the batch's element
  int visible;  // keys that its last query sees
};

/// Tiles of queries in the order in which they are worked on. Heads go in sections whose keys and
/// values stay in L2; in a section the last queries come first, which see most keys where causal.
struct QueryOrder {
  int tiles;    // per head
  int heads;    // of all of the batch
  int section;  // heads

  [[nodiscard]] RUNG_HD int total() const { return tiles * heads; }
};

/// What a kernel is given.
template <class T>
struct QueryJob {
  Heads<T> heads;
  QueryOrder order;
  float scale;  // of scores, for powers of two

  [[nodiscard]] __device__ __forceinline__ int queries() const {
    return static_cast<int>(heads.queries());
  }
  [[nodiscard]] __device__ __forceinline__ int keys() const {
    return static_cast<int>(heads.keys());
  }
  [[nodiscard]] __device__ __forceinline__ int width() const {
    return static_cast<int>(heads.width());
  }
  [[nodiscard]] __device__ __forceinline__ int value_width() const {
    return static_cast<int>(heads.value_width());
  }
  /// How many of `length` keys a query sees.
  [[nodiscard]] __device__ __forceinline__ int visible(int query, int length) const {
    return static_cast<int>(visible_keys(query, queries(), length, heads.causal));
  }

  /// The number-th block's.
  template <int Rows>
  [[nodiscard]] __device__ __forceinline__ BlockQueries at(int number) const {
    const int section = number / (order.tiles * order.section);
    const int first_head = section * order.section;
    const int here = min(order.section, order.heads - first_head);
    const int place = number - first_head * order.tiles;
    const int head = first_head + place % here;
    const auto query_heads = static_cast<int>(heads.heads());
    BlockQueries work;
    work.first = (order.tiles - 1 - place / here) * Rows;
    work.batch = head / query_heads;
    work.head = head % query_heads;
    work.length = static_cast<int>(heads.length(work.batch));
    work.visible = visible(min(work.first + Rows, queries()) - 1, work.length);
    return work;
  }
};

}  // namespace rung::attention_cuda::inline RUNG_TARGET
