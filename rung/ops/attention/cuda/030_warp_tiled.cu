// SPDX-License-Identifier: Apache-2.0
// attention / warp tiled
//
// Idea     A block of 256 threads owns 64 queries and loops over tiles of 64 keys. Each thread
//          computes a 4 x 4 tile of the scores in registers from 32-element slices of q and k in
//          shared memory; half a warp shares the rows of a tile and reduces maximum and sum by
//          shuffles. The weights pass through shared memory to the 4 x 8 register tiles of o.
// Changes  against online_tiled: 16 multiply-adds per two 4-element loads (scores) and 32 per three
//          (values), instead of one per load. D is unbounded because it is processed in slices; Dv
//          is split into pieces of 128 columns, one block each.
// Cost     2 (D + Dv) operations per score; if Dv > 128 the scores are recomputed for each piece.
// Limits   All valid arguments. Multiply-adds on CUDA cores have an eighth of the throughput of
//          tensor cores.
// Source   T. Dao, FlashAttention-2, 2023; NVIDIA CUTLASS, "Efficient GEMM", for register tiles.
#include "rung/core/integer.hpp"
#include "rung/device/block_work.hpp"
#include "rung/device/collectives.hpp"
#include "rung/ops/attention/cuda/detail/facts.hpp"
#include "rung/ops/attention/cuda/detail/heads.hpp"

