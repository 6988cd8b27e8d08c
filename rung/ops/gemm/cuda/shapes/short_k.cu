// SPDX-License-Identifier: Apache-2.0
// gemm / short k
//
// Idea     with a short k, the time is that of writing C. A lane keeps its columns of B, all of k,
//          in registers and loops over the rows of C; rows of A are broadcast from shared memory.
// Changes  against simt_top: no staging of data that is used once or twice. A warp writes 128
//          contiguous elements of a row by packs of 16 bytes, whatever the alignment of C: every
//          fourth row has the same alignment, so a warp that processes only those can shift its
//          columns to pack boundaries.
// Cost     C once; A once per 128 columns, B once per 32 to 512 rows. Per row and lane, 4 k
//          multiply-adds and 45 other instructions (nvcc, f32 without an epilogue).
// Limits   k up to 16.
// Source   the CPU rung short_k.
#include "rung/core/integer.hpp"
#include "rung/device/activate_all.hpp"
#include "rung/device/tile/epilogue.hpp"
#include "rung/ops/gemm/cuda/detail/rung.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr int max_k = 16;
constexpr int rows = 64;
constexpr int warps = 8;
constexpr int threads = 32 * warps;

/// Columns per lane.
template <class Sum>
constexpr int lane_columns = vector_width<Sum>;

/// Rows that a warp computes together, which overlaps their latencies. Doubles leave registers for
/// only one row.
template <class Sum>
constexpr int rows_at_once = sizeof(Sum) == 8 ? 1 : 2;

constexpr int blocks = 2;  // per SM: as registers allow with 16 steps of k

/// Columns of a lane: adjacent, or a warp apart. A set bit marks a column inside C.
struct ShortColumns {
  std::int64_t first;
  int apart;
  unsigned existing;

  [[nodiscard]] __device__ bool exists(int j) const { return (existing >> j & 1) != 0; }
};

