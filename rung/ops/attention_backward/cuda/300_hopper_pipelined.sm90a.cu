// SPDX-License-Identifier: Apache-2.0
// attention_backward / hopper pipelined
//
// Idea     Warp specialization in both kernels: a producer warp issues TMA loads, and two consumer
//          warpgroups of 64 keys (or 64 queries) each issue wgmma. A consumer issues S and dP of
//          the next tile behind the last product of the current one; P is computed while dP is
//          multiplied, and dS while dv is.
// Changes  against tensor_cores: one instruction multiplies 64 rows instead of 16, all tiles bypass
//          registers, and consumers spend no instructions on copies. Blocks are persistent, and
//          their two warpgroups are not synchronized: one stores its gradients while the other
//          multiplies.
// Cost     Seven products per pair, as in tensor_cores. Q and dout are read once per 128 keys, K
//          and V once per 128 queries, from L2 if a section of heads fits there. Beside the
//          products, each pair takes two exponentials and three conversions to 16 bits; with a soft
//          cap, four more operations of the special function units.
// Limits   f16 and bf16, D and Dv up to 128 and multiples of 8. Slopes, bias and rows that TMA
//          cannot address are left to tensor_cores.
// Source   Shah et al. 2024, FlashAttention-3; PTX ISA, "Asynchronous warpgroup level matrix
//          instructions".
#include "rung/device/block_work.hpp"
#include "rung/device/launch.hpp"
#include "rung/device/ptx/bulk_copy.hpp"
#include "rung/device/ptx/hopper.hpp"
#include "rung/device/shared.hpp"
#include "rung/device/stage_ring.hpp"
#include "rung/device/tile/accumulator.hpp"
#include "rung/device/tile/panel_tile.hpp"
#include "rung/ops/attention_backward/cuda/detail/row_sums.hpp"
#include "rung/ops/attention_backward/cuda/detail/tensor_cores.hpp"

namespace rung {
namespace {

using namespace attention_backward_cuda;

constexpr int hopper_group = 128;      // threads per warpgroup
constexpr int hopper_group_rows = 64;  // the M of a wgmma
constexpr int hopper_groups = 2;       // consumer warpgroups
constexpr int hopper_consumers = hopper_groups * hopper_group;
constexpr int hopper_threads = hopper_consumers + hopper_group;
constexpr int hopper_rows = hopper_groups * hopper_group_rows;  // keys, or queries, per block
// All threads claim 63 Ki of the SM's 64 Ki registers.
constexpr int producer_registers = 24;
constexpr int consumer_registers = 240;

/// Queries per tile, and stages of Q and of dout, of the kernel with keys in the outer loop. A
/// consumer holds Width / 2 sums of each of dk and dv, query_step / 2 values of each of S and dP,
/// and query_step / 4 registers of P or dS.
template <int Width>
constexpr int query_step = Width == 64 ? 96 : 64;
constexpr int query_stages = 3;
/// Keys per tile, and stages of K and of V, of the kernel with queries in the outer loop. A
/// consumer holds Width / 2 sums of dq, key_step / 2 values of each of S and dP, and key_step / 4
/// registers of dS.
template <int Width>
constexpr int key_step = Width == 64 ? 128 : 96;
constexpr int key_stages = 3;

/// Order of the blocks. Heads are grouped in sections whose streamed tiles stay in L2; within a
/// section, tiles are in the outer loop and heads in the inner one.
struct BlockOrder {
  int tiles;    // per head; of packed rows count_row_tiles() over all batch elements
  int heads;    // in the whole batch; of one batch element if rows are packed
  int section;  // heads per section

