// SPDX-License-Identifier: Apache-2.0
// attention / split KV, streamed
//
// Idea     The tiles of keys of all heads form one list, which is divided evenly among as many
//          warps as the GPU holds. A warp streams its part of the list through a ring of tensor
//          copies of its own, from one head to the next without a gap, and waits for nobody else.
//          A second kernel combines the parts of a head in a fixed order.
// Changes  against split_kv_decode: TMA instead of copies by all threads; no barrier, no second
//          wave of blocks, and no drained pipeline between heads. Reads e4m3 keys.
// Cost     one read of K and V. At most two partial results per warp.
// Limits   f16 and bf16 queries; keys of their type or e4m3 in layouts that TMA supports; D and Dv
//          up to 256; pages of 8 keys, or a multiple of 16 (e4m3: 16, or of 32); queries on an
//          axis. Above 16 rows, each further tile of rows reads K and V again, from L2.
// Source   T. Dao and others, Flash-Decoding for long-context inference, 2023; Z. Ye and others,
//          FlashInfer, 2025 (balanced lists of work).
#ifndef RUNG_SPLIT_TYPE
#define RUNG_SPLIT_TYPE bf16, bf16
#endif

#include "rung/cpu/split.hpp"  // types: f16,f16 bf16,bf16 f16,e4m3 bf16,e4m3
#include "rung/device/e4m3.hpp"
#include "rung/device/ptx/halves.hpp"
#include "rung/device/ptx/tensor_copy.hpp"
#include "rung/device/stage_ring.hpp"
#include "rung/ops/attention/cuda/detail/facts.hpp"
#include "rung/ops/attention/cuda/detail/split_kv_rows.hpp"

namespace rung::attention_cuda::inline RUNG_TARGET::split_kv {

constexpr int block_threads = warp_size * warps;
constexpr int most_parts = 4096;  // of a list, and of a head

/// Sizes by padded width of D and Dv: stages of K and V fill shared memory.
template <class K, int Width, bool Plain>
struct StreamTile {
  static constexpr int width = Width;
  static constexpr bool plain = Plain;
  static constexpr int keys = sizeof(K) == 1 && Width > 64 ? 32 : 16;
  static constexpr bool shared_q = Width == 256;  // registers do not suffice for it
  static constexpr int blocks_per_sm = Width == 64 ? 3 : Width == 128 ? 2 : 1;
  static constexpr int stages = Width == 64 ? 4 : 3;
};

/// Tile of K and V in panels of 128 bytes of a key, swizzled. Loads fragments of mma as WarpRows
/// expects them.
template <class T, class K, int Width, int Keys>
struct alignas(1024) KeyStage {
  static constexpr int line = 128;
  static constexpr int panel_columns = line / static_cast<int>(sizeof(K));
  static constexpr int panels = (Width + panel_columns - 1) / panel_columns;
  static constexpr int panel_bytes = Keys * line;
  unsigned char k[panels * panel_bytes];
  unsigned char v[panels * panel_bytes];

  static __device__ __forceinline__ int place(int key, int column) {
    return column / panel_columns * panel_bytes +
           swizzled<Swizzle::bytes_128>(key * line +
                                        column % panel_columns * static_cast<int>(sizeof(K)));
  }
  __device__ __forceinline__ void load_k(std::uint32_t (&words)[4], int key, int d) const {
    const int lane = lane_of_thread();
    if constexpr (sizeof(K) == 1) {
      std::uint32_t bytes[2];
      ptx::load_matrix<2>(bytes, k + place(key + lane % 16, d * 16));
      widen_e4m3<T>(bytes[0], words[0], words[1]);
      widen_e4m3<T>(bytes[1], words[2], words[3]);
    } else {
      ptx::load_matrix<4>(words,
                          k + place(key + lane % 8 + lane / 16 * 8, d * 16 + lane / 8 % 2 * 8));
    }
  }
  __device__ __forceinline__ void load_v(std::uint32_t (&words)[4], int key, int n) const {
    const int lane = lane_of_thread();
    if constexpr (sizeof(K) == 1) {
      // A lane gets columns 2 c and 2 c + 1 of two keys: the even columns, then the odd ones.
      std::uint32_t bytes[2];
      ptx::load_matrix<2, true>(bytes, v + place(key + lane % 16, n * 8));
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        widen_e4m3<T>(ptx::permute_bytes<0x3120>(bytes[i], 0), words[i], words[2 + i]);
      }
    } else {
      ptx::load_matrix<4, true>(words, v + place(key + lane % 16, n * 8 + lane / 16 * 8));
    }
  }
};

