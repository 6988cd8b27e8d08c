// SPDX-License-Identifier: Apache-2.0
// attention / tensor cores
//
// Idea     Compute both products with mma.sync. A warp owns 16 queries; their scores stay in
//          registers, where they are exponentiated and become the A operand of the second product,
//          because accumulator and operand layouts agree.
// Changes  against warp_tiled: 16-bit operands on tensor cores, ldmatrix fragments from swizzled
//          tiles, and cp.async prefetch of the next keys and values during the products. Keys and
//          values of e4m3 are prefetched as they are, and converted to the type of q in shared
//          memory.
// Cost     K and V are read once per 64 queries of a head, from L2 if they fit. A warp issues one
//          ldmatrix of K or V per two mma.sync. e4m3 is converted once per 64 queries.
// Limits   Contiguous rows of at most 256 elements. Unaligned rows are loaded as aligned chunks and
//          shifted in registers, which is slower. Every warp loads all of K and V from shared
//          memory for its 16 rows.
// Source   Dao 2023, FlashAttention-2; PTX ISA, "Matrix fragments for mma.m16n8k16".
#include <type_traits>

#include "rung/device/e4m3.hpp"
#include "rung/device/load_anywhere.hpp"
#include "rung/device/ptx/async_copy.hpp"
#include "rung/device/ptx/matrix.hpp"
#include "rung/ops/attention/cuda/detail/apply_rule.hpp"
#include "rung/ops/attention/cuda/detail/exact_row.hpp"
#include "rung/ops/attention/cuda/detail/facts.hpp"
#include "rung/ops/attention/shared/cuda/row_tile.hpp"

namespace rung {
namespace {

using namespace attention_cuda;

/// Tile sizes of one padded width of Q, K and V rows.
struct Tuning {
  int warps;  // of 16 queries each
  int keys;   // per tile
  [[nodiscard]] constexpr int rows() const { return warp_rows * warps; }
  [[nodiscard]] constexpr int threads() const { return 32 * warps; }
};
// Two blocks fit per SM: 80 KiB each at a width of 128, 96 KiB at 256. A thread holds keys / 2
// scores and width / 2 sums.
template <int Width>
constexpr Tuning tuning = {.warps = 4, .keys = Width == 256 ? 32 : 64};

/// Rows of e4m3 on their way to a RowTile, as chunks of 16 elements in the order in which threads
/// copy them: each thread converts the chunks that it copied, so no barrier is between the two.
template <int Rows, int Width>
struct RawTile {
  static constexpr int chunk = 16;
  static constexpr int bytes = Rows * Width;

  /// Starts the copy of rows, as RowTile::copy() does.
  template <int Threads, class RowAt>
  static __device__ __forceinline__ void copy(unsigned char* raw, const RowAt& row_at, int columns,
                                              int first, int end, bool wide) {
    const int chunks = (columns + chunk - 1) / chunk;
    for (int i = static_cast<int>(threadIdx.x); i < Rows * chunks; i += Threads) {
      const int row = i / chunks;
      const int column = i % chunks * chunk;
      const int valid = first + row < end ? min(columns - column, chunk) : 0;
      const e4m3* const start = row_at(valid > 0 ? first + row : first);
      if (wide) {
        ptx::async_copy<16>(raw + i * chunk, start + (valid > 0 ? column : 0), valid);
      } else {
        store_raw(reinterpret_cast<e4m3*>(raw + i * chunk),
                  load_anywhere<chunk>(start, column, valid > 0 ? columns : 0));
      }
    }
  }