/// Loads a lane's columns of `k` rows of B, zero-padded, each row by one load if possible. The
/// loads of four rows are in flight together and are converted after the last.
template <int Depth, int Width, class In, class Sum>
__device__ __forceinline__ void load_columns(const View<const In, 2>& b, int k,
                                             const ShortColumns& columns, bool wide,
                                             Sum (&to)[Depth][Width]) {
  constexpr int together = 4;
#pragma unroll
  for (int first = 0; first < Depth; first += together) {
    Pack<In, Width> loaded[together] = {};
    if (wide && first < k) {
#pragma unroll
      for (int i = 0; i < together; ++i) {
        loaded[i] = load_wide<Width>(&b(smaller(first + i, k - 1), columns.first));
      }
    } else if (first < k) {
#pragma unroll
      for (int i = 0; i < together; ++i) {
#pragma unroll
        for (int j = 0; j < Width; ++j) {
          if (!columns.exists(j)) continue;
          loaded[i][j] = b(smaller(first + i, k - 1), columns.first + j * columns.apart);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < together; ++i) {
#pragma unroll
      for (int j = 0; j < Width; ++j) {
        to[first + i][j] = first + i < k ? convert<Sum>(loaded[i][j]) : Sum(0);
      }
    }
  }
}

/// Returns the period, a power of two, after which rows of C have the same alignment relative to
/// packs.
RUNG_HD inline int rows_alike(std::int64_t row_stride, int width) {
  int rows = 1;
  while (row_stride * rows % width != 0) rows *= 2;
  return rows;
}

/// Computes C with Depth (8 or 16) steps of k in registers. `along` of a block's warps are adjacent
/// on a row, the others on the next rows; if C's rows are contiguous, those next rows have equal
/// alignment. A block computes `height` rows in tiles of 64 and loads the next tile's elements of A
/// while it computes one.
template <int Depth, class P>
__global__ void __launch_bounds__(threads, blocks) gemm_short_k(P p, int height, int along) {
  using Sum = typename P::Sum;
  using Out = typename P::Out;
  constexpr int width = lane_columns<Sum>;
  constexpr int at_once = rows_at_once<Sum>;
  struct Layout {
    alignas(16) Sum a[2][rows][Depth];
  };
  auto& layout = shared<Layout>();
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int batch = static_cast<int>(blockIdx.z);
  const std::int64_t first_row = std::int64_t{blockIdx.y} * height;
  const int warp = thread / 32;
  const int down = warps / along;
  const int first_within = warp / along;
  const auto rows_left = static_cast<int>(smaller<std::int64_t>(height, p.m() - first_row));
  const auto a = p.a.at(batch);
  const auto b = p.b.at(batch);
  const auto k = static_cast<int>(p.k());
  // A lane's columns are adjacent if one store writes them; else a warp's lanes are.
  const bool packed = p.c.strides[2] == 1;
  const auto element =
      reinterpret_cast<std::uintptr_t>(&p.c(batch, first_row + first_within, 0)) / sizeof(Out);
  const int before = packed ? static_cast<int>(element % width) : 0;
  ShortColumns columns{};
  columns.apart = packed ? 1 : 32;
  columns.first = (std::int64_t{blockIdx.x} * along + warp % along) * 32 * width - before +
                  (packed ? lane * width : lane);
  const auto left = static_cast<int>(smaller<std::int64_t>(p.n() - columns.first, 32 * width));
  columns.existing = 0;
#pragma unroll
  for (int j = 0; j < width; ++j) {
    const bool exists = columns.first + j >= 0 && j * columns.apart < left;
    columns.existing |= exists ? 1U << j : 0U;
  }
  const bool whole = packed && columns.existing == (1U << width) - 1;

  const bool along_k = a.strides[1] <= a.strides[0];
  constexpr int a_count = rows * Depth / threads;
  static_assert(a_count * threads == rows * Depth);
  typename P::In a_next[a_count];  // converted when stored: no earlier wait for a load
  const auto place = [&](int i) {
    const int at = thread + i * threads;
    return along_k ? at : at % rows * Depth + at / rows;
  };
  const auto fetch = [&](int tile) {
#pragma unroll
    for (int i = 0; i < a_count; ++i) {
      const int row = tile * rows + place(i) / Depth;
      const int step = place(i) % Depth;
      const bool exists = row < rows_left && step < k;
      a_next[i] = exists ? a(first_row + row, step) : typename P::In{};
    }
  };
  fetch(0);
  const bool b_wide = whole && b.strides[1] == 1 && b.strides[0] % width == 0 &&
                      is_wide_aligned<typename P::In, width>(&b(0, columns.first));
  Sum b_values[Depth][width];
  load_columns(b, k, columns, b_wide, b_values);

  int row = first_within;
  Out* c = &p.c(batch, first_row + row, columns.first);
  const Out* bias =
      p.bias.data == nullptr ? nullptr : &p.bias(batch, first_row + row, columns.first);
  const std::int64_t c_apart = columns.apart * p.c.strides[2];
  const std::int64_t row_apart = down * p.c.strides[1];
  const bool plain = is_plain(p);
  const std::int64_t bias_apart = columns.apart * p.bias.strides[2];
  const Out* residual =
      p.residual.data == nullptr ? nullptr : &p.residual(batch, first_row + row, columns.first);
  const std::int64_t residual_apart = columns.apart * p.residual.strides[2];
#pragma unroll 1
  for (; row - first_within < rows_left; row += at_once * down) {
    const int tile = row / rows;
    const int within = row % rows;
    auto& a_tile = layout.a[tile % 2];
    if (within < down) {
#pragma unroll
      for (int i = 0; i < a_count; ++i) (&a_tile[0][0])[place(i)] = convert<Sum>(a_next[i]);
      // The tile has arrived for all threads, and all have read the tile before last, whose buffer
      // it uses.
      __syncthreads();
      if ((tile + 1) * rows < rows_left) fetch(tile + 1);
    }
    if (row >= rows_left || columns.existing == 0) continue;
    const auto exists = [&](int r, int j) {
      return columns.exists(j) && (r == 0 || row + r * down < rows_left);
    };
    Pack<Sum, at_once * width> values{};
#pragma unroll
    for (int step = 0; step < Depth; step += 2) {
      if (step >= k) break;
#pragma unroll
      for (int r = 0; r < at_once; ++r) {
        const Pack<Sum, 2> factors = load_wide<2>(&a_tile[within + r * down][step]);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
#pragma unroll
          for (int j = 0; j < width; ++j) {
            values[r * width + j] += factors[i] * b_values[step + i][j];
          }
        }
      }
    }
    const auto write = [&](int r, const Pack<Sum, width>& of_row) {
      const Pack<Out, width> results = convert<Out>(of_row);
      Out* const to = c + r * row_apart;
      if (whole) {
        store_wide(to, results);
        return;
      }
#pragma unroll
      for (int j = 0; j < width; ++j) {
        if (columns.exists(j)) to[j * c_apart] = results[j];
      }
    };
    if (plain) {
#pragma unroll
      for (int r = 0; r < at_once; ++r) {
        if (r > 0 && row + r * down >= rows_left) break;
        Pack<Sum, width> of_row;
#pragma unroll
        for (int j = 0; j < width; ++j) of_row[j] = p.alpha * values[r * width + j];
        write(r, of_row);
      }
      c += at_once * row_apart;
      continue;
    }
    const auto add = [&](Sum factor, const Out* from, std::int64_t row_stride, std::int64_t apart) {
#pragma unroll
      for (int r = 0; r < at_once; ++r) {
#pragma unroll
        for (int j = 0; j < width; ++j) {
          if (!exists(r, j)) continue;
          values[r * width + j] += factor * convert<Sum>(from[r * down * row_stride + j * apart]);
        }
      }
    };
#pragma unroll
    for (Sum& value : values.at) value *= p.alpha;
    if (p.beta != 0) add(p.beta, c, p.c.strides[1], c_apart);
    if (bias != nullptr) {
      add(1, bias, p.bias.strides[1], bias_apart);
      bias += at_once * down * p.bias.strides[1];
    }
    activate_all<Out>(p.activation, values);
    if (residual != nullptr) {
      add(1, residual, p.residual.strides[1], residual_apart);
      residual += at_once * down * p.residual.strides[1];
    }
#pragma unroll
    for (int r = 0; r < at_once; ++r) {
      if (r > 0 && row + r * down >= rows_left) break;
      Pack<Sum, width> of_row;
#pragma unroll
      for (int j = 0; j < width; ++j) of_row[j] = values[r * width + j];
      write(r, of_row);
    }
    c += at_once * row_apart;
  }
}

Support supports(const Gemm::Args& args, const Context& context) {
  if (const Support types = require_wide_types(args, context); !types) return types;
  return args.k() <= max_k ? supported : unsupported("k is longer than 16");
}

/// Partition of a call into blocks.
struct ShortCut {
  int along;    // adjacent warps of a block on one row of C
  int height;   // rows of C per block
  int columns;  // minimum columns of C per block
};
/// Returns the partition with the most adjacent warps that row alignment allows and that leave 1.5
/// blocks per SM, and then blocks of 32 to 512 rows that fill whole waves. C's rows are contiguous
/// if either axis is.
template <class P>
ShortCut cut_short(const P& p, const Context& context) {
  constexpr int width = lane_columns<typename P::Sum>;
  constexpr int warp_columns = 32 * width;
  const bool packed = p.c.strides[2] == 1;
  const int max_along = warps / (packed ? rows_alike(p.c.strides[1], width) : 1);
  const double enough = 1.5 * context.info().sms;
  const double row_tiles =
      static_cast<double>(tiles_of(p.m(), rows)) * static_cast<double>(p.c.shape[0]);
  const auto blocks_with = [&](int along) {
    return row_tiles * static_cast<double>(tiles_of(p.n(), std::int64_t{warp_columns} * along));
  };
  int along = 1;
  while (along < max_along && std::int64_t{warp_columns} * along < p.n() &&
         blocks_with(along * 2) >= enough) {
    along *= 2;
  }
  const bool aligned = p.c.strides[1] % width == 0 && p.c.strides[0] % width == 0 &&
                       is_wide_aligned<typename P::Out, width>(p.c.data);
  // A block covers up to width - 1 fewer columns if packs begin before C's first column.
  const int columns = warp_columns * along - (packed && !aligned ? width - 1 : 0);
  constexpr std::int64_t least_rows = rows / 2;
  constexpr std::int64_t most_rows = rows * 8;
  const std::int64_t strips = tiles_of(p.n(), columns) * p.c.shape[0];
  const std::int64_t at_once = std::int64_t{blocks} * context.info().sms;
  const std::int64_t waves = tiles_of(strips * tiles_of(p.m(), most_rows), at_once);
  const std::int64_t down =
      clamped<std::int64_t>(waves * at_once / larger<std::int64_t>(strips, 1), 1,
                            larger<std::int64_t>(tiles_of(p.m(), least_rows), 1));
  const int rows_per_pass = rows_at_once<typename P::Sum> * warps / along;
  return {.along = along,
          .height = static_cast<int>(clamped<std::int64_t>(
              round_up(tiles_of(p.m(), down), rows_per_pass), least_rows, most_rows)),
          .columns = columns};
}

template <class P>
Work short_work(const P& p, const Gemm::Args& args, const Context& context) {
  constexpr int width = lane_columns<typename P::Sum>;
  constexpr int at_once = rows_at_once<typename P::Sum>;
  const ShortCut cut = cut_short(p, context);
  const double rounds =
      static_cast<double>(smaller<std::int64_t>(cut.height, p.m())) * cut.along / warps / at_once;
  const std::int64_t instructions = (round_up(p.k(), 2) * width + 45) * at_once;
  const double grid = static_cast<double>(tiles_of(p.m(), cut.height) *
                                          tiles_of(p.n(), cut.columns) * args.batch());
  return {.bytes = Gemm::cost(args).bytes * (p.c.strides[2] == 1 ? 1 : 4),
          .blocks = grid,
          .resident = blocks,
          .rounds = rounds,
          .steps = unevenness(grid, context) * rounds * static_cast<double>(instructions),
          .path = sizeof(typename P::Sum) == 8 ? "f64" : ""};
}

Work work(const Gemm::Args& args, const Context& context) {
  Work work;
  with_product(args,
               [&](const auto& p) { work = short_work(with_contiguous_c(p), args, context); });
  return work;
}

void run(const Gemm::Args& args, Context& context) {
  with_product(args, [&]<class P>(const P& given) {
    const P p = with_contiguous_c(given);
    const int depth = p.k() <= max_k / 2 ? max_k / 2 : max_k;
    const ShortCut cut = cut_short(p, context);
    launch_tiles(context,
                 {.rows = cut.height,
                  .columns = cut.columns,
                  .block = threads,
                  .shared_bytes = sizeof(typename P::Sum) * 2 * rows * depth},
                 depth == max_k ? gemm_short_k<max_k, P> : gemm_short_k<max_k / 2, P>, p,
                 cut.height, cut.along);
  });
}

const Rung<Gemm> self{{.name = "short_k",
                       .after = "simt_top",
                       .backend = device_backend,
                       .supports = supports,
                       .tile = {.rows = rows, .columns = 128},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