/// Tiles of keys of a head that some row of a tile of rows sees; at least one, so that rows without
/// keys are written.
struct HeadTiles {
  int first, count;
};

/// Place in the list of all tiles of keys: batch elements one after another, of each its heads of K
/// and V, of each head its tiles. There are fewer than 2^31.
struct ListPlace {
  int place;
  int b, g;
  int start;  // of the head in the list
  HeadTiles tiles;

  [[nodiscard]] __device__ __forceinline__ int end_of_head() const { return start + tiles.count; }
  /// Returns the index of the tile among those of the batch element.
  [[nodiscard]] __device__ __forceinline__ int tile() const { return tiles.first + place - start; }
};

template <class T, class K, int Width, bool Plain>
struct StreamLayout {
  using Tile = StreamTile<K, Width, Plain>;
  using Stage = KeyStage<T, K, Width, Tile::keys>;
  Stage stages[warps][Tile::stages];
  ptx::MemoryBarrier full[warps][Tile::stages];
  T q[Tile::shared_q ? warps : 1][warp_rows][Width + 8];
  RowIndices rows[Plain ? 1 : warps][warp_rows];
};

/// Kernel arguments. A warp's part of the list has partial results of two heads: of the first one,
/// and of the last one.
template <class T, class K>
struct StreamCall {
  Heads<T, K> heads;
  TensorMap k, v;
  Cut<float> cut;  // [row tile][part of the list][first, last head][row]
  int box_keys;    // keys per tensor copy: a tile, or a smaller page
};

template <class T, class K, int TileKeys>
class TileList {
  const Heads<T, K>& p_;
  int first_query_, last_query_;

  [[nodiscard]] __device__ __forceinline__ bool is_uniform() const {
    return p_.key_lengths.data == nullptr && p_.key_offsets.data == nullptr;
  }
  [[nodiscard]] __device__ __forceinline__ int kv_heads() const {
    return static_cast<int>(p_.kv_heads());
  }
  [[nodiscard]] __device__ __forceinline__ int batch() const {
    return static_cast<int>(p_.batch());
  }
  [[nodiscard]] __device__ __forceinline__ HeadTiles tiles_of(int b) const {
    const auto mask = p_.mask(b);
    const auto first = static_cast<int>(mask.first_key(first_query_) / TileKeys);
    const auto end = static_cast<int>(ceil_div(mask.end_key(last_query_), std::int64_t{TileKeys}));
    return {first, larger(end - first, 1)};
  }

  /// Returns the first batch element for which is_it(end of its tiles in the list, element) is
  /// true, and adds the tiles of those before it.
  template <class F>
  __device__ __forceinline__ int element_where(int& before, const F& is_it) const {
    for (int first = 0; first < batch(); first += warp_size) {
      const int own = first + lane_of_thread();
      const int count = own < batch() ? tiles_of(own).count * kv_heads() : 0;
      int sum = count;
#pragma unroll
      for (int distance = 1; distance < warp_size; distance *= 2) {
        const int lower = shuffle_up(sum, distance);
        if (lane_of_thread() >= distance) sum += lower;
      }
      const unsigned found = __ballot_sync(all_lanes, is_it(before + sum, own));
      if (found != 0) {
        const int lane = __ffs(static_cast<int>(found)) - 1;
        before += shuffle(sum - count, lane);
        return first + lane;
      }
      before += shuffle(sum, warp_size - 1);
    }
    return 0;
  }