  /// Converts the thread's chunks, whose copies are complete, and stores them in a RowTile.
  template <int Threads, class T>
  static __device__ __forceinline__ void convert(unsigned char* tile, const unsigned char* raw,
                                                 int columns) {
    const int chunks = (columns + chunk - 1) / chunk;
    for (int i = static_cast<int>(threadIdx.x); i < Rows * chunks; i += Threads) {
      const auto bytes = load_raw<chunk>(reinterpret_cast<const e4m3*>(raw + i * chunk));
      std::uint32_t words[4];
      __builtin_memcpy(words, &bytes, sizeof(words));
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        std::uint32_t pairs[4];
        widen_e4m3<T>(words[2 * half], pairs[0], pairs[1]);
        widen_e4m3<T>(words[2 * half + 1], pairs[2], pairs[3]);
        RawPack<T, 8> wide;
        __builtin_memcpy(&wide, pairs, sizeof(wide));
        const int column = i % chunks * chunk + 8 * half;
        store_raw(reinterpret_cast<T*>(tile + RowTile<T, Rows, Width>::place(i / chunks, column)),
                  wide);
      }
    }
  }
};

/// Addresses of the keys, or values, of a batch element and head in pages. The same as
/// Heads::key() and Heads::value() with 32-bit divisions.
template <class T>
struct RowsInPages {
  const T* data;  // of the head in page 0
  std::int64_t page_stride, row_stride;
  const std::int32_t* table;  // entries of the batch element
  std::int64_t table_stride;
  int page_keys, pages;
  template <class Operands>
  __device__ RowsInPages(const Operands& heads, const View<const T, 4>& rows, int batch, int head)
      : data(&rows(0, head, 0, 0)),
        page_stride(rows.strides[0]),
        row_stride(rows.strides[2]),
        table(&heads.page_table(batch, 0)),
        table_stride(heads.page_table.strides[1]),
        page_keys(static_cast<int>(rows.shape[2])),
        pages(static_cast<int>(smaller(rows.shape[0], std::int64_t{0x7fffffff}))) {}
  __device__ __forceinline__ const T* operator()(int key) const {
    const int number = key / page_keys;
    const int page = clamped(table[number * table_stride], 0, pages - 1);
    return data + page * page_stride + (key - number * page_keys) * row_stride;
  }
};

template <int Width>
struct RawTiles {
  using Tile = RawTile<tuning<Width>.keys, Width>;
  alignas(1024) unsigned char raw_k[Tile::bytes];
  alignas(1024) unsigned char raw_v[Tile::bytes];
};
struct NoRawTiles {};

/// The next keys and values are copied to the other stage or, if they must be converted, to the raw
/// tiles.
template <class T, class K, int Width>
struct Layout : std::conditional_t<std::is_same_v<T, K>, NoRawTiles, RawTiles<Width>> {
  using TileQ = RowTile<T, tuning<Width>.rows(), Width>;
  using TileK = RowTile<T, tuning<Width>.keys, Width>;  // also for V
  static constexpr int stages = std::is_same_v<T, K> ? 2 : 1;
  alignas(1024) unsigned char q[TileQ::bytes];
  alignas(1024) unsigned char k[stages][TileK::bytes];
  alignas(1024) unsigned char v[stages][TileK::bytes];
};

/// Flags of operands whose rows are 16-byte aligned; for O, 4-byte aligned.
struct WideRows {
  bool q, k, v, o;
};

/// Plain: scores are scaled products, and there are no pages. The other instances take both; those
/// for e4m3 keys are never plain.
template <class T, class K, int Width, bool Plain>
__global__ void __launch_bounds__(tuning<Width>.threads(), 2)
    attention_tensor_cores(QueryJob<T, K> job, WideRows wide) {
  constexpr Tuning shape = tuning<Width>;
  using Shared = Layout<T, K, Width>;
  using TileQ = typename Shared::TileQ;
  using TileK = typename Shared::TileK;
  constexpr bool converts = !std::is_same_v<T, K>;
  auto& layout = shared<Shared>();
  const BlockQueries work = job.template at<shape.rows()>(static_cast<int>(blockIdx.x));
  if (work.queries == 0) return;
  const int kv_head = work.head / job.heads.group;
  const bool paged = !Plain && job.heads.page_table.data != nullptr;
  const auto q = job.heads.q_of(work.batch).at(work.head);
  const auto k = job.heads.k_of(paged ? 0 : work.batch).at(kv_head);
  const auto v = job.heads.v_of(paged ? 0 : work.batch).at(kv_head);
  const int tiles = work.tiles(shape.keys);
  const auto copy_rows = [&](int first, int stage, const auto& key_at, const auto& value_at) {
    if constexpr (converts) {
      using Raw = typename Shared::Tile;
      Raw::template copy<shape.threads()>(layout.raw_k, key_at, job.width(), first, work.length,
                                          wide.k);
      Raw::template copy<shape.threads()>(layout.raw_v, value_at, job.value_width(), first,
                                          work.length, wide.v);
    } else {
      TileK::template copy<shape.threads()>(layout.k[stage], key_at, job.width(), first,
                                            work.length, wide.k);
      TileK::template copy<shape.threads()>(layout.v[stage], value_at, job.value_width(), first,
                                            work.length, wide.v);
    }
  };
  const auto copy_keys = [&](int tile, int stage) {
    const int first = work.first_key + tile * shape.keys;
    if (!paged) {
      copy_rows(first, stage, RowsAtStride<K>{k.data, k.strides[0]},
                RowsAtStride<K>{v.data, v.strides[0]});
    } else {
      copy_rows(first, stage, RowsInPages<K>(job.heads, job.heads.k, work.batch, kv_head),
                RowsInPages<K>(job.heads, job.heads.v, work.batch, kv_head));
    }
    ptx::async_commit();
  };
  TileQ::template copy<shape.threads()>(layout.q, RowsAtStride<T>{q.data, q.strides[0]},
                                        job.width(), work.first, work.queries, wide.q);
  // Process keys from last to first: the tiles with hidden keys come first.
  if (tiles > 0) copy_keys(tiles - 1, 0);

  const int warp_row = static_cast<int>(threadIdx.x) / 32 * warp_rows;
  const int first_query = work.first + warp_row;
  const int query = first_query + lane_of_thread() / 4;
  const int end_key = job.unclamped_end(work, query);
  const int end_of_first = job.unclamped_end(work, first_query);

  RowSoftmax softmax;
  float sums[Width / 2] = {};
  for (int tile = tiles - 1, stage = 0; tile >= 0; --tile, stage = Shared::stages - 1 - stage) {
    ptx::async_wait_all();
    __syncthreads();  // this tile is complete; the tile before has been read
    if constexpr (converts) {
      using Raw = typename Shared::Tile;
      Raw::template convert<shape.threads(), T>(layout.k[0], layout.raw_k, job.width());
      Raw::template convert<shape.threads(), T>(layout.v[0], layout.raw_v, job.value_width());
      if (tile > 0) copy_keys(tile - 1, 0);
      __syncthreads();  // all threads have converted this tile
    } else if (tile > 0) {
      copy_keys(tile - 1, 1 - stage);
    }

    float scores[shape.keys / 2] = {};
#pragma unroll
    for (int column = 0; column < Width; column += 16) {
      if (column >= job.width()) break;
      std::uint32_t a[4];
      TileQ::load(a, layout.q, warp_row, column);
#pragma unroll
      for (int key = 0; key < shape.keys; key += 16) {
        std::uint32_t b[4];
        TileK::load(b, layout.k[stage], key, column);
        ptx::mma<T>(scores + key / 2, a, {b[0], b[2]});
        ptx::mma<T>(scores + key / 2 + 4, a, {b[1], b[3]});
      }
    }

    const int first_key = work.first_key + tile * shape.keys;
    if (!Plain && job.ruled) apply_rule(scores, job, work, query, first_key);
    if (job.needs_mask(first_key, shape.keys, end_of_first, warp_rows)) {
      hide_scores(scores, first_key, end_key, job.later_end(), job.window);
    }
    float factor[2];
    softmax.add_tile(scores, job.scale, factor);
    scale_rows(sums, factor);
    std::uint32_t powers[shape.keys / 16][4];
    to_operand<T>(scores, powers);

#pragma unroll
    for (int column = 0; column < Width; column += 16) {
      if (column >= job.value_width()) break;
#pragma unroll
      for (int step = 0; step < shape.keys / 16; ++step) {
        std::uint32_t b[4];
        TileK::template load<true>(b, layout.v[stage], 16 * step, column);
        ptx::mma<T>(sums + column / 2, powers[step], {b[0], b[1]});
        ptx::mma<T>(sums + column / 2 + 4, powers[step], {b[2], b[3]});
      }
    }
  }

  float normalize[2];
  finish_rows(job, work, softmax, normalize);
  const auto o = job.heads.o_of(work.batch).at(work.head);
  float check[2] = {0, 0};
#pragma unroll
  for (int i = 0; i < Width / 2; i += 2) {
    const int row = accumulator_row(i);
    const int column = accumulator_column(i);
    const int left = job.value_width() - column;
    const float low = sums[i] * normalize[row];
    const float high = sums[i + 1] * normalize[row];
    check[row] = fmaf(low, 0.0f, fmaf(high, 0.0f, check[row]));
    if (query + 8 * row >= work.queries || left <= 0) continue;
    T* const to = o.data + (query + 8 * row) * o.strides[0] + column;
    const Pack<T, 2> pair = convert<T>(Pack<float, 2>{{low, high}});
    if (wide.o) {
      store_wide(to, pair, left);
    } else {
      store(to, pair, left);
    }
  }
  write_log_sums(job, work, first_query, softmax);
  __syncwarp();
  repair_rows<Width>(job, work, first_query, check, [&](int row, int column, float value) {
    o.data[(first_query + row) * o.strides[0] + column] = convert<T>(value);
  });
}

/// Fewest queries per block over all widths.
constexpr int min_rows = tuning<128>.rows();

Support supports(const Attention::Args& args, const Context&) {
  return require_tensor_cores(args, min_rows);
}

Work work(const Attention::Args& args, const Context&) {
  return with_width(args, [&]<class, int Width>() {
    return query_work(args, tuning<Width>.rows(), tuning<Width>.keys, Width, 2);
  });
}

void run(const Attention::Args& args, Context& context) {
  with_width(args, [&]<class T, int Width>() {
    constexpr Tuning shape = tuning<Width>;
    const WideRows wide{.q = starts_rows_at(args.q, 16),
                        .k = starts_rows_at(args.k, 16),
                        .v = starts_rows_at(args.v, 16),
                        .o = starts_rows_at(args.o, 4)};
    const auto launch_on = [&]<class K>(auto kernel) {
      const QueryJob<T, K> job = query_job<T, K>(args, context, shape.rows());
      launch(context,
             {.grid = job.order.total(),
              .block = shape.threads(),
              .shared_bytes = sizeof(Layout<T, K, Width>)},
             kernel, job, wide);
    };
    if (args.has_e4m3_keys()) {
      launch_on.template operator()<e4m3>(attention_tensor_cores<T, e4m3, Width, false>);
    } else if (args.has_plain_scores() && !args.has_pages()) {
      launch_on.template operator()<T>(attention_tensor_cores<T, T, Width, true>);
    } else {
      launch_on.template operator()<T>(attention_tensor_cores<T, T, Width, false>);
    }
  });
}

const Rung<Attention> self{{.name = "tensor_cores",
                            .step = 100,
                            .after = "warp_tiled",
                            .backend = device_backend,
                            .supports = supports,
                            .work = work,
                            .run = run}};

}  // namespace
}  // namespace rung
