// SPDX-License-Identifier: Apache-2.0
// attention / split KV, streamed
//
// Idea     Keys and values of e4m3 are half the bytes of 16-bit ones: they are read as they are and
//          widened on their way from shared memory to mma. The tiles of keys of all heads form one
//          list, which is divided evenly among as many blocks as the GPU holds. A warp streams a
//          block's part of the list through a ring of tensor copies, from one head to the next
//          without a gap. The blocks that share a head store partial results; the last of them
//          adds these up in a fixed order.
// Changes  against split_kv: tensor cores, so that 16 rows cost as much as one and 64 little more,
//          and tensor copies.
// Cost     one read of K and V. At most two partial results per block.
// Limits   e4m3 keys in layouts that TMA supports, with f16 or bf16 queries on an axis; D and Dv up
//          to 256; pages of 8, 16, 32 or a multiple of 64 keys (of 128 for widths above 64); up to
//          256 rows per head of K: every 64 rows read K and V again, from L2.
// Source   T. Dao and others, Flash-Decoding for long-context inference, 2023; Z. Ye and others,
//          FlashInfer, 2025 (balanced lists of work).
#ifndef RUNG_SPLIT_TYPE
#define RUNG_SPLIT_TYPE bf16
#endif

#include "rung/cpu/split.hpp"  // types: f16 bf16
#include "rung/device/e4m3.hpp"
#include "rung/device/last_block.hpp"
#include "rung/device/ptx/halves.hpp"
#include "rung/device/ptx/tensor_copy.hpp"
#include "rung/device/stage_ring.hpp"
#include "rung/device/tickets.hpp"
#include "rung/ops/attention/cuda/detail/facts.hpp"
#include "rung/ops/attention/cuda/detail/split_kv_rows.hpp"

namespace rung::attention_cuda::inline RUNG_TARGET::split_kv {

constexpr int block_threads = warp_size * warps;
constexpr int most_blocks = 4096;  // that may share heads
constexpr std::int64_t most_rows = 256;

/// Sizes by padded width of D and Dv: stages of K and V fill shared memory.
template <int Width, int RowWarps, bool Plain>
struct StreamTile {
  static constexpr int keys = Width > 64 ? 128 : 64;
  static constexpr int width = Width;
  static constexpr int row_warps = RowWarps;
  static constexpr bool plain = Plain;
  /// q is in shared memory where registers do not suffice for it.
  static constexpr bool shared_q = Width == 256 || (!Plain && (Width == 128 || RowWarps > 1));
  static constexpr int rows = warp_rows * RowWarps;
  static constexpr int blocks_per_sm = Width == 64                                ? 3
                                       : Width == 128 && (RowWarps == 1 || Plain) ? 2
                                                                                  : 1;
  static constexpr int stages = Width == 64 ? 4 : Width == 128 && blocks_per_sm == 1 ? 5 : 3;
};

/// Tile of K and V in panels of 128 columns, swizzled. Loads fragments of mma as WarpRows expects
/// them, widened to T.
template <class T, int Width, int Keys>
struct alignas(1024) KeyStage {
  static constexpr int line = 128;  // bytes, and columns
  static constexpr int panels = (Width + line - 1) / line;
  static constexpr int panel_bytes = Keys * line;
  unsigned char k[panels * panel_bytes];
  unsigned char v[panels * panel_bytes];

  static __device__ __forceinline__ int place(int key, int column) {
    return column / line * panel_bytes + swizzled<Swizzle::bytes_128>(key * line + column % line);
  }
  __device__ __forceinline__ void load_k(std::uint32_t (&words)[4], int key, int d) const {
    std::uint32_t bytes[2];
    ptx::load_matrix<2>(bytes, k + place(key + lane_of_thread() % 16, d * 16));
    widen_e4m3<T>(bytes[0], words[0], words[1]);
    widen_e4m3<T>(bytes[1], words[2], words[3]);
  }
  __device__ __forceinline__ void load_v(std::uint32_t (&words)[4], int key, int n) const {
    // A lane gets columns 2 c and 2 c + 1 of two keys: the even columns, then the odd ones.
    std::uint32_t bytes[2];
    ptx::load_matrix<2, true>(bytes, v + place(key + lane_of_thread() % 16, n * 8));
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      widen_e4m3<T>(ptx::permute_bytes<0x3120>(bytes[i], 0), words[i], words[2 + i]);
    }
  }
};