  struct Place {
    int tile, head;
  };
  [[nodiscard]] RUNG_HD int total() const { return tiles * heads; }
  [[nodiscard]] __device__ __forceinline__ Place at(int number) const {
    const int first_head = number / (tiles * section) * section;
    const int here = min(section, heads - first_head);
    const int place = number - first_head * tiles;
    return {place / here, first_head + place % here};
  }
  /// Returns what the block of tile `number` processes next; the first is its block index. Every
  /// other turn runs through the blocks in reverse, so that none gets the longest tiles.
  [[nodiscard]] static __device__ __forceinline__ int next(int number) {
    const auto blocks = static_cast<int>(gridDim.x);
    return (number / blocks + 2) * blocks - 1 - number % blocks;
  }
  /// Returns the turn in which it does so, as the place in a ring of one stage.
  [[nodiscard]] static __device__ __forceinline__ RingPlace<1> turn(int number) {
    return {0, static_cast<unsigned>(number) / gridDim.x % 2};
  }
};

/// Arguments of one of the kernels. The boxes of the loads' maps are tiles of that kernel.
template <class T>
struct HopperBackwardJob {
  Gradients<T> call;
  RowSums<float> rows;
  float exponent_scale;  // products to exponents of 2: scale log2(e)
  // With a soft cap c, exponents are cap_scale tanh(x), and e^(2 x) is 2^(cap_factor product).
  float cap_factor;  // 2 scale log2(e) / c
  float cap_scale;   // c log2(e)
  BlockOrder order;
  TensorMap q, k, v, dout;
  TensorMap dq, dk, dv;
};

template <class T, int Width>
struct HopperKeysLayout {
  using Keys = PanelTile<T, hopper_group_rows, Width>;  // reused for dk and dv
  using Queries = PanelTile<T, query_step<Width>, Width>;
  alignas(1024) unsigned char k[hopper_groups][Keys::bytes];
  alignas(1024) unsigned char v[hopper_groups][Keys::bytes];
  alignas(1024) unsigned char q[query_stages][Queries::bytes];
  alignas(1024) unsigned char dout[query_stages][Queries::bytes];
  alignas(16) float lse[query_stages][query_step<Width>];      // in the stages of q
  alignas(16) float row_sum[query_stages][query_step<Width>];  // in the stages of dout
  StageRing<1> ring_keys[hopper_groups];
  StageRing<query_stages> ring_q, ring_dout;
};

template <class T, int Width>
struct HopperQueriesLayout {
  using Queries = PanelTile<T, hopper_group_rows, Width>;  // that of q is reused for dq
  using Keys = PanelTile<T, key_step<Width>, Width>;
  alignas(1024) unsigned char q[hopper_groups][Queries::bytes];
  alignas(1024) unsigned char dout[hopper_groups][Queries::bytes];
  alignas(1024) unsigned char k[key_stages][Keys::bytes];
  alignas(1024) unsigned char v[key_stages][Keys::bytes];
  StageRing<1> ring_queries[hopper_groups];
  StageRing<key_stages> ring_k, ring_v;
};

/// Rows of a batch element: `count` rows from row `first` on at index `batch` of the first axis.
struct ElementRows {
  int batch, first, count;
};
template <bool Packed>
__device__ __forceinline__ ElementRows element_rows(const View<const std::int32_t, 1>& offsets,
                                                    int element, std::int64_t total) {
  if (!Packed || offsets.data == nullptr) return {element, 0, static_cast<int>(total)};
  const RowRange rows = packed_rows(offsets, element, total);
  return {0, static_cast<int>(rows.first), static_cast<int>(rows.count)};
}

/// Keys of a block in one turn of the kernel with keys in the outer loop, and the queries that see
/// them. Packed: queries or keys are packed. Then `first` may be past the element's last row: such
/// a turn has no tiles and stores nothing.
struct KeysTurn {
  int batch, kv_head, first;
  KeyMask<int> mask;
  int first_query, end_query;
  int tiles;  // of queries, per head
};
template <int Width, bool Packed, class T>
__device__ __forceinline__ KeysTurn keys_turn(const HopperBackwardJob<T>& job, int number) {
  const Gradients<T>& call = job.call;
  // Start with the first keys, which most queries see under a causal mask.
  const BlockOrder::Place place = job.order.at(number);
  KeysTurn turn;
  if constexpr (Packed) {
    const RowTileAt at = row_tile_at(call.key_offsets, call.keys(), hopper_rows, place.tile);
    turn.batch = static_cast<int>(at.element);
    turn.kv_head = place.head;
    turn.first = static_cast<int>(at.first);
  } else {
    const auto kv_heads = static_cast<int>(call.kv_heads());
    turn.batch = place.head / kv_heads;
    turn.kv_head = place.head % kv_heads;
    turn.first = place.tile * hopper_rows;
  }
  turn.mask = call.template mask<int>(turn.batch);
  const int first_query = turn.mask.first_query(turn.first);
  turn.end_query = turn.mask.end_query(min(turn.first + hopper_rows, turn.mask.length) - 1);
  turn.first_query = first_query;
  if (first_query < turn.end_query) {
    turn.first_query -= (first_query - turn.mask.first_query(0)) % sum_group;
  }
  turn.tiles = ceil_div(max(turn.end_query - turn.first_query, 0), query_step<Width>);
  return turn;
}

/// Queries of a block in one turn of the kernel with queries in the outer loop, and the keys that
/// they see.
struct QueriesTurn {
  int batch, head, first;
  KeyMask<int> mask;
  int first_key;
  int tiles;  // of keys
};
template <int Width, bool Packed, class T>
__device__ __forceinline__ QueriesTurn queries_turn(const HopperBackwardJob<T>& job, int number) {
  const Gradients<T>& call = job.call;
  // Start with the last queries, which see the most keys under a causal mask.
  const BlockOrder::Place place = job.order.at(number);
  const int tile = job.order.tiles - 1 - place.tile;
  QueriesTurn turn;
  if constexpr (Packed) {
    const RowTileAt at = row_tile_at(call.query_offsets, call.queries(), hopper_rows, tile);
    turn.batch = static_cast<int>(at.element);
    turn.head = place.head;
    turn.first = static_cast<int>(at.first);
  } else {
    const auto heads = static_cast<int>(call.heads());
    turn.batch = place.head / heads;
    turn.head = place.head % heads;
    turn.first = tile * hopper_rows;
  }
  turn.mask = call.template mask<int>(turn.batch);
  turn.first_key = turn.mask.first_key(turn.first);
  const int last = min(turn.first + hopper_rows, turn.mask.queries) - 1;
  const int end_key = turn.first <= last ? turn.mask.end_key(last) : 0;
  turn.tiles = ceil_div(max(end_key - turn.first_key, 0), key_step<Width>);
  return turn;
}

/// Issues product = left right^T for the 64 rows of `left` and all rows of `right`.
template <class T, class Left, class Right, int Width, int Registers>
__device__ __forceinline__ void issue_by_rows(float (&product)[Registers],
                                              const unsigned char* left,
                                              const unsigned char* right) {
  ptx::wgmma_fence(product);
#pragma unroll
  for (int step = 0; step < Width / 16; ++step) {
    ptx::wgmma<T>(product, Left::along_columns(left, 0, step), Right::along_columns(right, 0, step),
                  step > 0);
  }
  ptx::wgmma_commit();
}

/// Issues sums += weights tile, with 64 rows of weights in registers.
template <class T, class Tile, int Registers, int Steps>
__device__ __forceinline__ void issue_by_columns(float (&sums)[Registers],
                                                 std::uint32_t (&weights)[Steps][4],
                                                 const unsigned char* tile) {
  ptx::wgmma_fence(weights);
  ptx::wgmma_fence(sums);
#pragma unroll
  for (int step = 0; step < Steps; ++step) {
    ptx::wgmma<T, T, ptx::WgmmaOptions{.b = ptx::Major::mn}>(sums, weights[step],
                                                             Tile::along_rows(tile, step), true);
  }
  ptx::wgmma_commit();
}

/// Returns the weight P of a query and a key from their product, which it replaces by P times the
/// derivative of the soft cap: dS is this factor times dP - row sum.
template <bool Capped, class T>
__device__ __forceinline__ float weigh(float& product, const HopperBackwardJob<T>& job, float lse) {
  if constexpr (!Capped) {
    product = ptx::fast_exp2(fmaf(product, job.exponent_scale, -lse));
    return product;
  }
  // tanh(x) = 1 - 2 / (1 + e^(2 x)): an absolute error of a few units in the last place of 1.
  const float inverse = ptx::fast_reciprocal(1 + ptx::fast_exp2(product * job.cap_factor));
  const float share = fmaf(-2.0F, inverse, 1.0F);
  const float weight = ptx::fast_exp2(fmaf(share, job.cap_scale, -lse));
  product = weight * fmaf(-share, share, 1.0F);
  return weight;
}

/// Returns whether a lane's accumulator i is of a visible pair. Its columns are numbered from
/// `first` on, and `count` of them from `begin` on belong to each of the lane's two rows.
__device__ __forceinline__ bool is_seen(int first, const int (&begin)[2],
                                        const unsigned (&count)[2], int i) {
  const int row = accumulator_row(i);
  return static_cast<unsigned>(first + accumulator_column(i) - begin[row]) < count[row];
}

/// Zero dS, or P as an operand, of hidden pairs. These may be NaN: they are computed from keys and
/// queries without effect, and from numbers past the last row sum.
template <int Registers>
__device__ __forceinline__ void hide(float (&ds)[Registers], int first, const int (&begin)[2],
                                     const unsigned (&count)[2]) {
#pragma unroll
  for (int i = 0; i < Registers; ++i) ds[i] = is_seen(first, begin, count, i) ? ds[i] : 0.0F;
}
template <int Steps>
__device__ __forceinline__ void hide(std::uint32_t (&p)[Steps][4], int first, const int (&begin)[2],
                                     const unsigned (&count)[2]) {
#pragma unroll
  for (int i = 0; i < 8 * Steps; i += 2) {
    const std::uint32_t low = is_seen(first, begin, count, i) ? 0xffffU : 0;
    const std::uint32_t high = is_seen(first, begin, count, i + 1) ? 0xffff0000U : 0;
    p[i / 8][i % 8 / 2] &= low | high;
  }
}

/// Returns `value` by a shuffle, which the compiler does not move: values derived from the result
/// take no registers in loops before or around it.
__device__ __forceinline__ int derived_here(int value) { return shuffle(value, lane_of_thread()); }
__device__ __forceinline__ int thread_here() { return derived_here(static_cast<int>(threadIdx.x)); }

/// Stores a warp's 16 rows of a gradient, times `factor`. The warpgroup's 64 rows begin at row
/// `group_first` of a head of a batch element. They pass through `tile` in shared memory, from
/// where TMA stores those that exist. Lane 0 must wait for the stores (bulk_wait_read) before the
/// tile is reused.
template <class T, class Tile, int Width, bool Packed>
__device__ __forceinline__ void store_rows(const TensorMap& map, const View<T, 4>& to,
                                           const ElementRows& element, int head, int group_first,
                                           float factor, unsigned char* tile,
                                           const float (&sums)[Width / 2]) {
  const int thread = thread_here();
  const int lane = thread % 32;
  const int row = thread % hopper_group / 32 * 16;
  // Lane 8 i + r of a stmatrix supplies the address of row r of its 8 x 8 matrix i: matrices 0 and
  // 1 are stacked vertically, 2 and 3 are to their right.
  const int first = group_first + row;
  if (first >= element.count) return;
#pragma unroll
  for (int block = 0; block < Width / 16; ++block) {
    std::uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      words[i] =
          pack_halves<T>(factor * sums[8 * block + 2 * i], factor * sums[8 * block + 2 * i + 1]);
    }
    ptx::store_matrix<4>(tile + Tile::place(row + lane % 16, 16 * block + lane / 16 * 8), words);
  }
  if (Packed && first + 16 > element.count) {
    // The rows below the last one in the tensor map are those of the next batch element.
    __syncwarp();
    const View<T, 2> rows = to.at(element.batch).at(head);
    for (int at = 0; at < element.count - first; ++at) {
      for (int column = lane; column < rows.shape[1]; column += 32) {
        rows(element.first + first + at, column) =
            *reinterpret_cast<const T*>(tile + Tile::place(row + at, column));
      }
    }
    // The tile's next copies come after these accesses of all lanes.
    ptx::fence_async_proxy();
    __syncwarp();
    return;
  }
  ptx::fence_async_proxy();
  __syncwarp();
  if (lane != 0) return;
#pragma unroll
  for (int column = 0; column < Width; column += Tile::panel_columns) {
    if (column < to.shape[3]) {
      ptx::tensor_store(map, {element.batch, head, element.first + first, column},
                        tile + Tile::place(row, column));
    }
  }
  ptx::bulk_commit();
}

/// Coordinates of a block's first row in the tensor maps.
struct FirstRow {
  int batch, head, row;
};

/// Loads the tiles of two operands that stay in shared memory during a turn, for all turns of this
/// block and for one warpgroup after the other. `first_row(number)` returns where a turn's tiles
/// begin.
template <class Tile, class FirstRowOf>
__device__ __forceinline__ void load_resident(int total, StageRing<1> (&rings)[hopper_groups],
                                              const TensorMap& map,
                                              unsigned char (&tiles)[hopper_groups][Tile::bytes],
                                              const TensorMap& second_map,
                                              unsigned char (&second)[hopper_groups][Tile::bytes],
                                              const FirstRowOf& first_row) {
  for (int number = static_cast<int>(blockIdx.x); number < total;
       number = BlockOrder::next(number)) {
    const FirstRow at = first_row(number);
#pragma unroll
    for (int group = 0; group < hopper_groups; ++group) {
      auto& ring = rings[group];
      const int row = at.row + group * hopper_group_rows;
      ring.await_empty(BlockOrder::turn(number));
      ring.expect(BlockOrder::turn(number), 2 * Tile::bytes);
      Tile::load(tiles[group], map, at.batch, at.head, row, ring.full[0]);
      Tile::load(second[group], second_map, at.batch, at.head, row, ring.full[0]);
    }
  }
}

/// Capped: scores have a soft cap. Packed: queries or keys are packed.
template <class T, int Width, bool Capped, bool Packed>
__global__ void __launch_bounds__(hopper_threads, 1)
    attention_backward_hopper_keys(const __grid_constant__ HopperBackwardJob<T> job) {
  constexpr int step = query_step<Width>;
  using Layout = HopperKeysLayout<T, Width>;
  using Keys = typename Layout::Keys;
  using Queries = typename Layout::Queries;
  auto& layout = shared<Layout>();
  const Gradients<T>& call = job.call;
  const int total = job.order.total();
  if (threadIdx.x == 0) {
    for (auto& ring : layout.ring_keys) ring.init(hopper_group / 32);
    layout.ring_q.init(hopper_consumers / 32);
    layout.ring_dout.init(hopper_consumers / 32);
  }
  __syncthreads();

  RingPlace<query_stages> at;
  if (threadIdx.x < hopper_group) {
    ptx::release_registers<producer_registers>();
    if (threadIdx.x == 32) {
      load_resident<Keys>(
          total, layout.ring_keys, job.k, layout.k, job.v, layout.v, [&](int number) -> FirstRow {
            const KeysTurn turn = keys_turn<Width, Packed>(job, number);
            const auto keys = element_rows<Packed>(call.key_offsets, turn.batch, call.keys());
            return {keys.batch, turn.kv_head, keys.first + turn.first};
          });
    }
    // Q with lse, and dout with the row sums, are loaded by one thread each: registers are few.
    const auto stream = [&](auto& ring, auto& tiles, auto& tile_sums, const TensorMap& map,
                            const float* row_sums) {
      for (int number = static_cast<int>(blockIdx.x); number < total;
           number = BlockOrder::next(number)) {
        const KeysTurn turn = keys_turn<Width, Packed>(job, number);
        const auto queries = element_rows<Packed>(call.query_offsets, turn.batch, call.queries());
        const int first_head = turn.kv_head * call.group;
        for (int head = first_head; head < first_head + call.group; ++head) {
          const auto sums = static_cast<int>(first_sum(call, turn.mask, turn.batch, head));
          for (int query = turn.first_query; query < turn.end_query; query += step, at.advance()) {
            ring.await_empty(at);
            ring.expect(at, sizeof(tiles[0]) + sizeof(tile_sums[0]));
            Queries::load(tiles[at.stage], map, queries.batch, head, queries.first + query,
                          ring.full[at.stage]);
            ptx::bulk_load(tile_sums[at.stage], row_sums + (sums + query), sizeof(tile_sums[0]),
                           ring.full[at.stage]);
          }
        }
      }
    };
    if (threadIdx.x == 0) stream(layout.ring_q, layout.q, layout.lse, job.q, job.rows.lse);
    if (threadIdx.x == 64) {
      stream(layout.ring_dout, layout.dout, layout.row_sum, job.dout, job.rows.sum);
    }
    return;
  }

  ptx::claim_registers<consumer_registers>();
  for (int number = static_cast<int>(blockIdx.x); number < total;
       number = BlockOrder::next(number)) {
    const int thread = thread_here() - hopper_group;
    const int group = thread / hopper_group;
    const int warp_row = thread % hopper_group / 32 * 16;  // within the warpgroup's rows
    const bool leads = thread % 32 == 0;
    const KeysTurn turn = keys_turn<Width, Packed>(job, number);
    const KeyMask<int>& mask = turn.mask;
    const int first = turn.first + group * hopper_group_rows;
    const int rounds = turn.tiles * call.group;
    // `count` queries from `begin` on see each of this thread's two keys.
    int begin[2];
    unsigned count[2];
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int key = first + warp_row + thread % 32 / 4 + 8 * j;
      begin[j] = mask.first_query(key);
      count[j] = static_cast<unsigned>(mask.end_query(key) - begin[j]);
    }
    // Queries between these see all keys of the warpgroup.
    const int last_begin = mask.first_query(first + hopper_group_rows - 1);
    const int first_end = mask.end_query(first);

    float dk[Width / 2] = {};
    float dv[Width / 2] = {};
    float p[step / 2];
    float ds[step / 2];
    std::uint32_t p_operand[step / 16][4];
    std::uint32_t ds_operand[step / 16][4];
    int query = turn.first_query;
    int previous = 0;  // stage of the previous tile
    layout.ring_keys[group].await_full(BlockOrder::turn(number));
    for (int round = 0; round < rounds; ++round) {
      // S^T and dP^T are multiplied behind dk of the previous tile.
      layout.ring_q.await_full(at);
      if (Packed && query + step > mask.queries) {
        // Rows of the next batch element may hold NaN, and 0 * NaN is NaN.
        const int rows = mask.queries - query;
        layout.ring_dout.await_full(at);
        Queries::clear_rows(layout.q[at.stage], rows, thread, hopper_consumers);
        Queries::clear_rows(layout.dout[at.stage], rows, thread, hopper_consumers);
        ptx::fence_async_proxy();
        ptx::barrier_sync(3, hopper_consumers);
      }
      issue_by_rows<T, Keys, Queries, Width>(p, layout.k[group], layout.q[at.stage]);
      layout.ring_dout.await_full(at);
      issue_by_rows<T, Keys, Queries, Width>(ds, layout.v[group], layout.dout[at.stage]);
      ptx::wgmma_wait<2>(dk);
      if (leads && round > 0) layout.ring_q.release(previous);
      const float* const lse = layout.lse[at.stage];
      const float* const row_sum = layout.row_sum[at.stage];
      const bool masked = query < last_begin || query + step > first_end;
      ptx::wgmma_wait<1>(p);
#pragma unroll
      for (int i = 0; i < step / 2; i += 2) {
        const float* const pair_lse = lse + accumulator_column(i);
        const float weight = weigh<Capped>(p[i], job, pair_lse[0]);
        const float next_weight = weigh<Capped>(p[i + 1], job, pair_lse[1]);
        p_operand[i / 8][i % 8 / 2] = pack_halves<T>(weight, next_weight);
      }
      if (masked) hide(p_operand, query, begin, count);
      issue_by_columns<T, Queries>(dv, p_operand, layout.dout[at.stage]);

      ptx::wgmma_wait<1>(ds);
#pragma unroll
      for (int i = 0; i < step / 2; ++i) {
        ds[i] = p[i] * (ds[i] - row_sum[accumulator_column(i)]);
      }
      if (masked) hide(ds, query, begin, count);
      ptx::wgmma_wait<0>(dv);  // frees the registers of P for dS
      __syncwarp();            // all lanes have read lse and row_sum
      if (leads) layout.ring_dout.release(at.stage);
      to_operand<T>(ds, ds_operand);
      issue_by_columns<T, Queries>(dk, ds_operand, layout.q[at.stage]);
      previous = at.stage;
      at.advance();
      query += step;
      if (query >= turn.end_query) query = turn.first_query;  // the group's next head
    }
    ptx::wgmma_wait<0>(dk);
    if (leads && rounds > 0) layout.ring_q.release(previous);

    ptx::barrier_sync(1 + group, hopper_group);  // all warps of this warpgroup have read K and V
    const KeysTurn done = keys_turn<Width, Packed>(job, derived_here(number));
    const int stored = done.first + group * hopper_group_rows;
    const auto keys = element_rows<Packed>(call.key_offsets, done.batch, call.keys());
    store_rows<T, Keys, Width, Packed>(job.dk, call.dk, keys, done.kv_head, stored, call.rule.scale,
                                       layout.k[group], dk);
    store_rows<T, Keys, Width, Packed>(job.dv, call.dv, keys, done.kv_head, stored, 1.0F,
                                       layout.v[group], dv);
    if (leads) {
      ptx::bulk_wait_read<0>();
      layout.ring_keys[group].release(0);
    }
  }
}

