// SPDX-License-Identifier: Apache-2.0
// pool / shared rows
//
// Idea     A block computes a tile of 64 x 8 outputs of one image and channel. It stages the rows
//          of x under their windows in shared memory, padded, by coalesced loads; taps are read
//          from shared memory without bounds checks.
// Changes  Against naive: each element of x is loaded once per tile, in full sectors whatever the
//          stride, and widened once. (types/vectorized_nhwc serves the other layout.)
// Cost     A load and a store to shared memory per element of x and of the halo: at k = 3, s = 2 a
//          tile reads 17 x 129 for 16 x 128. kh kw shared loads per output; a stride of 2 gives
//          2-way bank conflicts.
// Limits   Contiguous rows; tiles whose rows fit in 48 KiB.
// Source   V. Volkov, Better performance at lower occupancy, 2010, on the work per thread.
#include "rung/ops/pool/cuda/detail/images.hpp"
#include "rung/ops/pool/shared/facts.hpp"

namespace rung {
namespace {

using namespace pool_cuda;

constexpr int lanes = 32;
constexpr int warps = 8;
constexpr int tile_columns = 64;
constexpr int tile_rows = 8;
constexpr std::int64_t max_shared = 48 << 10;
constexpr std::int64_t max_planes = 1024;  // extent of the grid along y: fills a device

/// Returns the extent of x along an axis that `windows` windows cover.
constexpr std::int64_t staged(const PoolAxis& axis, std::int64_t windows) {
  return (windows - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1;
}

template <Pooling kind, class T>
__global__ void __launch_bounds__(lanes* warps)
    pool_shared_rows(Images<T> p, std::int64_t planes, int tiles_along_row) {
  using Sum = Accumulator<T>;
  Sum* const tile = &shared<Sum>();
  const std::int64_t first_column = blockIdx.x % tiles_along_row * std::int64_t{tile_columns};
  const std::int64_t first_row = blockIdx.x / tiles_along_row * std::int64_t{tile_rows};
  const int columns =
      static_cast<int>(smaller<std::int64_t>(tile_columns, p.columns.out - first_column));
  const int rows = static_cast<int>(smaller<std::int64_t>(tile_rows, p.rows.out - first_row));
  const int width = static_cast<int>(staged(p.columns, columns));
  const int height = static_cast<int>(staged(p.rows, rows));
  const std::int64_t h0 = p.rows.start(first_row);
  const std::int64_t w0 = p.columns.start(first_column);
  const int lane = static_cast<int>(threadIdx.x);
  const int warp = static_cast<int>(threadIdx.y);
  const bool with_position =
      kind == Pooling::max && (p.indices_i32.data != nullptr || p.indices_i64.data != nullptr);

  for (std::int64_t plane = blockIdx.y; plane < planes; plane += gridDim.y) {
    OutputPosition at{};
    std::int64_t rest = plane;
    at.c = take_axis(rest, p.y.shape[1]);
    at.n = rest;
    for (int r = warp; r < height; r += warps) {
      const std::int64_t h = h0 + r;
      const T* from = &p.x(at.n, at.c, h, 0);
      const bool row_exists = h >= 0 && h < p.rows.in;
      for (int c = lane; c < width; c += lanes) {
        const std::int64_t w = w0 + c;
        Sum v = Pooled<kind, Sum>::identity;
        if (row_exists && w >= 0 && w < p.columns.in) v = convert<Sum>(from[w]);
        tile[r * width + c] = v;
      }
    }
    __syncthreads();
    for (int r = warp; r < rows; r += warps) {
      for (int c = lane; c < columns; c += lanes) {
        at.oh = first_row + r;
        at.ow = first_column + c;
        const Sum* window = tile + r * static_cast<int>(p.rows.stride) * width +
                            c * static_cast<int>(p.columns.stride);
        Pooled<kind, Sum> pooled;
        if (with_position) {
          // The first tap within the image is the maximum if none is greater than -infinity.
          const PoolTaps by_row = p.rows.taps(at.oh);
          const PoolTaps by_column = p.columns.taps(at.ow);
          for (std::int64_t i = by_row.begin; i < by_row.end; ++i) {
            const std::int64_t h = p.rows.start(at.oh) + i * p.rows.dilation;
            for (std::int64_t j = by_column.begin; j < by_column.end; ++j) {
              const std::int64_t w = p.columns.start(at.ow) + j * p.columns.dilation;
              pooled.take_at(window[i * p.rows.dilation * width + j * p.columns.dilation],
                             h * p.columns.in + w);
            }
          }
        } else {
          const int kernel = static_cast<int>(p.columns.kernel);
          const int dilation = static_cast<int>(p.columns.dilation);
          const int row_step = static_cast<int>(p.rows.dilation) * width;
          for (int i = 0; i < static_cast<int>(p.rows.kernel); ++i, window += row_step) {
            for (int j = 0; j < kernel; ++j) {
              const Sum v = window[j * dilation];
              if constexpr (kind == Pooling::weighted) {
                pooled.take_weighted(v, p.weight(i, j));
              } else {
                pooled.take(v);
              }
            }
          }
        }
        finish(p, at, pooled.result(divisor_of<kind>(p, at.oh, at.ow)));
        if (with_position) write_index(p, at, pooled.position);
      }
    }
    __syncthreads();
  }
}

std::int64_t shared_bytes(const Pool::Args& args) {
  const auto element = static_cast<std::int64_t>(args.x.dtype == DType::f64 ? 8 : 4);
  return staged(args.columns, smaller<std::int64_t>(tile_columns, args.columns.out)) *
         staged(args.rows, smaller<std::int64_t>(tile_rows, args.rows.out)) * element;
}

std::int64_t tiles_of(const Pool::Args& args) {
  return ceil_div(args.columns.out, tile_columns) * ceil_div(args.rows.out, tile_rows);
}

Support supports(const Pool::Args& args, const Context&) {
  if (args.x.strides[3] != 1) return unsupported("the rows of x must be contiguous");
  constexpr std::int64_t max_span = 4096;  // prevents overflow of products below
  for (const PoolAxis* axis : {&args.rows, &args.columns}) {
    if (axis->stride > max_span || staged(*axis, 1) > max_span) {
      return unsupported("windows and strides of up to 4096");
    }
  }
  if (shared_bytes(args) > max_shared) {
    return unsupported("the rows of a tile must fit in 48 KiB");
  }
  return tiles_of(args) <= 0x7fffffff ? supported
                                      : unsupported("more tiles than a grid has blocks");
}

/// Returns the work of a call for the time model. A tile is loaded by rows; a window is read from
/// shared memory, eight elements at a time.
Work work(const Pool::Args& args, const Context&) {
  const std::int64_t planes = args.images() * args.channels(), along = smaller(planes, max_planes);
  const std::int64_t loads = ceil_div(staged(args.rows, tile_rows), warps) *
                             ceil_div(staged(args.columns, tile_columns), lanes);
  return pool_facts(tiles_of(args) * along, ceil_div(planes, along) * (loads + args.taps() / 8));
}

void run(const Pool::Args& args, Context& context) {
  const std::int64_t planes = args.images() * args.channels();
  const std::int64_t tiles_along_row = ceil_div(args.columns.out, tile_columns);
  with_kind_and_type(args, [&]<Pooling kind, class T>() {
    launch(context,
           {.grid = {tiles_of(args), smaller(planes, max_planes)},
            .block = {lanes, warps},
            .shared_bytes = static_cast<std::size_t>(shared_bytes(args))},
           pool_shared_rows<kind, T>, images_of<T>(args), planes,
           static_cast<int>(tiles_along_row));
  });
}

const Rung<Pool> self{{.name = "shared_rows",
                       .step = 30,
                       .after = "naive",
                       .backend = device_backend,
                       .supports = supports,
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