/// Exchange buffer for warps that share rows, 32 columns at a time. The padding puts rows into
/// different banks.
struct StreamExchange {
  float maximum[warps][warp_rows];
  float sum[warps][warp_rows];
  float weighted[warps][warp_rows][warp_size + 4];
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

template <class T, int Width, int RowWarps, bool Plain>
struct StreamLayout {
  using Tile = StreamTile<Width, RowWarps, Plain>;
  using Stage = KeyStage<T, Width, Tile::keys>;
  Stage stages[Tile::stages];
  StageRing<Tile::stages> ring;
  T q[Tile::shared_q ? Tile::rows : 1][Width + 8];
  RowIndices rows[Plain ? 1 : Tile::rows];
  std::conditional_t<RowWarps == 1, StreamExchange, int> exchange;
  int is_last;
};

/// Kernel arguments. The partial results of a block have two places: for the first head of its part
/// of the list, and for the last.
template <class T>
struct StreamCall {
  Heads<T, e4m3> heads;
  TensorMap k, v;
  Cut<float> cut;     // [row tile][block][first, last] instead of batch elements and splits
  int box_keys;       // keys per tensor copy: a tile, or a smaller page
  unsigned* tickets;  // [row tile][block], of the head whose first tile the block has
};

template <class T, int TileKeys>
class TileList {
  const Heads<T, e4m3>& p_;
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

 public:
  __device__ __forceinline__ TileList(const Heads<T, e4m3>& p, int first_row, int last_row)
      : p_(p), first_query_(first_row / p.group), last_query_(last_row / p.group) {}

  /// Returns the number of tiles. All lanes of a warp call it, and at().
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