/// Capped: scores have a soft cap. Packed: queries or keys are packed.
template <class T, int Width, bool Capped, bool Packed>
__global__ void __launch_bounds__(hopper_threads, 1)
    attention_backward_hopper_queries(const __grid_constant__ HopperBackwardJob<T> job) {
  constexpr int step = key_step<Width>;
  using Layout = HopperQueriesLayout<T, Width>;
  using Queries = typename Layout::Queries;
  using Keys = typename Layout::Keys;
  auto& layout = shared<Layout>();
  const Gradients<T>& call = job.call;
  const int total = job.order.total();
  if (threadIdx.x == 0) {
    for (auto& ring : layout.ring_queries) ring.init(hopper_group / 32);
    layout.ring_k.init(hopper_consumers / 32);
    layout.ring_v.init(hopper_consumers / 32);
  }
  __syncthreads();

  RingPlace<key_stages> at;
  if (threadIdx.x < hopper_group) {
    ptx::release_registers<producer_registers>();
    if (threadIdx.x == 32) {
      load_resident<Queries>(total, layout.ring_queries, job.q, layout.q, job.dout, layout.dout,
                             [&](int number) -> FirstRow {
                               const QueriesTurn turn = queries_turn<Width, Packed>(job, number);
                               const auto queries = element_rows<Packed>(
                                   call.query_offsets, turn.batch, call.queries());
                               return {queries.batch, turn.head, queries.first + turn.first};
                             });
    }
    if (threadIdx.x != 0) return;
    for (int number = static_cast<int>(blockIdx.x); number < total;
         number = BlockOrder::next(number)) {
      const QueriesTurn turn = queries_turn<Width, Packed>(job, number);
      const auto keys = element_rows<Packed>(call.key_offsets, turn.batch, call.keys());
      const int kv_head = turn.head / call.group;
      for (int tile = 0; tile < turn.tiles; ++tile, at.advance()) {
        const int key = keys.first + turn.first_key + tile * step;
        layout.ring_k.await_empty(at);
        layout.ring_k.expect(at, Keys::bytes);
        Keys::load(layout.k[at.stage], job.k, keys.batch, kv_head, key,
                   layout.ring_k.full[at.stage]);
        layout.ring_v.await_empty(at);
        layout.ring_v.expect(at, Keys::bytes);
        Keys::load(layout.v[at.stage], job.v, keys.batch, kv_head, key,
                   layout.ring_v.full[at.stage]);
      }
    }
    return;
  }

  ptx::claim_registers<consumer_registers>();
  for (int number = static_cast<int>(blockIdx.x); number < total;
       number = BlockOrder::next(number)) {
    const int thread = thread_here() - hopper_group;
    const int group = thread / hopper_group;
    const int warp_row = thread % hopper_group / 32 * 16;  // within the warpgroup's rows
    const bool leads = thread % 32 == 0;
    const QueriesTurn turn = queries_turn<Width, Packed>(job, number);
    const KeyMask<int>& mask = turn.mask;
    const int first = turn.first + group * hopper_group_rows;
    const int tiles = turn.tiles;
    // Each of this thread's two queries sees `count` keys from `begin` on.
    int begin[2];
    unsigned count[2];
    float lse[2];
    float row_sum[2];
    const auto sums = static_cast<int>(first_sum(call, mask, turn.batch, turn.head));
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int query = first + warp_row + thread % 32 / 4 + 8 * j;
      begin[j] = mask.first_key(query);
      count[j] = static_cast<unsigned>(mask.end_key(query) - begin[j]);
      const bool exists = query < mask.queries;
      lse[j] = exists ? job.rows.lse[sums + query] : 0.0F;
      row_sum[j] = exists ? job.rows.sum[sums + query] : 0.0F;
    }
    // All queries of the warpgroup see the keys between these.
    const int last_begin = mask.first_key(first + hopper_group_rows - 1);
    const int first_end = mask.end_key(first);

    float dq[Width / 2] = {};
    float p[step / 2];
    float ds[step / 2];
    std::uint32_t ds_operand[step / 16][4];
    layout.ring_queries[group].await_full(BlockOrder::turn(number));
    int key = turn.first_key;
    int previous = 0;  // stage of the previous tile
    for (int tile = 0; tile < tiles; ++tile) {
      // S and dP are multiplied behind dq of the previous tile.
      layout.ring_k.await_full(at);
      if (key + step > mask.length && mask.length < call.keys()) {
        // Keys past the end of this sequence have dS = 0, but K may hold NaN there, and 0 * NaN is
        // NaN.
        Keys::clear_rows(layout.k[at.stage], mask.length - key, thread, hopper_consumers);
        ptx::fence_async_proxy();
        ptx::barrier_sync(1, hopper_consumers);
      }
      issue_by_rows<T, Queries, Keys, Width>(p, layout.q[group], layout.k[at.stage]);
      layout.ring_v.await_full(at);
      issue_by_rows<T, Queries, Keys, Width>(ds, layout.dout[group], layout.v[at.stage]);
      ptx::wgmma_wait<2>(dq);
      if (leads && tile > 0) layout.ring_k.release(previous);
      const bool masked = key < last_begin || key + step > first_end;
      ptx::wgmma_wait<1>(p);
#pragma unroll
      for (int i = 0; i < step / 2; ++i) {
        weigh<Capped>(p[i], job, lse[accumulator_row(i)]);
      }
      ptx::wgmma_wait<0>(ds);
      if (leads) layout.ring_v.release(at.stage);
#pragma unroll
      for (int i = 0; i < step / 2; ++i) {
        ds[i] = p[i] * (ds[i] - row_sum[accumulator_row(i)]);
      }
      if (masked) hide(ds, key, begin, count);
      to_operand<T>(ds, ds_operand);
      issue_by_columns<T, Keys>(dq, ds_operand, layout.k[at.stage]);
      previous = at.stage;
      at.advance();
      key += step;
    }
    ptx::wgmma_wait<0>(dq);
    if (leads && tiles > 0) layout.ring_k.release(previous);

    ptx::barrier_sync(2 + group, hopper_group);  // all warps of this warpgroup have read Q
    const auto queries = element_rows<Packed>(call.query_offsets, turn.batch, call.queries());
    store_rows<T, Queries, Width, Packed>(job.dq, call.dq, queries, turn.head, first,
                                          call.rule.scale, layout.q[group], dq);
    if (leads) {
      ptx::bulk_wait_read<0>();
      layout.ring_queries[group].release(0);
    }
  }
}