 public:
  __device__ __forceinline__ TileList(const Heads<T, K>& p, int first_row, int last_row)
      : p_(p), first_query_(first_row / p.group), last_query_(last_row / p.group) {}

  /// Returns the number of tiles. All lanes of a warp call it, at() and head().
  [[nodiscard]] __device__ __forceinline__ int length() const {
    if (is_uniform()) return tiles_of(0).count * kv_heads() * batch();
    int sum = 0;
    for (int b = lane_of_thread(); b < batch(); b += warp_size) sum += tiles_of(b).count;
#pragma unroll
    for (int distance = warp_size / 2; distance > 0; distance /= 2) {
      sum += shuffle_xor(sum, distance);
    }
    return sum * kv_heads();
  }

  /// Returns where tile `place` of the list is.
  [[nodiscard]] __device__ __forceinline__ ListPlace at(int place) const {
    ListPlace found{.place = place, .b = 0, .g = 0, .start = 0, .tiles = {}};
    int before = 0;  // tiles of the elements before b
    if (is_uniform()) {
      const int of_element = tiles_of(0).count * kv_heads();
      found.b = place / of_element;
      before = found.b * of_element;
    } else {
      found.b = element_where(before, [&](int end, int) { return end > place; });
    }
    found.tiles = tiles_of(found.b);
    found.g = (place - before) / found.tiles.count;
    found.start = before + found.g * found.tiles.count;
    return found;
  }
  /// Returns the first tile of a head.
  [[nodiscard]] __device__ __forceinline__ ListPlace head(int b, int g) const {
    int before = 0;
    if (is_uniform()) {
      before = b * tiles_of(0).count * kv_heads();
    } else {
      element_where(before, [&](int, int element) { return element == b; });
    }
    const HeadTiles tiles = tiles_of(b);
    const int start = before + g * tiles.count;
    return {.place = start, .b = b, .g = g, .start = start, .tiles = tiles};
  }

  /// Goes to the first tile of the next head.
  __device__ __forceinline__ void next_head(ListPlace& at) const {
    at.start += at.tiles.count;
    at.place = at.start;
    if (++at.g < kv_heads()) return;
    at.g = 0;
    ++at.b;
    if (!is_uniform() && at.b < batch()) at.tiles = tiles_of(at.b);
  }
};

/// Division of a list among warps: part w has the tiles [begin(w), begin(w + 1)).
struct ListParts {
  int length, count;  // no more parts than tiles

  __device__ __forceinline__ ListParts(int length, int most)
      : length(length), count(smaller(most, length)) {}
  [[nodiscard]] __device__ __forceinline__ int begin(int part) const {
    return static_cast<int>(std::int64_t{length} * part / count);
  }
  /// Returns the part that has a tile.
  [[nodiscard]] __device__ __forceinline__ int owner(int place) const {
    return static_cast<int>(((std::int64_t{place} + 1) * count - 1) / length);
  }
};

/// Rows of a tile of rows: [first, last] of the stacked rows of a head of K and V.
struct TileRows {
  int first, last;
  template <class T, class K>
  __device__ __forceinline__ TileRows(const StreamCall<T, K>& call, int row_tile)
      : first(row_tile * warp_rows),
        last(smaller(first + warp_rows, static_cast<int>(call.cut.rows)) - 1) {}
  [[nodiscard]] __device__ __forceinline__ int count() const { return last - first + 1; }
};

/// Returns the columns of a partial result: those of v and up to three zeros.
template <class T, class K>
__device__ __forceinline__ int partial_width(const StreamCall<T, K>& call) {
  return (static_cast<int>(call.heads.value_width()) + 3) / 4 * 4;
}

/// Returns the index of a row's partial result. `is_last`: of the part's last head that is not its
/// first one.
template <class T, class K>
__device__ __forceinline__ std::int64_t partial_index(const StreamCall<T, K>& call, int row_tile,
                                                      int part, bool is_last, int row) {
  const std::int64_t places = std::int64_t{row_tile} * call.cut.splits + part;
  return (places * 2 + (is_last ? 1 : 0)) * warp_rows + row;
}

