// SPDX-License-Identifier: Apache-2.0
// softmax_backward / sub-warp rows
//
// Idea     Rows of 16 to 512 16-bit elements: 4 to 16 lanes load the whole aligned packs of a row
//          of y and of dy, 16 bytes each, and the single elements before and after them one by one,
//          at any alignment. A warp processes up to eight rows.
// Changes  against short_rows: no staging in shared memory and no barrier; two or three shuffles
//          per row instead of up to five; 16-byte accesses by the lanes that use the elements.
// Cost     1 load each of y and dy and 1 store per element; 9 instructions per element and some 120
//          per lane. The elements stay packed between the sum and the results.
// Limits   f16 and bf16, dx of the type of y; rows at one distance, which begin at the same element
//          of 16 bytes in all tensors. Lanes without a pack compute as the others.
#include "rung/device/dependent.hpp"
#include "rung/device/row/subwarp_row.hpp"
#include "rung/ops/softmax_backward/cuda/detail/softmax_backward.hpp"

namespace rung {
namespace {

using namespace softmax_backward_cuda;

/// Returns the number of blocks per SM for which registers are allocated: y and dy take 8 registers
/// per pack, the single elements of cut rows and their addresses up to 10.
constexpr int resident_blocks_of(int packs, bool cut) {
  constexpr int blocks[] = {16, 12, 9, 8, 6};
  return blocks[packs - 1] - (cut && packs > 2 ? 1 : 0);
}

template <class T, int lanes, int packs, bool cut, bool log>
__global__ void __launch_bounds__(subwarp_threads, resident_blocks_of(packs, cut))
    softmax_backward_subwarp_rows(SubwarpRows<3> rows, const T* all_y, const T* all_dy, T* all_dx,
                                  float scale) {
  start_dependent();
  using Row = SubwarpRow<T, lanes, packs, cut>;
  const int index = subwarp_row_index<lanes>();
  T* const dx = rows.template at<2>(all_dx, index);
  const Row row(dx, rows.length, index < rows.count);
  typename Row::Words y;
  typename Row::Words dy;
  row.load(rows.template at<0>(all_y, index), 0U, y);
  row.load(rows.template at<1>(all_dy, index), 0U, dy);
  float sums[2] = {0, 0};
#pragma unroll
  for (int i = 0; i < Row::Words::count; ++i) {
    const Pack<float, 2> value = widen_pair<T>(y.at[i]);
    const Pack<float, 2> slope = widen_pair<T>(dy.at[i]);
#pragma unroll
    for (int half = 0; half < 2; ++half) sums[half] += term_of(value[half], slope[half], log);
  }
  const float sum = lanes_reduce(sums[0] + sums[1], Plus{}, lanes);
  // 0, which the compiler does not know: it would keep the floats of the first widening.
  const unsigned zero = static_cast<unsigned>(rows.count) >> 31;
  row.store(dx, [&](int i) {
    Pack<float, 2> results;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      results[half] = gradient_of(widen_half<T>(y.at[i], half == 1, zero),
                                  widen_half<T>(dy.at[i], half == 1, zero), sum, scale, log);
    }
    return results;
  });
}

Support supports(const SoftmaxBackward::Args& args, const Context&) {
  if (size_of(args.y.dtype) != 2 || args.y.dtype != args.dx.dtype) {
    return unsupported("f16 and bf16, with results of that type");
  }
  return require_subwarp_rows<3>(args.rows, {args.y.data, args.dy.data, args.dx.data});
}

Work work(const SoftmaxBackward::Args& args, const Context&) {
  return subwarp_work(args.rows, args.y.data, resident_blocks_of);
}

void run(const SoftmaxBackward::Args& args, Context& context) {
  if (args.empty()) return;
  const bool are_rows_cut = are_cut(args.rows, args.y.data);
  visit<f16, bf16>(args.y.dtype, [&]<class T>() {
    const auto p = call_of<T, T>(args);
    with_subwarp_shape(args.length(), are_rows_cut, p.log,
                       [&]<int lanes, int packs, bool cut, bool log>() {
                         launch(context,
                                {.grid = subwarp_blocks(args.count(), lanes),
                                 .block = subwarp_threads,
                                 .dependent = can_depend(context)},
                                softmax_backward_subwarp_rows<T, lanes, packs, cut, log>,
                                subwarp_rows(args.rows), p.y, p.dy, p.dx, p.scale);
                       });
  });
}

const Rung<SoftmaxBackward> self{{.name = "subwarp_rows",
                                  .after = "short_rows",
                                  .backend = device_backend,
                                  .supports = supports,
                                  .passes = {.loads = 1, .stores = 1},
                                  .work = work,
                                  .run = run}};

}  // namespace
}  // namespace rung