// --- on the host ---------------------------------------------------------------------------------

/// Box of the maps of dq, dk and dv: the rows of a warp.
constexpr int gradient_box[4] = {1, 1, 16, 64};

Support supports(const AttentionBackward::Args& args, const Context& context) {
  if (const Support tensor = require_tensor_cores(args); !tensor) return tensor;
  if (context.info().compute_capability < 90) {
    return unsupported("wgmma and TMA need compute capability 9.0");
  }
  if (count_sums(args) > max_tensor_size) return unsupported("more than 2^30 row sums");
  if (args.options.slopes.data != nullptr || args.options.bias.data != nullptr) {
    return unsupported("slopes or bias are given");
  }
  // TMA stores whole 16-byte pieces, including the one in which a row ends.
  if (args.width() % 8 != 0 || args.value_width() % 8 != 0) {
    return unsupported("D or Dv is no multiple of 8");
  }
  return visit<f16, bf16>(args.q.dtype, [&]<class T>() {
    for (const ConstTensorRef& operand :
         {args.q, args.k, args.v, args.dout, ConstTensorRef(args.dq), ConstTensorRef(args.dk),
          ConstTensorRef(args.dv)}) {
      const Support map =
          tensor_map_support(operand.template view<const T, 4>(), gradient_box, Swizzle::bytes_128);
      if (!map) return map;
    }
    return supported;
  });
}

