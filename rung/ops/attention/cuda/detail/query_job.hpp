// SPDX-License-Identifier: Apache-2.0
// QueryJob: argument of the tensor-core kernels (tensors and the order of query tiles), and the
// requirements of these rungs. Sizes are below 2^30, so indices are int.
#pragma once

#include <cstdint>

#include "rung/core/bounds.hpp"
#include "rung/core/integer.hpp"
#include "rung/ops/attention/cuda/detail/facts.hpp"
#include "rung/ops/attention/cuda/detail/heads.hpp"

namespace rung::attention_cuda::inline RUNG_TARGET {

/// A block's queries of one head, and the keys they see.
struct BlockQueries {
  int batch, head, first;
  int queries, length;     // queries and keys of the batch element; 0 queries: nothing to do
  int first_key, end_key;  // range of the keys that any of them sees

  /// Returns the number of tiles of `keys` keys, the first of which starts at first_key.
  [[nodiscard]] __device__ __forceinline__ int tiles(int keys) const {
    return (end_key - first_key + keys - 1) / keys;
  }
};

/// Order of the query tiles. Heads are grouped in sections whose keys and values stay in L2; within
/// a section the last queries, which see the most keys under a causal mask, come first.
struct QueryOrder {
  int tiles;    // per head; of packed queries count_row_tiles() over all batch elements
  int heads;    // in the whole batch; of one batch element if queries are packed
  int section;  // heads per section

  [[nodiscard]] RUNG_HD int total() const { return tiles * heads; }
};

/// Argument of the tensor-core kernels.
template <class T, class K = T>
struct QueryJob {
  Heads<T, K> heads;
  QueryOrder order;
  float scale;  // factor of the scores, times log2(e); log2(e) alone for those of apply_rule()
  int window;   // maximum keys per query; without a window more than exist
  bool ruled;   // scores are more than scaled products: apply_rule() computes them

  [[nodiscard]] __device__ __forceinline__ int keys() const {
    return static_cast<int>(heads.keys());
  }
  [[nodiscard]] __device__ __forceinline__ int width() const {
    return static_cast<int>(heads.width());
  }
  [[nodiscard]] __device__ __forceinline__ int value_width() const {
    return static_cast<int>(heads.value_width());
  }
  /// Returns the end of the keys of one of the block's queries, before clamping: it may be negative
  /// for queries that see no key, and exceeds work.length for rows beyond the last query.
  [[nodiscard]] __device__ __forceinline__ int unclamped_end(const BlockQueries& work,
                                                             int query) const {
    return heads.causal ? query - work.queries + 1 + work.length : work.length;
  }
  /// Returns the distance from the end of a query's keys to that of the query 8 rows below.
  [[nodiscard]] __device__ __forceinline__ int later_end() const { return heads.causal ? 8 : 0; }
  /// A query sees the keys [first_key(), end_key()).
  [[nodiscard]] __device__ __forceinline__ int end_key(const BlockQueries& work, int query) const {
    return clamped(unclamped_end(work, query), 0, work.length);
  }
  [[nodiscard]] __device__ __forceinline__ int first_key(const BlockQueries& work,
                                                         int query) const {
    return max(end_key(work, query) - window, 0);
  }
  /// Returns whether any of `count` queries does not see all keys of a tile; end_of_first is the
  /// unclamped_end() of the first of these queries.
  [[nodiscard]] __device__ __forceinline__ bool needs_mask(int tile_key, int keys, int end_of_first,
                                                           int count) const {
    return tile_key + keys > end_of_first || tile_key < end_of_first + count - 1 - window;
  }