template <class T, class K, int Width, bool Plain>
__global__ void __launch_bounds__(block_threads, StreamTile<K, Width, Plain>::blocks_per_sm)
    attention_split_kv_stream(const __grid_constant__ StreamCall<T, K> call) {
  using Layout = StreamLayout<T, K, Width, Plain>;
  using Tile = typename Layout::Tile;
  using Stage = typename Layout::Stage;
  constexpr int tile_keys = Tile::keys;
  // Two groups of 16 keys per step overlap their products; at 256 columns, q and o leave registers
  // for only one.
  constexpr int steps = tile_keys >= 32 && Width < 256 ? 2 : 1;
  start_dependent();
  auto& layout = shared<Layout>();
  const Heads<T, K>& p = call.heads;
  const Cut<float>& cut = call.cut;
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
  const int lane = lane_of_thread();
  const int row_tile = static_cast<int>(blockIdx.x) % cut.row_tiles;
  const int part = static_cast<int>(blockIdx.x) / cut.row_tiles * warps + warp;
  const TileRows rows(call, row_tile);
  const TileList<T, K, tile_keys> list(p, rows.first, rows.last);
  const ListParts parts(list.length(), cut.splits);
  if (part >= parts.count) return;
  const int begin = parts.begin(part);
  const int end = parts.begin(part + 1);
  ListPlace at = list.at(begin);

  auto& stages = layout.stages[warp];
  auto& full = layout.full[warp];
  if (lane == 0) {
    for (auto& barrier : full) ptx::mbarrier_init(barrier, 1);
    ptx::mbarrier_fence_init();
  }
  __syncwarp();
  // Lane i copies box i of a tile; of scattered keys, the page is loaded one tile ahead.
  const int boxes = tile_keys / call.box_keys;
  ListPlace next = at;
  const auto page_of_next = [&] {
    if (p.page_table.data == nullptr || next.place >= end || lane >= boxes) return 0;
    // Behind the last key its page is loaded again, since entries there must not be used; an entry
    // that names no page must not become an address.
    const auto last = static_cast<int>(p.key_rows(next.b).count) - 1;
    if (last < 0) return 0;
    const int key = smaller(next.tile() * tile_keys + lane * call.box_keys, last);
    const std::uint32_t index = cut.page.quotient(static_cast<std::uint32_t>(key));
    return clamped(p.page_table(next.b, std::int64_t{index}), 0,
                   static_cast<int>(p.k.shape[0]) - 1);
  };
  int page = page_of_next();
  const auto load_next = [&](int stage) {
    if (next.place >= end) return;
    if (lane == 0) ptx::mbarrier_arrive_expect(full[stage], sizeof(Stage));
    __syncwarp();  // all lanes have read the stage
    if (lane < boxes) {
      int number = next.b;
      int from = next.tile() * tile_keys + lane * call.box_keys;
      if (p.page_table.data != nullptr) {
        auto key = static_cast<std::uint32_t>(from);
        from = cut.page.take(key);
        number = page;
      } else if (p.key_offsets.data != nullptr) {
        from += static_cast<int>(p.key_rows(next.b).first);
        number = 0;
      }
#pragma unroll
      for (int panel = 0; panel < Stage::panels; ++panel) {
        const int to = panel * Stage::panel_bytes + lane * call.box_keys * Stage::line;
        const int column = panel * Stage::panel_columns;
        ptx::tensor_load(stages[stage].k + to, call.k, {number, next.g, from, column}, full[stage]);
        ptx::tensor_load(stages[stage].v + to, call.v, {number, next.g, from, column}, full[stage]);
      }
    }
    if (++next.place == next.end_of_head()) list.next_head(next);
    page = page_of_next();
  };
  for (int stage = 0; stage < Tile::stages; ++stage) load_next(stage);

  RingPlace<Tile::stages> slot;
  const auto window = static_cast<int>(p.window > 0 ? p.window : p.keys());
  const SharedRows<T, Width> shared_rows{layout.q[Tile::shared_q ? warp : 0],
                                         layout.rows[Plain ? 0 : warp]};
  const ElementRows all_rows{cut.rows, 0};
  Cut<float> whole_rows = cut;
  whole_rows.splits = 1;
  for (; at.place < end; list.next_head(at)) {
    const ScoreRule<float> rule = p.rule_of(at.b, at.g);
    const float factor = unit_of<Plain>(rule).exponent;
    const auto mask = p.mask(at.b);
    const auto end_of_first = static_cast<int>(mask.end_key(rows.first / p.group));
    const auto first_of_last = static_cast<int>(mask.first_key(rows.last / p.group));
    if constexpr (Tile::shared_q) {
      store_queries<Plain, T, K, Width>(p, at.b, at.g, rows.first, cut.rows, 0, 1, warp_rows,
                                        layout.q[warp]);
    }
    if constexpr (!Plain) {
      if (lane < warp_rows) {
        const int r = rows.first + lane;
        const Row<T> row(p, at.b, at.g, r < cut.rows ? r : 0);
        layout.rows[warp][lane] = {row.h, row.i, mask.diagonal(row.i)};
      }
    }
    __syncwarp();
    WarpRows<T, K, Width, Tile::shared_q, Plain, int> mine;
    mine.load(p, at.b, at.g, mask, rows.first, cut.rows);
    const int own = at.place;  // the first tile of this part of the head
    for (; at.place < smaller(end, at.end_of_head()); ++at.place, slot.advance()) {
      const int first = at.tile() * tile_keys;
      const bool masked = first + tile_keys > end_of_first || first < first_of_last;
      ptx::mbarrier_wait(full[slot.stage], slot.parity);
      const Stage& tile = stages[slot.stage];
#pragma unroll 1
      for (int key = 0; key < tile_keys; key += 16 * steps) {
        const int j = first + key;
        if (masked) {
          mine.template add_keys<steps, true>(rule, shared_rows, tile, key, at.b, j, factor,
                                              window);
        } else {
          mine.template add_keys<steps, false>(rule, shared_rows, tile, key, at.b, j, factor,
                                               window);
        }
      }
      load_next(slot.stage);
    }
    mine.finish_sums();

    const bool is_whole = own == at.start && at.place == at.end_of_head();
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = lane / 4 + 8 * r;
      if (row >= rows.count()) continue;
      const auto write = [&](int width, const auto& set) {
#pragma unroll
        for (int i = 0; i < Width / 4; ++i) {
          const int column = Columns<K>::of_o(i / 2, lane % 4, i % 2);
          if (column < width) set(column, mine.o[i / 2][2 * r + i % 2]);
        }
      };
      if (is_whole) {
        const RowResult<false, T> result(p, whole_rows, all_rows, at.b, at.g, rows.first + row, 0,
                                         mine.maximum[r], mine.sum[r], lane % 4 == 0);
        write(static_cast<int>(p.value_width()),
              [&](int column, float value) { result.write(column, value); });
      } else {
        const std::int64_t index = partial_index(call, row_tile, part, own != begin, row);
        const int width = partial_width(call);
        float* const weighted = cut.weighted + index * width;
        if (lane % 4 == 0) {
          cut.maximum[index] = mine.maximum[r];
          cut.sum[index] = mine.sum[r];
        }
        write(width, [&](int column, float value) { weighted[column] = value; });
      }
    }
  }
}