  [[nodiscard]] __device__ __forceinline__ ListPlace at(int place) const {
    ListPlace found{.place = place, .b = 0, .g = 0, .start = 0, .tiles = {}};
    int before = 0;  // tiles of the elements before b
    if (is_uniform()) {
      const int of_element = tiles_of(0).count * kv_heads();
      found.b = place / of_element;
      before = found.b * of_element;
    } else {
      for (int first = 0; first < batch(); first += warp_size) {
        const int own = first + lane_of_thread();
        const int count = own < batch() ? tiles_of(own).count * kv_heads() : 0;
        int sum = count;
#pragma unroll
        for (int distance = 1; distance < warp_size; distance *= 2) {
          const int lower = shuffle_up(sum, distance);
          if (lane_of_thread() >= distance) sum += lower;
        }
        const unsigned beyond = __ballot_sync(all_lanes, before + sum > place);
        if (beyond != 0) {
          const int lane = __ffs(static_cast<int>(beyond)) - 1;
          found.b = first + lane;
          before += shuffle(sum - count, lane);
          break;
        }
        before += shuffle(sum, warp_size - 1);
      }
    }
    found.tiles = tiles_of(found.b);
    found.g = (place - before) / found.tiles.count;
    found.start = before + found.g * found.tiles.count;
    return found;
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

/// Division of a list among blocks: block w has the tiles [begin(w), begin(w + 1)).
struct ListShares {
  int length, blocks;  // no more blocks than tiles

  [[nodiscard]] __device__ __forceinline__ int begin(int block) const {
    return static_cast<int>(std::int64_t{length} * block / blocks);
  }
  [[nodiscard]] __device__ __forceinline__ int owner(int place) const {
    return static_cast<int>(((std::int64_t{place} + 1) * blocks - 1) / length);
  }
};

template <class T, int Width, int RowWarps, bool Plain>
__global__ void __launch_bounds__(block_threads, StreamTile<Width, RowWarps, Plain>::blocks_per_sm)
    attention_split_kv_stream(const __grid_constant__ StreamCall<T> call) {
  using Layout = StreamLayout<T, Width, RowWarps, Plain>;
  using Tile = typename Layout::Tile;
  constexpr int tile_keys = Tile::keys;
  constexpr int key_warps = warps / RowWarps;
  constexpr int warp_keys = tile_keys / key_warps;
  // Two groups of 16 keys per step overlap their products; at 256 columns, q and o leave registers
  // for only one.
  constexpr int steps = warp_keys >= 32 && Width < 256 ? 2 : 1;
  start_dependent();
  auto& layout = shared<Layout>();
  auto& ring = layout.ring;
  const Heads<T, e4m3>& p = call.heads;
  const Cut<float>& cut = call.cut;
  if (threadIdx.x == 0) ring.init(warps);
  __syncthreads();

  const int row_tile = static_cast<int>(blockIdx.x) % cut.row_tiles;
  const int block = static_cast<int>(blockIdx.x) / cut.row_tiles;
  const int first_row = row_tile * Tile::rows;
  const int last_row = smaller(first_row + Tile::rows, static_cast<int>(cut.rows)) - 1;
  const TileList<T, tile_keys> list(p, first_row, last_row);
  const int length = list.length();
  const ListShares shares{length, smaller(cut.splits, length)};
  if (block >= shares.blocks) return;
  const int begin = shares.begin(block);
  const int end = shares.begin(block + 1);
  ListPlace at = list.at(begin);
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
  const int lane = lane_of_thread();
  // Warp 0 loads tiles ahead of the multiplications; lane i copies box i of a tile. The entries of
  // the page table are loaded one tile earlier still.
  const int boxes = tile_keys / call.box_keys;
  ListPlace next = at;
  RingPlace<Tile::stages> next_slot;
  RowRange next_keys = p.key_rows(at.b);
  int entry = 0;
  const auto load_entry = [&] {
    if (p.page_table.data == nullptr || next.place >= end || lane >= boxes) return;
    // Behind the last key its page is loaded again, since entries there must not be used.
    const auto last = static_cast<int>(next_keys.count) - 1;
    const int key = smaller(next.tile() * tile_keys + lane * call.box_keys, last);
    const std::uint32_t index = cut.page.quotient(static_cast<std::uint32_t>(larger(key, 0)));
    entry = last < 0 ? 0 : p.page_table(next.b, std::int64_t{index});
  };
  const auto load_next = [&] {
    if (next.place >= end) return;
    ring.await_empty(next_slot);
    if (lane == 0) ring.expect(next_slot, sizeof(typename Layout::Stage));
    __syncwarp();
    if (lane < boxes) {
      using Stage = typename Layout::Stage;
      Stage& stage = layout.stages[next_slot.stage];
      auto& full = ring.full[next_slot.stage];
      int number = p.key_offsets.data == nullptr ? next.b : 0;
      int from = static_cast<int>(next_keys.first) + next.tile() * tile_keys + lane * call.box_keys;
      if (p.page_table.data != nullptr) {
        auto key = static_cast<std::uint32_t>(from);
        from = cut.page.take(key);
        // An entry that names no page must not become an address.
        number = static_cast<int>(clamped(std::int64_t{entry}, std::int64_t{0}, p.k.shape[0] - 1));
      }
#pragma unroll
      for (int panel = 0; panel < Stage::panels; ++panel) {
        const int to = panel * Stage::panel_bytes + lane * call.box_keys * Stage::line;
        const int column = panel * Stage::line;
        ptx::tensor_load(stage.k + to, call.k, {number, next.g, from, column}, full);
        ptx::tensor_load(stage.v + to, call.v, {number, next.g, from, column}, full);
      }
    }
    next_slot.advance();
    if (++next.place == next.end_of_head()) {
      const int b = next.b;
      list.next_head(next);
      if (next.b != b && next.place < end) next_keys = p.key_rows(next.b);
    }
    load_entry();
  };
  if (warp == 0) {
    load_entry();
    for (int i = 0; i < Tile::stages - 1; ++i) load_next();
  }
  RingPlace<Tile::stages> slot;

  const int warp_row = warp % RowWarps * warp_rows;
  const int from = warp / RowWarps * warp_keys;
  const auto window = static_cast<int>(p.window > 0 ? p.window : p.keys());
  const SharedRows<T, Width> shared_rows{layout.q + (Tile::shared_q ? warp_row : 0),
                                         layout.rows + (Plain ? 0 : warp_row)};
  const ElementRows rows{cut.rows, 0};
  Cut<float> whole_rows = cut;
  whole_rows.splits = 1;
  for (; at.place < end; list.next_head(at)) {
    const ScoreRule<float> rule = p.rule_of(at.b, at.g);
    const float factor = unit_of<Plain>(rule).exponent;
    const auto mask = p.mask(at.b);
    const auto end_of_first = static_cast<int>(mask.end_key(first_row / p.group));
    const auto first_of_last = static_cast<int>(mask.first_key(last_row / p.group));
    if constexpr (Tile::shared_q) {
      __syncthreads();  // the rows of the head before have been read
      store_queries<Plain, T, e4m3, Width>(p, cut.by_group, at.b, at.g, first_row, cut.rows, warp,
                                           warps, Tile::rows, layout.q);
    }
    if constexpr (!Plain) {
      if (threadIdx.x < Tile::rows) {
        const std::int64_t r = first_row + threadIdx.x;
        const Row<T> row(cut.by_group, at.b, at.g, r < cut.rows ? r : 0);
        layout.rows[threadIdx.x] = {row.h, row.i, mask.diagonal(row.i)};
      }
    }
    if constexpr (Tile::shared_q || !Plain) __syncthreads();
    WarpRows<T, e4m3, Width, Tile::shared_q, Plain, int> mine;
    mine.load(p, cut.by_group, at.b, at.g, mask, first_row + warp_row, cut.rows);
    const int own = at.place;  // the first tile of this block's part of the head
    for (; at.place < smaller(end, at.end_of_head()); ++at.place, slot.advance()) {
      const int first = at.tile() * tile_keys;
      const bool masked = first + tile_keys > end_of_first || first < first_of_last;
      if (warp == 0) load_next();
      ring.await_full(slot);
      const auto& tile = layout.stages[slot.stage];
#pragma unroll 1
      for (int key = from; key < from + warp_keys; key += 16 * steps) {
        const int j = first + key;
        if (masked) {
          mine.template add_keys<steps, true>(rule, shared_rows, tile, key, at.b, j, factor,
                                              window);
        } else {
          mine.template add_keys<steps, false>(rule, shared_rows, tile, key, at.b, j, factor,
                                               window);
        }
      }
      __syncwarp();
      if (lane == 0) ring.release(slot.stage);
    }
    mine.finish_sums();

    const bool is_whole = own == at.start && at.place == at.end_of_head();
    const std::int64_t first_part = std::int64_t{row_tile} * 2 * cut.splits;
    const std::int64_t part = first_part + 2 * block + (own == begin ? 0 : 1);
    // Calls write(set) with set(column, value) for a row: o, or its partial result.
    const auto with_row = [&](int row, float maximum, float sum, bool leads, const auto& write) {
      if (is_whole) {
        const RowResult<false, T> result(p, whole_rows, rows, at.b, at.g, first_row + row, 0,
                                         maximum, sum, leads);
        write([&](int column, float value) { result.write(column, value); });
        return;
      }
      const std::int64_t index = part * Tile::rows + row;
      float* const weighted = cut.weighted + index * p.value_width();
      if (leads) {
        cut.maximum[index] = maximum;
        cut.sum[index] = sum;
      }
      write([&](int column, float value) { weighted[column] = value; });
    };
    const int row_count = last_row - first_row + 1;
    if constexpr (key_warps == 1) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int row = warp_row + lane / 4 + 8 * r;
        if (row >= row_count) continue;
        with_row(row, mine.maximum[r], mine.sum[r], lane % 4 == 0, [&](const auto& set) {
#pragma unroll
          for (int i = 0; i < Width / 4; ++i) {
            const int column = Columns<e4m3>::of_o(i / 2, lane % 4, i % 2);
            if (column < p.value_width()) set(column, mine.o[i / 2][2 * r + i % 2]);
          }
        });
      }
    } else {
      StreamExchange& exchange = layout.exchange;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        if (lane % 4 != 0) continue;
        exchange.maximum[warp][lane / 4 + 8 * r] = mine.maximum[r];
        exchange.sum[warp][lane / 4 + 8 * r] = mine.sum[r];
      }
#pragma unroll
      for (int columns = 0; columns < Width; columns += warp_size) {
#pragma unroll
        for (int i = 0; i < 16; ++i) {
          exchange.weighted[warp][lane / 4 + i % 4 / 2 * 8][Columns<e4m3>::of_o(
              i / 4, lane % 4, i % 2)] = mine.o[columns / 8 + i / 4][i % 4];
        }
        __syncthreads();
        for (int row = warp; row < row_count; row += warps) {
          const Combined<warps, float> found([&](int w) { return exchange.maximum[w][row]; },
                                             [&](int w) { return exchange.sum[w][row]; }, factor);
          float value = 0;
#pragma unroll
          for (int w = 0; w < warps; ++w) value += found.part[w] * exchange.weighted[w][row][lane];
          with_row(row, found.maximum, found.sum, lane == 0 && columns == 0, [&](const auto& set) {
            if (columns + lane < p.value_width()) set(columns + lane, value);
          });
        }
        __syncthreads();  // the exchange has been read
      }
    }
    if (is_whole) continue;

