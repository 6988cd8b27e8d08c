// SPDX-License-Identifier: Apache-2.0
// image / register rows
//
// Idea     Sobel's masks are products of a row and a column: of each row of x, a thread needs only
//          the difference and the weighted sum of three neighbors. It walks down 16 rows of its
//          column and keeps these two values of the last three rows in registers.
// Changes  Against shared_tile: 3 loads per row, mostly L1 hits on the loads of adjacent lanes,
//          instead of 8 from shared memory. Without barriers, loads of later rows are in flight
//          while earlier rows are finished. Border neighbors are resolved once per column.
// Cost     18 rows of 3 loads per 16 results; x from memory once.
// Limits   Sobel; any strides.
#include "rung/ops/image/cuda/detail/rows.hpp"

namespace rung {
namespace {

using namespace image_cuda;

constexpr int lanes = 32, warps = 8;
constexpr int thread_rows = 16;
constexpr int block_rows = warps * thread_rows;

template <class T>
__global__ void __launch_bounds__(lanes* warps)
    image_register_rows(const __grid_constant__ Rows<T> p) {
  using Sum = typename Filter<T>::Sum;
  const int element = static_cast<int>(blockIdx.x) * lanes + static_cast<int>(threadIdx.x);
  if (element >= p.elements) return;
  const Plane<T> plane(p, blockIdx.z);
  const T* const middle = plane.x + element * p.x_step;
  const T* const left = plane.x + p.inside(element - p.group) * p.x_step;
  const T* const right = plane.x + p.inside(element + p.group) * p.x_step;
  const int first =
      (static_cast<int>(blockIdx.y) * warps + static_cast<int>(threadIdx.y)) * thread_rows;
  T* y = plane.y + first * p.y_row + element * p.y_step;
  const bool is_copied = p.is_alpha(plane.number, element);

  // Differences of three rows, the newest last.
  Sum difference[3] = {};
  Sum sum[3] = {};
  T copied[3] = {};
#pragma unroll
  for (int r = -1; r <= thread_rows; ++r) {
    const std::int64_t row = p.inside_row(first + r) * p.x_row;
    const auto l = static_cast<Sum>(left[row]);
    const auto m = static_cast<Sum>(middle[row]);
    const auto n = static_cast<Sum>(right[row]);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      difference[i] = difference[i + 1];
      sum[i] = sum[i + 1];
      copied[i] = copied[i + 1];
    }
    difference[2] = n - l;
    sum[2] = l + 2 * m + n;
    copied[2] = static_cast<T>(m);
    if (r < 1) continue;
    if (first + r - 1 >= p.rows) break;
    const Sum across = difference[0] + 2 * difference[1] + difference[2];
    *y = is_copied ? copied[1] : Filter<T>::magnitude(across, sum[2] - sum[0]);
    y += p.y_row;
  }
}

Support supports(const Image::Args& args, const Context&) {
  if (args.filter() != ImageFilter::sobel) return unsupported("takes sobel");
  return supports_tiles(args, block_rows);
}

Work work(const Image::Args& args, const Context&) {
  return {.blocks = tile_blocks(args, block_rows, lanes),
          .resident = 8,
          .steps = smaller<std::int64_t>(args.rows, thread_rows)};
}

void run(const Image::Args& args, Context& context) {
  visit<std::uint8_t, float>(args.x.dtype, [&]<class T>() {
    const Rows<T> p = rows_of<T>(args);
    launch(context,
           {.grid = {ceil_div(p.elements, lanes), ceil_div(p.rows, block_rows), planes_of(args)},
            .block = {lanes, warps}},
           image_register_rows<T>, p);
  });
}

const Rung<Image> self{{.name = "register_rows",
                        .step = 25,
                        .after = "shared_tile",
                        .backend = device_backend,
                        .supports = supports,
                        .work = work,
                        .run = run}};

}  // namespace
}  // namespace rung