namespace rung {
namespace {

using namespace attention_cuda;

constexpr int threads = 256;
constexpr int across = 16;  // threads per row of register tiles: half a warp
constexpr int patch = 4;    // queries, and keys, per thread
constexpr int rows = 64;    // queries per block
constexpr int key_tile = 64;
constexpr int slice = 32;   // columns of D per step
constexpr int values = 32;  // keys per step of v in shared memory
constexpr int piece = 128;  // columns of v per block: two groups of 4 per thread

/// Tiles in shared memory. Slices are stored by columns, so that a thread loads its 4 elements at
/// once; 4 elements of padding avoid bank conflicts on the stores.
template <class T, class K, class Sum = Accumulator<T>>
struct Tiles {
  Sum q[slice][rows + 4];
  Sum k[slice][key_tile + 4];
  Sum weight[key_tile][rows + 4];
  Sum v[values][piece];
  const K* key[key_tile];  // rows of the tile's keys and values in global memory
  const K* value[key_tile];
};

/// Work item of a block: 64 queries of one head and one piece of v's columns. `queries` is their
/// end in the batch element; 0 if a packed call has no queries left for the block.
struct Item {
  std::int64_t b, h, first_query, queries, first_column;
};
template <class T, class K>
__device__ __forceinline__ Item item_at(const Heads<T, K>& p, std::int64_t at,
                                        std::int64_t head_tiles) {
  const std::int64_t pieces = ceil_div(p.value_width(), piece);
  const std::int64_t number = at % head_tiles;
  at /= head_tiles;
  const std::int64_t column = at % pieces * piece;
  at /= pieces;
  // Start with the last queries, which see the most keys.
  if (p.query_offsets.data == nullptr) {
    return {at / p.heads(), at % p.heads(), (head_tiles - 1 - number) * rows, p.queries(), column};
  }
  const RowTileAt tile = row_tile_at(p.query_offsets, p.queries(), rows, head_tiles - 1 - number);
  const std::int64_t count = p.query_rows(tile.element).count;
  if (tile.first >= count) return {};
  return {tile.element, at, tile.first, count, column};
}

template <class Sum>
struct Patch {
  Sum at[patch];
};
template <class Sum>
__device__ __forceinline__ Patch<Sum> patch_at(const Sum* from) {
  Patch<Sum> values;
#pragma unroll
  for (int i = 0; i < patch; ++i) values.at[i] = from[i];
  return values;
}

/// Finds the rows of the keys [first, end) of a tile, wherever they are stored: two threads per
/// key. The first barrier of multiply_keys() completes them.
template <class T, class K>
__device__ __forceinline__ void find_rows(const Heads<T, K>& p, const Item& item,
                                          std::int64_t first, std::int64_t end,
                                          Tiles<T, K>& tiles) {
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t j = first + thread % key_tile;
  if (thread >= 2 * key_tile || j >= end) return;
  const std::int64_t g = item.h / p.group;
  if (thread < key_tile) {
    tiles.key[thread] = p.key(item.b, g, j).data;
  } else {
    tiles.value[thread - key_tile] = p.value(item.b, g, j).data;
  }
}

/// Computes sum[r][c] += q row . k row for the tile of keys that starts at `first`.
template <class T, class K, class Sum>
__device__ __forceinline__ void multiply_keys(const Heads<T, K>& p, const Item& item,
                                              const View<const T, 2>& queries, std::int64_t first,
                                              std::int64_t end, Tiles<T, K>& tiles,
                                              Sum (&sum)[patch][patch]) {
  const int thread = static_cast<int>(threadIdx.x);
  const int row = thread / across * patch;
  const int column = thread % across * patch;
  for (std::int64_t from = 0; from < p.width(); from += slice) {
    __syncthreads();  // wait until the previous slices have been read
    for (int at = thread; at < rows * slice; at += threads) {
      const int d = at % slice;
      const int line = at / slice;
      const bool in_row = from + d < p.width();
      const std::int64_t i = item.first_query + line;
      tiles.q[d][line] = in_row && i < item.queries ? convert<Sum>(queries(i, from + d)) : Sum(0);
      tiles.k[d][line] = in_row && first + line < end
                             ? widened<Sum>(tiles.key[line][(from + d) * p.k.strides[3]])
                             : Sum(0);
    }
    __syncthreads();  // the slices are complete
    if (item.first_query + row >= item.queries) continue;
    const int there = static_cast<int>(smaller(p.width() - from, std::int64_t{slice}));
#pragma unroll 8
    for (int d = 0; d < there; ++d) {
      const Patch<Sum> q = patch_at(&tiles.q[d][row]);
      const Patch<Sum> k = patch_at(&tiles.k[d][column]);
#pragma unroll
      for (int r = 0; r < patch; ++r) {
#pragma unroll
        for (int c = 0; c < patch; ++c) sum[r][c] += q.at[r] * k.at[c];
      }
    }
  }
}

/// Applies a rule that is more than a scale to a thread's scores of visible keys. They pass through
/// the thread's own places in tiles.weight, so that one copy of the rule's code suffices.
template <class T, class K, class Sum>
__device__ __forceinline__ void apply_rule(const Heads<T, K>& p, const Item& item,
                                           const KeyMask<std::int64_t>& mask, std::int64_t first,
                                           Tiles<T, K>& tiles, Sum (&scores)[patch][patch]) {
  const int thread = static_cast<int>(threadIdx.x);
  const int row = thread / across * patch;
  const int column = thread % across * patch;
#pragma unroll
  for (int r = 0; r < patch; ++r) {
#pragma unroll
    for (int c = 0; c < patch; ++c) tiles.weight[column + c][row + r] = scores[r][c];
  }
  const ScoreRule<Sum> rule = p.rule_of(item.b, item.h / p.group);
#pragma unroll 1
  for (int at = 0; at < patch * patch; ++at) {
    const std::int64_t i = item.first_query + row + at / patch;
    const std::int64_t j = first + column + at % patch;
    if (i >= item.queries || !mask.sees(i, j)) continue;
    Sum& score = tiles.weight[column + at % patch][row + at / patch];
    score = rule(score, item.b, item.h, i, j, mask.diagonal(i));
  }
#pragma unroll
  for (int r = 0; r < patch; ++r) {
#pragma unroll
    for (int c = 0; c < patch; ++c) scores[r][c] = tiles.weight[column + c][row + r];
  }
}

/// Computes o[r][c] += weight row . v column. If `masked`, some queries do not see all keys of the
/// tile; their hidden keys are skipped, not multiplied by 0, because v may be NaN.
template <bool masked, class T, class K, class Sum>
__device__ __forceinline__ void multiply_values(const Heads<T, K>& p, const Item& item,
                                                std::int64_t first, std::int64_t end,
                                                const std::int64_t (&first_key)[patch],
                                                const std::int64_t (&end_key)[patch],
                                                Tiles<T, K>& tiles, Sum (&o)[patch][2 * patch]) {
  const int thread = static_cast<int>(threadIdx.x);
  const int row = thread / across * patch;
  const int column = thread % across * patch;
  const int keys = static_cast<int>(smaller(end - first, std::int64_t{key_tile}));
  for (int from = 0; from < keys; from += values) {
    __syncthreads();  // weights complete; previous values read
    for (int at = thread; at < values * piece; at += threads) {
      const int line = from + at / piece;
      const std::int64_t c = item.first_column + at % piece;
      tiles.v[at / piece][at % piece] = first + line < end && c < p.value_width()
                                            ? widened<Sum>(tiles.value[line][c * p.v.strides[3]])
                                            : Sum(0);
    }
    __syncthreads();  // the values are complete
    if (item.first_query + row >= item.queries) continue;
    const int there = smaller(keys - from, values);
#pragma unroll 4
    for (int j = 0; j < there; ++j) {
      const Patch<Sum> weight = patch_at(&tiles.weight[from + j][row]);
      const Patch<Sum> left = patch_at(&tiles.v[j][column]);
      const Patch<Sum> right = patch_at(&tiles.v[j][piece / 2 + column]);
#pragma unroll
      for (int r = 0; r < patch; ++r) {
        const std::int64_t key = first + from + j;
        if (masked && (key < first_key[r] || key >= end_key[r])) continue;
#pragma unroll
        for (int c = 0; c < patch; ++c) {
          o[r][c] += weight.at[r] * left.at[c];
          o[r][patch + c] += weight.at[r] * right.at[c];
        }
      }
    }
  }
}

template <class T, class K>
__global__ void __launch_bounds__(threads)
    attention_warp_tiled(Heads<T, K> p, std::int64_t head_tiles, std::int64_t items) {
  using Sum = Accumulator<T>;
  Tiles<T, K>& tiles = shared<Tiles<T, K>>();
  const int thread = static_cast<int>(threadIdx.x);
  const int row = thread / across * patch;
  const int column = thread % across * patch;
  const auto greater = [](Sum a, Sum b) { return a < b ? b : a; };  // drops a NaN; the sum keeps it
  const auto plus = [](Sum a, Sum b) { return a + b; };
  const bool plain = p.rule.is_plain();
  for (std::int64_t at = blockIdx.x; at < items; at += gridDim.x) {
    const Item item = item_at(p, at, head_tiles);
    if (item.queries == 0) continue;
    const std::int64_t g = item.h / p.group;
    const Sum scale = plain ? p.rule_of(item.b, g).scale : Sum(1);
    const std::int64_t end = smaller(item.first_query + rows, item.queries);
    const auto mask = p.mask(item.b);
    const View<const T, 2> queries = p.q_of(item.b).at(item.h);
    const std::int64_t end_of_first = mask.end_key(item.first_query);
    const std::int64_t first_of_last = mask.first_key(end - 1);
    const std::int64_t end_of_last = mask.end_key(end - 1);
    std::int64_t first_key[patch];  // row r sees keys [first_key[r], end_key[r])
    std::int64_t end_key[patch];
    Sum maximum[patch];
    Sum sum[patch];
    Sum o[patch][2 * patch] = {};
#pragma unroll
    for (int r = 0; r < patch; ++r) {
      const std::int64_t i = item.first_query + row + r;
      first_key[r] = mask.first_key(i);
      end_key[r] = i < end ? mask.end_key(i) : 0;
      maximum[r] = no_maximum<Sum>;
      sum[r] = 0;  // over this thread's keys
    }
    for (std::int64_t first = mask.first_key(item.first_query); first < end_of_last;
         first += key_tile) {
      Sum scores[patch][patch] = {};
      find_rows(p, item, first, end_of_last, tiles);
      multiply_keys(p, item, queries, first, end_of_last, tiles, scores);
      if (!plain) apply_rule(p, item, mask, first, tiles, scores);
#pragma unroll
      for (int r = 0; r < patch; ++r) {
        Sum larger = maximum[r];
#pragma unroll
        for (int c = 0; c < patch; ++c) {
          Sum& score = scores[r][c];
          const std::int64_t key = first + column + c;
          score = key >= first_key[r] && key < end_key[r] ? scale * score
                                                          : -std::numeric_limits<Sum>::infinity();
          larger = greater(larger, score);
        }
        larger = lanes_reduce(larger, greater, across);
        const Sum rescale = power(maximum[r] - larger);
        maximum[r] = larger;
        sum[r] *= rescale;
#pragma unroll
        for (int c = 0; c < 2 * patch; ++c) o[r][c] *= rescale;
#pragma unroll
        for (int c = 0; c < patch; ++c) {
          const Sum weight = power(scores[r][c] - larger);
          sum[r] += weight;
          tiles.weight[column + c][row + r] = weight;
        }
      }
      // The first query sees the fewest keys at the tile's end, the last one at its beginning.
      if (first + key_tile > end_of_first || first < first_of_last ||
          end - item.first_query < rows) {
        multiply_values<true>(p, item, first, end_of_last, first_key, end_key, tiles, o);
      } else {
        multiply_values<false>(p, item, first, end_of_last, first_key, end_key, tiles, o);
      }
    }
    const View<T, 2> results = p.o_of(item.b).at(item.h);
#pragma unroll
    for (int r = 0; r < patch; ++r) {
      Sum whole = lanes_reduce(sum[r], plus, across);
      const std::int64_t i = item.first_query + row + r;
      if (i >= end) continue;
      const Sum factor = add_sink(p, item.h, maximum[r], whole) * p.value_scale(item.b, g);
#pragma unroll
      for (int c = 0; c < 2 * patch; ++c) {
        const std::int64_t to = item.first_column + c / patch * (piece / 2) + column + c % patch;
        if (to >= p.value_width()) continue;
        results(i, to) = convert<T>(o[r][c] * factor * reciprocal(whole));
      }
      if (column == 0 && item.first_column == 0) {
        p.write_lse(item.b, item.h, i, log_sum(maximum[r], whole));
      }
    }
  }
}

Support supports(const Attention::Args&, const Context&) { return supported; }

Work work(const Attention::Args& args, const Context&) {
  // Each block handles one piece of V's columns and computes the scores of all keys for it.
  const auto width = static_cast<int>(args.width() + piece) / 2;
  Work work = query_work(args, rows, key_tile, width, 2);
  const std::int64_t pieces = ceil_div(args.value_width(), piece);
  work.blocks = work.blocks * pieces;
  work.operations = work.operations * pieces;
  work.path = type_path(args.q.dtype);
  return work;
}

void run(const Attention::Args& args, Context& context) {
  constexpr std::int64_t max_blocks = 0x7fffffff;
  // Tiles of queries of one head: of one batch element, or of all if they are packed.
  const bool packed = args.has_query_offsets();
  const std::int64_t head_tiles =
      packed ? query_tiles(args, rows) : ceil_div(args.queries(), std::int64_t{rows});
  const std::int64_t items =
      head_tiles * ceil_div(args.value_width(), piece) * args.heads() * (packed ? 1 : args.batch());
  visit_types(args, [&]<class T, class K>() {
    launch(
        context,
        {.grid = smaller(items, max_blocks), .block = threads, .shared_bytes = sizeof(Tiles<T, K>)},
        attention_warp_tiled<T, K>, attention_heads<T, K>(args), head_tiles, items);
  });
}

const Rung<Attention> self{{.name = "warp_tiled",
                            .step = 30,
                            .after = "online_tiled",
                            .backend = device_backend,
                            .supports = supports,
                            .work = work,
                            .run = run}};

}  // namespace
}  // namespace rung