    const int first_block = shares.owner(at.start);
    const int blocks = shares.owner(at.end_of_head() - 1) - first_block + 1;
    __syncthreads();
    if (!is_last_block(call.tickets + std::int64_t{row_tile} * cut.splits + first_block, blocks,
                       layout.is_last)) {
      continue;
    }
    // Of the first block the head is the last one, unless it begins there.
    const auto index_of = [&](int i, int row) {
      const int which = i == 0 && shares.begin(first_block) != at.start ? 1 : 0;
      return (first_part + 2 * (first_block + i) + which) * Tile::rows + row;
    };
    for (int row = warp; row < row_count; row += warps) {
      float maximum = no_maximum<float>;
      for (int i = lane; i < blocks; i += warp_size) {
        maximum = greater(maximum, cut.maximum[index_of(i, row)]);
      }
#pragma unroll
      for (int distance = warp_size / 2; distance > 0; distance /= 2) {
        maximum = greater(maximum, shuffle_xor(maximum, distance));
      }
      float sum = 0;
      float values[Width / warp_size] = {};
      for (int i = 0; i < blocks; i += warp_size) {
        float share = 0;
        if (i + lane < blocks) {
          const std::int64_t index = index_of(i + lane, row);
          share = power_of_2((cut.maximum[index] - maximum) * factor);
          sum += share * cut.sum[index];
        }
        const int count = smaller(blocks - i, warp_size);
#pragma unroll 4
        for (int other = 0; other < count; ++other) {
          const float* const weighted = cut.weighted + index_of(i + other, row) * p.value_width();
          const float its = shuffle(share, other);
#pragma unroll
          for (int n = 0; n < Width / warp_size; ++n) {
            const int column = n * warp_size + lane;
            if (column < p.value_width()) values[n] += its * weighted[column];
          }
        }
      }
#pragma unroll
      for (int distance = warp_size / 2; distance > 0; distance /= 2) {
        sum += shuffle_xor(sum, distance);
      }
      const RowResult<false, T> result(p, whole_rows, rows, at.b, at.g, first_row + row, 0, maximum,
                                       sum, lane == 0);
#pragma unroll
      for (int n = 0; n < Width / warp_size; ++n) {
        const int column = n * warp_size + lane;
        if (column < p.value_width()) result.write(column, values[n]);
      }
    }
  }
}