struct StreamCombineLayout {
  float share[most_parts];  // factor of each part's weighted values
  float weighted[warps][max_value_width];
  float of_warp[warps];
};

/// Combines the parts of a row in a fixed order and writes o and lse; one block per row. Rows whose
/// head one part has are already written.
template <class T, class K, int TileKeys>
__global__ void __launch_bounds__(block_threads)
    attention_combine_stream(const __grid_constant__ StreamCall<T, K> call) {
  start_dependent();
  auto& layout = shared<StreamCombineLayout>();
  const Heads<T, K>& p = call.heads;
  const Cut<float>& cut = call.cut;
  const int lane = lane_of_thread();
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
  const auto r = static_cast<int>(blockIdx.x % cut.rows);
  const auto head = static_cast<int>(blockIdx.x / cut.rows);
  const auto g = head % static_cast<int>(p.kv_heads());
  const int b = head / static_cast<int>(p.kv_heads());
  const int row_tile = r / warp_rows;
  const TileRows rows(call, row_tile);
  const TileList<T, K, TileKeys> list(p, rows.first, rows.last);
  const ListParts parts(list.length(), cut.splits);
  const ListPlace at = list.head(b, g);
  const int first_part = parts.owner(at.start);
  const int count = parts.owner(at.end_of_head() - 1) - first_part + 1;
  if (count == 1) return;
  // In its first part the head is the last one, unless the part begins with it.
  const bool begins = parts.begin(first_part) == at.start;
  const auto index_of = [&](int i) {
    return partial_index(call, row_tile, first_part + i, i == 0 && !begins, r % warp_rows);
  };
  const auto across_block = [&](float value, const auto& combine) {
#pragma unroll
    for (int distance = warp_size / 2; distance > 0; distance /= 2) {
      value = combine(value, shuffle_xor(value, distance));
    }
    if (lane == 0) layout.of_warp[warp] = value;
    __syncthreads();
    value = layout.of_warp[0];
#pragma unroll
    for (int w = 1; w < warps; ++w) value = combine(value, layout.of_warp[w]);
    __syncthreads();
    return value;
  };
  float maximum = no_maximum<float>;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += block_threads) {
    layout.share[i] = cut.maximum[index_of(i)];
    maximum = greater(maximum, layout.share[i]);
  }
  maximum = across_block(maximum, [](float x, float y) { return greater(x, y); });
  const ScoreUnit<float> unit = unit_of<false>(p.rule_of(b, g));
  float sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += block_threads) {
    const float share = power_of_2((layout.share[i] - maximum) * unit.exponent);
    layout.share[i] = share;
    sum += share * cut.sum[index_of(i)];
  }
  sum = across_block(sum, [](float x, float y) { return x + y; });

  const int width = partial_width(call);
  for (int column = lane * 4; column < width; column += warp_size * 4) {
    Pack<float, 4> values = {};
#pragma unroll 4
    for (int i = warp; i < count; i += warps) {
      const auto its = load_wide<4>(cut.weighted + index_of(i) * width + column);
#pragma unroll
      for (int n = 0; n < 4; ++n) values[n] += layout.share[i] * its[n];
    }
#pragma unroll
    for (int n = 0; n < 4; ++n) layout.weighted[warp][column + n] = values[n];
  }
  __syncthreads();
  Cut<float> whole_rows = cut;
  whole_rows.splits = 1;
  const RowResult<false, T> result(p, whole_rows, {cut.rows, 0}, b, g, r, 0, maximum, sum,
                                   threadIdx.x == 0);
  for (int column = static_cast<int>(threadIdx.x); column < p.value_width();
       column += block_threads) {
    float value = 0;
#pragma unroll
    for (int w = 0; w < warps; ++w) value += layout.weighted[w][column];
    result.write(column, value);
  }
}