Work work(const AttentionBackward::Args& args, const Context& context) {
  Work work;
  with_width(args, [&]<class, int Width>() {
    work = in_turns(context, facts_of(args, {.queries = query_step<Width>,
                                             .keys = hopper_rows,
                                             .rounds = 1,
                                             .width = 2.0 * Width,
                                             .operations = 14.0 * Width,
                                             .resident = 1,
                                             .path = Width == 64 ? "64" : "128"}));
  });
  return work;
}

/// Rows that the blocks of a kernel own, and the bytes that these blocks stream.
struct OwnedRows {
  bool packed;  // one batch element after another
  std::int64_t rows, heads;
  double bytes;         // streamed per `shared` adjacent heads
  std::int64_t shared;  // heads
};

/// Returns the order of these blocks. Half of L2 holds what the blocks of a section stream.
BlockOrder order_of(const AttentionBackward::Args& args, const Context& context,
                    const OwnedRows& owned) {
  const double cache = static_cast<double>(context.info().l2_bytes) / 2;
  const double fit = larger(1.0, smaller(cache / larger(1.0, owned.bytes), 0x1p20));
  const std::int64_t section = static_cast<std::int64_t>(fit) * owned.shared;
  const bool packed = args.is_packed();  // then tiles, not heads, are those of all elements
  const std::int64_t tiles =
      packed ? count_row_tiles(owned.packed, args.batch(), owned.rows, hopper_rows)
             : ceil_div(owned.rows, hopper_rows);
  const std::int64_t heads = packed ? owned.heads : args.batch() * owned.heads;
  return {.tiles = static_cast<int>(tiles),
          .heads = static_cast<int>(heads),
          .section = static_cast<int>(smaller(section, heads))};
}