struct StreamPlan {
  int width;      // 64, 128 or 256
  int row_warps;  // 1 or 4
  bool plain;
  int tile_rows, tile_keys;
  int box_keys;  // see StreamCall; 0: pages that tiles do not fit
  int resident;  // blocks per SM
  std::int64_t row_tiles;
  std::int64_t tiles;   // of keys, per row tile; key_lengths ignored
  std::int64_t blocks;  // per row tile
};

/// Calls f(view, box) with k or v as a tensor for TMA, which has no 8-bit floats.
template <class F>
auto with_mapped_keys(ConstTensorRef keys, const StreamPlan& plan, F&& f) {
  keys.dtype = DType::u8;
  const int box[4] = {1, 1, plan.box_keys, 128};
  return f(keys.template view<const std::uint8_t, 4>(), box);
}

/// Launches the kernel for queries of type T.
template <class T>
void run_stream(const Attention::Args& args, Context& context, const StreamPlan& plan);

template <>
void run_stream<f16>(const Attention::Args&, Context&, const StreamPlan&);
template <>
void run_stream<bf16>(const Attention::Args&, Context&, const StreamPlan&);

template <>
void run_stream<RUNG_SPLIT_TYPE>(const Attention::Args& args, Context& context,
                                 const StreamPlan& plan) {
  using T = RUNG_SPLIT_TYPE;
  const auto map = [](const auto& view, const auto& box) {
    return make_tensor_map(view, box, Swizzle::bytes_128);
  };
  StreamCall<T> call{.heads = attention_heads<T, e4m3>(args),
                     .k = with_mapped_keys(args.k, plan, map),
                     .v = with_mapped_keys(args.v, plan, map),
                     .cut = {.rows = typical_rows(args),
                             .row_tiles = static_cast<int>(plan.row_tiles),
                             .splits = static_cast<int>(plan.blocks),
                             .page = {},
                             .by_group = Divisor::of(larger(args.group(), std::int64_t{1})),
                             .weighted = nullptr,
                             .maximum = nullptr,
                             .sum = nullptr},
                     .box_keys = plan.box_keys,
                     .tickets = nullptr};
  if (args.has_pages()) call.cut.page = Divisor::of(args.k.shape[2]);
  if (plan.blocks > 1) {
    const std::int64_t parts = plan.row_tiles * plan.blocks * 2 * plan.tile_rows;
    call.cut.weighted = static_cast<float*>(context.workspace(
        static_cast<std::size_t>(parts * (args.value_width() + 2)) * sizeof(float)));
    call.cut.maximum = call.cut.weighted + parts * args.value_width();
    call.cut.sum = call.cut.maximum + parts;
    call.tickets = tickets_of<StreamPlan>(context, most_blocks);
  }
  with_split_tile<StreamTile>(plan.width, plan.row_warps, plan.plain, [&]<class Tile>() {
    launch(context,
           {.grid = plan.row_tiles * plan.blocks,
            .block = block_threads,
            .shared_bytes = sizeof(StreamLayout<T, Tile::width, Tile::row_warps, Tile::plain>),
            .dependent = can_depend(context)},
           attention_split_kv_stream<T, Tile::width, Tile::row_warps, Tile::plain>, call);
  });
}

}  // namespace rung::attention_cuda::inline RUNG_TARGET::split_kv

