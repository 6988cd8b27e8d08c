// SPDX-License-Identifier: Apache-2.0
// gemm / short k
//
// Idea     with a short k, the time is that of writing C. An ordinary store first reads the line
//          from memory (write-allocate); non-temporal stores write whole lines and bypass the
//          caches.
// Changes  against packed_simd: all of k at once, B packed whole; tiles sweep along the rows of C
//          and stream their results.
// Cost     C is transferred once, not twice; A and B are small.
// Limits   beta = 0, k up to 128, a C larger than the caches, 64-byte aligned rows, no epilogue.
// Source   measured here.
#include "rung/cpu/foreach_target.hpp"

#include <hwy/cache_control.h>

#include <tuple>

#include "rung/cpu/team.hpp"
#include "rung/ops/gemm/cpu/detail/blocked.hpp"
#include "rung/ops/gemm/cpu/detail/facts.hpp"
#include "rung/ops/gemm/cpu/detail/tile-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::gemm_cpu::HWY_NAMESPACE {
namespace {

template <class T, int rows>
void stream_tile(const TileArgs<T>& t) {
  const Full<T> d;
  using V = hn::Vec<Full<T>>;
  constexpr int vectors = 2;
  V acc[rows][vectors];
#pragma GCC unroll 32
  for (int i = 0; i < rows; ++i) acc[i][0] = acc[i][1] = hn::Zero(d);
  const T* a = t.a;
  const T* b = t.b;
  for (std::int64_t p = 0; p < t.k; ++p, a += t.a_column, b += vectors * lanes<T>()) {
    V row[vectors];
    load_b_row<vectors, Source::packed>(d, b, hn::Mask<Full<T>>(), row);
    update<rows, vectors, Source::strided>(d, a, t.a_row, row, acc);
  }
  const V alpha = hn::Set(d, t.alpha);
#pragma GCC unroll 32
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < vectors; ++j) {
      hn::Stream(hn::Mul(acc[i][j], alpha), d, t.c + i * t.c_row + j * lanes<T>());
    }
  }
}

template <class T>
TileFunction<T>* const* stream_table() {
  return table_by_rows<TileFunction<T>, tile_rows>(
      []<int rows>() { return &stream_tile<T, rows>; });
}

/// Returns the kernels of both accumulator types, indexed by rows - 1.
inline auto stream_tiles() { return std::tuple{stream_table<float>(), stream_table<double>()}; }

}  // namespace
}  // namespace rung::gemm_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::gemm_cpu {
namespace {
HWY_EXPORT(stream_tiles);

// Returns whether all rows of C are aligned: misaligned non-temporal stores fault.
bool rows_aligned(const RowMajorProduct& call) {
  constexpr std::int64_t line = 64;
  const auto size = static_cast<std::int64_t>(size_of(call.out));
  return reinterpret_cast<std::uintptr_t>(call.c.data) % line == 0 &&
         call.c.row * size % line == 0 && call.c.batch * size % line == 0;
}

constexpr std::int64_t b_bytes = 384 << 10;  // limit of packed B: L2 also holds A and C's lines

template <class T>
void short_k(const RowMajorProduct& call, Context& context) {
  const Kernels<T>& ks = kernels<T>();
  const auto stream = std::get<TileFunction<T>* const*>(HWY_DYNAMIC_DISPATCH(stream_tiles)());
  const int threads = threads_worth(call, context.threads());
  const std::int64_t width = ks.tile_columns();
  constexpr std::int64_t size = sizeof(T);
  const std::int64_t columns_at_once =
      std::min(round_up(call.n, width), b_bytes / (call.k * size) / width * width);
  const std::int64_t b_size = round_up(columns_at_once * call.k, 1024);
  T* workspace = static_cast<T*>(context.workspace(threads * b_size * size));

  // A remembered choice may run on a C with another alignment.
  const bool aligned = rows_aligned(call);
  cpu::run_shares(threads, [&](const cpu::Team& team) {
    // Each thread packs its own copy of B, which its L2 must hold anyway.
    T* b = workspace + team.rank() * b_size;
    // Shares are whole tiles: a tile with fewer rows sums in another order.
    const cpu::Range tiles = team.share(ceil_div(call.m, ks.tile_rows));
    const cpu::Range rows{tiles.begin * ks.tile_rows, std::min(tiles.end * ks.tile_rows, call.m)};
    for (std::int64_t batch = 0; batch < call.batch; ++batch) {
      for (std::int64_t j = 0; j < call.n; j += columns_at_once) {
        const std::int64_t columns = std::min(columns_at_once, call.n - j);
        pack_b(call, ks, batch, 0, call.k, j, columns, b);
        for (std::int64_t i = rows.begin; i < rows.end; i += ks.tile_rows) {
          const std::int64_t count = std::min<std::int64_t>(ks.tile_rows, rows.end - i);
          TileArgs<T> t{call.k,
                        static_cast<const T*>(at(call.a, call.in, batch, i, 0)),
                        call.a.row,
                        call.a.column,
                        b,
                        width,
                        static_cast<T*>(at(call.c, call.out, batch, i, j)),
                        call.c.row,
                        0,
                        static_cast<T>(call.alpha),
                        T{0}};
          for (std::int64_t x = 0; x < columns; x += width) {
            t.columns = static_cast<int>(std::min(width, columns - x));
            t.b = b + x * call.k;
            if (aligned && t.columns == width) {
              stream[count - 1](t);
            } else {  // partial lines do not pay with non-temporal stores
              const int vectors = strip_width(ks, t.columns) / ks.lanes;
              ks.tile(Source::strided, Source::packed, vectors, count)(t);
            }
            t.c += width;
          }
        }
      }
    }
    hwy::FlushStream();
  });
}

Support supports(const Gemm::Args& args, const Context&) {
  if (args.c.empty()) return unsupported("C is empty");
  const RowMajorProduct call = row_major_product(args);
  if (call.in != call.out || !call.direct()) {
    return unsupported("takes f32 or f64, and rows or columns of C contiguous");
  }
  if (call.depth() == 0 || call.k > 128) return unsupported("takes k from 1 to 128");
  if (call.beta != 0.0 || call.has_epilogue()) return unsupported("takes beta = 0, no epilogue");
  // A matrix that fits in a cache is better left there for its reader.
  constexpr std::int64_t cached_bytes = 16 << 20;
  const auto size = static_cast<std::int64_t>(size_of(call.out));
  if (call.m * call.n * size < cached_bytes) return unsupported("C is less than 16 MiB");
  if (!rows_aligned(call)) return unsupported("rows of C do not start on cache lines");
  return supported;
}

Work work(const Gemm::Args& args, const Context& context) {
  const RowMajorProduct call = row_major_product(args);
  return {.threads = threads_worth(call, context.threads())};
}

void run(const Gemm::Args& args, Context& context) {
  const RowMajorProduct call = row_major_product(args);
  visit<float, double>(call.in, [&]<class T>() { short_k<T>(call, context); });
}

const Rung<Gemm> self{
    {.name = "short_k", .after = "packed_simd", .supports = supports, .work = work, .run = run}};
}  // namespace
}  // namespace rung::gemm_cpu
#endif