/// Calls f.template operator()<T, Width, Capped, Packed>() with the parameters of the kernels.
template <class F>
void with_variant(const AttentionBackward::Args& args, const F& f) {
  const bool capped = args.options.soft_cap != 0;
  with_width(args, [&]<class T, int Width>() {
    if (args.is_packed()) {
      capped ? f.template operator()<T, Width, true, true>()
             : f.template operator()<T, Width, false, true>();
    } else {
      capped ? f.template operator()<T, Width, true, false>()
             : f.template operator()<T, Width, false, false>();
    }
  });
}

void run(const AttentionBackward::Args& args, Context& context) {
  with_variant(args, [&]<class T, int Width, bool Capped, bool Packed>() {
    using KeysLayout = HopperKeysLayout<T, Width>;
    using QueriesLayout = HopperQueriesLayout<T, Width>;
    HopperBackwardJob<T> job{
        .call = attention_gradients<T>(args),
        .rows = {},
        .exponent_scale = static_cast<float>(args.options.scale * log2_e<double>),
        .cap_factor = 0,
        .cap_scale = 0,
        .order = {},
        .q = {},
        .k = {},
        .v = {},
        .dout = {},
        .dq = {},
        .dk = {},
        .dv = {}};
    if constexpr (Capped) {
      const double cap = args.options.soft_cap;
      const double largest = std::numeric_limits<float>::max();  // 0 stays 0
      job.cap_factor =
          static_cast<float>(smaller(2 * args.options.scale * log2_e<double> / cap, largest));
      job.cap_scale = static_cast<float>(smaller(cap * log2_e<double>, largest));
    }
    job.rows = make_row_sums(args, context, job.call);
    job.dq = make_tensor_map(job.call.dq, gradient_box, Swizzle::bytes_128);
    job.dk = make_tensor_map(job.call.dk, gradient_box, Swizzle::bytes_128);
    job.dv = make_tensor_map(job.call.dv, gradient_box, Swizzle::bytes_128);
    const double row_bytes = static_cast<double>(args.width() + args.value_width()) * sizeof(T);
    const auto launch_kernel = [&](auto kernel, std::size_t shared_bytes) {
      launch(context,
             {.grid = smaller(job.order.total(), context.info().sms),
              .block = hopper_threads,
              .shared_bytes = shared_bytes},
             kernel, job);
    };

    job.order =
        order_of(args, context,
                 {.packed = args.has_key_offsets(),
                  .rows = args.keys(),
                  .heads = args.kv_heads(),
                  .bytes = row_bytes * static_cast<double>(args.group() * args.typical_queries()),
                  .shared = 1});
    job.q = KeysLayout::Queries::map(job.call.q);
    job.dout = KeysLayout::Queries::map(job.call.dout);
    job.k = KeysLayout::Keys::map(job.call.k);
    job.v = KeysLayout::Keys::map(job.call.v);
    launch_kernel(attention_backward_hopper_keys<T, Width, Capped, Packed>, sizeof(KeysLayout));

    job.order = order_of(args, context,
                         {.packed = args.has_query_offsets(),
                          .rows = args.queries(),
                          .heads = args.heads(),
                          .bytes = row_bytes * static_cast<double>(args.typical_keys()),
                          .shared = args.group()});
    job.q = QueriesLayout::Queries::map(job.call.q);
    job.dout = QueriesLayout::Queries::map(job.call.dout);
    job.k = QueriesLayout::Keys::map(job.call.k);
    job.v = QueriesLayout::Keys::map(job.call.v);
    launch_kernel(attention_backward_hopper_queries<T, Width, Capped, Packed>,
                  sizeof(QueriesLayout));
  });
}

const Rung<AttentionBackward> self{{.name = "hopper_pipelined",
                                    .step = 300,
                                    .after = "tensor_cores",
                                    .backend = device_backend,
                                    .supports = supports,
                                    .work = work,
                                    .run = run}};

}  // namespace
}  // namespace rung