// --- on the host ---------------------------------------------------------------------------------

struct StreamPlan {
  int width;  // 64, 128 or 256
  bool plain;
  int tile_keys;
  int box_keys;  // see StreamCall; 0: pages that tiles do not fit
  int resident;  // blocks per SM
  std::int64_t row_tiles;
  std::int64_t tiles;   // of keys, per row tile; key_lengths ignored
  std::int64_t blocks;  // per row tile
};

/// Calls f.template operator()<Tile>() with the sizes of the plan's kernel for keys of type K.
template <class K, class F>
void with_stream_tile(const StreamPlan& plan, F&& f) {
  const auto of_width = [&]<int Width>() {
    plan.plain ? f.template operator()<StreamTile<K, Width, true>>()
               : f.template operator()<StreamTile<K, Width, false>>();
  };
  if (plan.width == 64) return of_width.template operator()<64>();
  if (plan.width == 128) return of_width.template operator()<128>();
  of_width.template operator()<256>();
}

/// Calls f(view, box) with k or v as a tensor for TMA, which has no 8-bit floats.
template <class K, class F>
auto with_mapped_keys(ConstTensorRef keys, const StreamPlan& plan, F&& f) {
  using Mapped = std::conditional_t<std::is_same_v<K, e4m3>, std::uint8_t, K>;
  keys.dtype = dtype_of<Mapped>;
  const int box[4] = {1, 1, plan.box_keys, 128 / static_cast<int>(sizeof(K))};
  return f(keys.template view<const Mapped, 4>(), box);
}