  /// Returns the queries of block `number`. If Packed is false, neither queries nor keys may be
  /// packed, and reading their offsets costs no registers.
  template <int Rows, bool Packed = true>
  [[nodiscard]] __device__ __forceinline__ BlockQueries at(int number) const {
    const int section = number / (order.tiles * order.section);
    const int first_head = section * order.section;
    const int here = min(order.section, order.heads - first_head);
    const int place = number - first_head * order.tiles;
    const int head = first_head + place % here;
    const int tile = order.tiles - 1 - place / here;
    BlockQueries work = {};
    if (!Packed || heads.query_offsets.data == nullptr) {
      const auto query_heads = static_cast<int>(heads.heads());
      work.first = tile * Rows;
      work.batch = head / query_heads;
      work.head = head % query_heads;
      work.queries = static_cast<int>(heads.queries());
    } else {
      const RowTileAt packed = row_tile_at(heads.query_offsets, heads.queries(), Rows, tile);
      const std::int64_t count = heads.query_rows(packed.element).count;
      if (packed.first >= count) return work;
      work.first = static_cast<int>(packed.first);
      work.batch = static_cast<int>(packed.element);
      work.head = head;
      work.queries = static_cast<int>(count);
    }
    if constexpr (Packed) {
      work.length = static_cast<int>(heads.key_rows(work.batch).count);
    } else {
      const bool stated = heads.key_lengths.data != nullptr;
      work.length = static_cast<int>(
          stated ? key_length(heads.key_lengths(work.batch), heads.keys()) : heads.keys());
    }
    work.first_key = first_key(work, work.first);
    work.end_key = end_key(work, min(work.first + Rows, work.queries) - 1);
    return work;
  }
};

// --- on the host ---------------------------------------------------------------------------------

constexpr std::int64_t max_tensor_width = 256;
constexpr std::int64_t max_tensor_size = std::int64_t{1} << 30;

/// Returns whether the tensor-core rungs, with blocks of `rows` queries, support the arguments.
inline Support require_tensor_cores(const Attention::Args& args, int rows) {
  if (args.q.dtype != DType::f16 && args.q.dtype != DType::bf16) {
    return unsupported("this rung multiplies f16 and bf16");
  }
  if (args.width() > max_tensor_width || args.value_width() > max_tensor_width) {
    return unsupported("D or Dv above 256");
  }
  if (!has_contiguous_rows(args.q) || !has_contiguous_rows(args.k) ||
      !has_contiguous_rows(args.v) || !has_contiguous_rows(args.o)) {
    return unsupported("rows of q, k, v and o must be contiguous");
  }
  if (args.queries() > max_tensor_size || args.keys() > max_tensor_size) {
    return unsupported("more than 2^30 queries or keys");
  }
  const double blocks =
      static_cast<double>(query_tiles(args, rows)) * static_cast<double>(args.heads());
  return blocks <= static_cast<double>(max_tensor_size) ? supported
                                                        : unsupported("more than 2^30 blocks");
}

template <class T, class K = T>
QueryJob<T, K> query_job(const Attention::Args& args, const Context& context, int rows) {
  // Reserve half of L2 for keys and values; queries and results stream through the other half.
  const double head_bytes = static_cast<double>(args.keys()) *
                            static_cast<double>(args.width() + args.value_width()) * sizeof(K);
  const double cache = static_cast<double>(context.info().l2_bytes) / 2;
  const double shared_heads = larger(1.0, smaller(cache / larger(1.0, head_bytes), 0x1p20));
  const bool packed = args.has_query_offsets();
  const std::int64_t tiles = packed ? query_tiles(args, rows) : ceil_div(args.queries(), rows);
  const std::int64_t heads = (packed ? 1 : args.batch()) * args.heads();
  const std::int64_t section = static_cast<std::int64_t>(shared_heads) * args.group();
  // k_scales differ among heads, and sinks must not be divided by one that is 0.
  const bool ruled = !args.has_plain_scores() || args.options.k_scales.data != nullptr;
  return {.heads = attention_heads<T, K>(args),
          .order = {.tiles = static_cast<int>(tiles),
                    .heads = static_cast<int>(heads),
                    .section = static_cast<int>(smaller(section, heads))},
          .scale = ruled ? 1.0F : static_cast<float>(args.options.scale * 1.4426950408889634),
          .window = static_cast<int>(args.options.window > 0 ? args.options.window
                                                             : 2 * max_tensor_size - 1),
          .ruled = ruled};
}

/// Calls f.template operator()<T, Width>() with the element type and the padded row width.
template <class F>
auto with_width(const Attention::Args& args, F&& f) {
  const std::int64_t width = larger(args.width(), args.value_width());
  return visit<f16, bf16>(args.q.dtype, [&]<class T>() {
    if (width <= 64) return f.template operator()<T, 64>();
    if (width <= 128) return f.template operator()<T, 128>();
    return f.template operator()<T, 256>();
  });
}

}  // namespace rung::attention_cuda::inline RUNG_TARGET