#if RUNG_SPLIT_ONCE
namespace rung {
namespace {

using namespace attention_cuda;
using namespace attention_cuda::split_kv;

StreamPlan plan_of(const Attention::Args& args, const Context& context) {
  constexpr std::int64_t least_tiles = 4;  // per block: fewer blocks share a head
  StreamPlan plan{};
  plan.width = padded_width(args);
  const std::int64_t rows = typical_rows(args);
  plan.row_warps = rows <= warp_rows ? 1 : warps;
  plan.plain = args.has_plain_scores();
  with_split_tile<StreamTile>(plan.width, plan.row_warps, plan.plain, [&]<class Tile>() {
    plan.tile_rows = Tile::rows;
    plan.tile_keys = Tile::keys;
    plan.resident = Tile::blocks_per_sm;
  });
  const std::int64_t page = args.has_pages() ? args.k.shape[2] : plan.tile_keys;
  if (page > 0 && page % plan.tile_keys == 0) {
    plan.box_keys = plan.tile_keys;
  } else if (page > 0 && page % 8 == 0 && plan.tile_keys % page == 0) {
    plan.box_keys = static_cast<int>(page);
  }
  plan.row_tiles = ceil_div(rows, std::int64_t{plan.tile_rows});
  plan.tiles =
      args.batch() * args.kv_heads() *
      larger(ceil_div(typical_tile_keys(args, plan.tile_rows), std::int64_t{plan.tile_keys}),
             std::int64_t{1});
  const std::int64_t slots =
      smaller(std::int64_t{plan.resident} * context.info().sms, std::int64_t{most_blocks});
  plan.blocks = clamped(slots / larger(plan.row_tiles, std::int64_t{1}), std::int64_t{1},
                        larger(ceil_div(plan.tiles, least_tiles), std::int64_t{1}));
  return plan;
}

Support supports(const Attention::Args& args, const Context& context) {
  if (!args.has_e4m3_keys()) return unsupported("k and v are not e4m3");
  if (args.q.dtype != DType::f16 && args.q.dtype != DType::bf16) {
    return unsupported("q is neither f16 nor bf16");
  }
  if (context.info().compute_capability < 90) {
    return unsupported("TMA needs compute capability 9.0");
  }
  if (args.width() > 256 || args.value_width() > 256) return unsupported("D and Dv up to 256");
  if (args.has_query_offsets()) return unsupported("query_offsets are given");
  if (args.keys() > Divisor::max - 256) return unsupported("up to 2^31 - 257 keys");
  if (typical_rows(args) > most_rows) {
    return unsupported("up to 256 rows, queries times heads of q that share a head of k");
  }
  const StreamPlan plan = plan_of(args, context);
  if (plan.box_keys == 0) {
    return unsupported("pages of 8, 16, 32 or a multiple of 64 keys (of 128 for widths above 64)");
  }
  const double rows = static_cast<double>(plan.row_tiles) * plan.tile_rows *
                      static_cast<double>(args.batch()) * static_cast<double>(args.kv_heads());
  // Windows and packed keys may begin within a tile.
  if (plan.tiles + args.batch() * args.kv_heads() > Divisor::max ||
      rows > static_cast<double>(Divisor::max)) {
    return unsupported("fewer than 2^31 rows and tiles of keys");
  }
  for (const auto& operand : {args.k, args.v}) {
    const Support map = with_mapped_keys(operand, plan, [](const auto& view, const auto& box) {
      return tensor_map_support(view, box, Swizzle::bytes_128);
    });
    if (!map) return map;
  }
  return supported;
}

Work work(const Attention::Args& args, const Context& context) {
  const StreamPlan plan = plan_of(args, context);
  return tile_work(static_cast<double>(plan.row_tiles * plan.blocks), plan.tile_rows,
                   plan.tile_keys, static_cast<double>(ceil_div(plan.tiles, plan.blocks)),
                   2 * plan.width, plan.resident, path_of_width(plan.width));
}

void run(const Attention::Args& args, Context& context) {
  visit<f16, bf16>(args.q.dtype,
                   [&]<class T>() { run_stream<T>(args, context, plan_of(args, context)); });
}

const Rung<Attention> self{{.name = "split_kv_stream",
                            .after = "split_kv",
                            .backend = device_backend,
                            .supports = supports,
                            .work = work,
                            .run = run}};

}  // namespace
}  // namespace rung
#endif