/// Launches the kernel for queries of type T and keys of type K.
template <class T, class K>
void run_stream(const Attention::Args& args, Context& context, const StreamPlan& plan);

template <>
void run_stream<f16, f16>(const Attention::Args&, Context&, const StreamPlan&);
template <>
void run_stream<bf16, bf16>(const Attention::Args&, Context&, const StreamPlan&);
template <>
void run_stream<f16, e4m3>(const Attention::Args&, Context&, const StreamPlan&);
template <>
void run_stream<bf16, e4m3>(const Attention::Args&, Context&, const StreamPlan&);

template <>
void run_stream<RUNG_SPLIT_TYPE>(const Attention::Args& args, Context& context,
                                 const StreamPlan& plan) {
  const auto launch_as = [&]<class T, class K>() {
    const auto map = [](const auto& view, const auto& box) {
      return make_tensor_map(view, box, Swizzle::bytes_128);
    };
    StreamCall<T, K> call{.heads = attention_heads<T, K>(args),
                          .k = with_mapped_keys<K>(args.k, plan, map),
                          .v = with_mapped_keys<K>(args.v, plan, map),
                          .cut = {.rows = typical_rows(args),
                                  .row_tiles = static_cast<int>(plan.row_tiles),
                                  .splits = static_cast<int>(plan.blocks * warps),
                                  .page = {},
                                  .weighted = nullptr,
                                  .maximum = nullptr,
                                  .sum = nullptr},
                          .box_keys = plan.box_keys};
    if (args.has_pages()) call.cut.page = Divisor::of(args.k.shape[2]);
    const std::int64_t results = plan.row_tiles * plan.blocks * warps * 2 * warp_rows;
    const std::int64_t width = ceil_div(args.value_width(), std::int64_t{4}) * 4;
    call.cut.weighted = static_cast<float*>(
        context.workspace(static_cast<std::size_t>(results * (width + 2)) * sizeof(float)));
    call.cut.maximum = call.cut.weighted + results * width;
    call.cut.sum = call.cut.maximum + results;
    with_stream_tile<K>(plan, [&]<class Tile>() {
      launch(context,
             {.grid = plan.row_tiles * plan.blocks,
              .block = block_threads,
              .shared_bytes = sizeof(StreamLayout<T, K, Tile::width, Tile::plain>),
              .dependent = can_depend(context)},
             attention_split_kv_stream<T, K, Tile::width, Tile::plain>, call);
      launch(context,
             {.grid = args.batch() * args.kv_heads() * call.cut.rows,
              .block = block_threads,
              .shared_bytes = sizeof(StreamCombineLayout),
              .dependent = can_depend(context)},
             attention_combine_stream<T, K, Tile::keys>, call);
    });
  };
  launch_as.template operator()<RUNG_SPLIT_TYPE>();
}

}  // namespace rung::attention_cuda::inline RUNG_TARGET::split_kv

#if RUNG_SPLIT_ONCE
namespace rung {
namespace {

using namespace attention_cuda;
using namespace attention_cuda::split_kv;

/// Calls f.template operator()<T, K>() with the types of queries and keys.
template <class F>
auto with_types(const Attention::Args& args, F&& f) {
  return visit<f16, bf16>(args.q.dtype, [&]<class T>() {
    return args.has_e4m3_keys() ? f.template operator()<T, e4m3>() : f.template operator()<T, T>();
  });
}

StreamPlan plan_of(const Attention::Args& args, const Context& context) {
  constexpr std::int64_t least_tiles = 4;  // per warp: fewer parts of a head
  StreamPlan plan{};
  const std::int64_t widest = larger(args.width(), args.value_width());
  plan.width = widest <= 64 ? 64 : widest <= 128 ? 128 : 256;
  plan.plain = args.has_plain_scores();
  with_types(args, [&]<class T, class K>() {
    with_stream_tile<K>(plan, [&]<class Tile>() {
      plan.tile_keys = Tile::keys;
      plan.resident = Tile::blocks_per_sm;
    });
  });
  const std::int64_t page = args.has_pages() ? args.k.shape[2] : plan.tile_keys;
  if (page > 0 && page % plan.tile_keys == 0) {
    plan.box_keys = plan.tile_keys;
  } else if (page > 0 && page % 8 == 0 && plan.tile_keys % page == 0) {
    plan.box_keys = static_cast<int>(page);
  }
  plan.row_tiles = ceil_div(typical_rows(args), std::int64_t{warp_rows});
  plan.tiles = args.batch() * args.kv_heads() *
               larger(ceil_div(typical_tile_keys(args, warp_rows), std::int64_t{plan.tile_keys}),
                      std::int64_t{1});
  const std::int64_t slots =
      smaller(std::int64_t{plan.resident} * context.info().sms, std::int64_t{most_parts / warps});
  plan.blocks = clamped(slots / larger(plan.row_tiles, std::int64_t{1}), std::int64_t{1},
                        larger(ceil_div(plan.tiles, least_tiles * warps), std::int64_t{1}));
  return plan;
}

Support supports(const Attention::Args& args, const Context& context) {
  if (args.q.dtype != DType::f16 && args.q.dtype != DType::bf16) {
    return unsupported("q is neither f16 nor bf16");
  }
  if (context.info().compute_capability < 90) {
    return unsupported("TMA needs compute capability 9.0");
  }
  if (args.width() > 256 || args.value_width() > 256) return unsupported("D and Dv up to 256");
  if (args.has_query_offsets()) return unsupported("query_offsets are given");
  if (args.keys() > Divisor::max) return unsupported("fewer than 2^31 keys");
  const StreamPlan plan = plan_of(args, context);
  if (plan.box_keys == 0) {
    return unsupported("pages of 8, 16 or a multiple of 16 keys (e4m3: of 32)");
  }
  const double rows = static_cast<double>(plan.row_tiles) * warp_rows *
                      static_cast<double>(args.batch()) * static_cast<double>(args.kv_heads());
  if (plan.tiles > Divisor::max || rows > static_cast<double>(Divisor::max)) {
    return unsupported("fewer than 2^31 rows and tiles of keys");
  }
  return with_types(args, [&]<class T, class K>() {
    for (const auto& operand : {args.k, args.v}) {
      const Support map = with_mapped_keys<K>(operand, plan, [](const auto& view, const auto& box) {
        return tensor_map_support(view, box, Swizzle::bytes_128);
      });
      if (!map) return map;
    }
    return supported;
  });
}

Work work(const Attention::Args& args, const Context& context) {
  const StreamPlan plan = plan_of(args, context);
  Work work =
      tile_work(static_cast<double>(plan.row_tiles * plan.blocks), warp_rows * warps,
                plan.tile_keys, static_cast<double>(ceil_div(plan.tiles, plan.blocks * warps)),
                2 * plan.width, plan.resident, path_of_width(plan.width));
  work.launches = 2;
  return work;
}

void run(const Attention::Args& args, Context& context) {
  with_types(args,
             [&]<class T, class K>() { run_stream<T, K>(args, context, plan_of(args, context)); });
}

const Rung<Attention> self{{.name = "split_kv_stream",
                            .after = "split_kv_decode",
                            .backend = device_backend,
                            .supports = supports,
                            .work = work,
                            .run = run}};

}  // namespace
}  // namespace rung
#endif
