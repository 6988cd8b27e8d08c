// SPDX-License-Identifier: Apache-2.0
// softmax / sub-warp rows
//
// Idea     Rows of 16 to 512 16-bit elements: 4 to 16 lanes load the whole aligned packs of a row,
//          16 bytes each, and the single elements before and after them one by one, at any
//          alignment. A warp processes up to eight rows; a lane has three to five packs in flight.
// Changes  against registers_single_read: half of the exponentials, which the special-function
//          units limit to 16 per cycle and SM: they are relative to the maximum of the row, which
//          is reduced first, and stay in registers. Cut rows have no partial packs.
// Cost     1 load and 1 store per element, 7 instructions per element and some 120 per lane;
//          2 log2(lanes) shuffles per row.
// Limits   f16 and bf16, results of the type of x; rows at one distance, which begin at the same
//          element of 16 bytes in x and y. Lanes without a pack compute as the others.
#include "rung/device/dependent.hpp"
#include "rung/device/row/subwarp_row.hpp"
#include "rung/ops/softmax/cuda/detail/registers.hpp"

namespace rung {
namespace {

using namespace softmax_cuda;

/// -infinity in both halves of a word; its exponential is 0.
template <class T>
inline constexpr unsigned infinities = std::is_same_v<T, bf16> ? 0xff80ff80U : 0xfc00fc00U;

/// Returns the maximum of a lane's words, at least no_maximum.
template <class T, class Words>
__device__ __forceinline__ float largest_of(const Words& words) {
  unsigned most[2] = {words.at[0], words.at[1]};
#pragma unroll
  for (int i = 2; i < Words::count; ++i) {
    most[i % 2] = ptx::max_halves<T>(most[i % 2], words.at[i]);
  }
  const Pack<float, 2> both = widen_pair<T>(ptx::max_halves<T>(most[0], most[1]));
  return Larger{}(no_maximum<float>, Larger{}(both[0], both[1]));
}

/// Returns the number of blocks per SM for which registers are allocated: the exponentials of a
/// pack take 8 registers.
constexpr int resident_blocks_of(int packs) {
  constexpr int blocks[] = {16, 12, 10, 9, 7};
  return blocks[packs - 1];
}

template <class T, int lanes, int packs, bool cut, bool log>
__global__ void __launch_bounds__(subwarp_threads, resident_blocks_of(packs))
    softmax_subwarp_rows(SubwarpRows<2> rows, const T* all_x, T* all_y, float scale) {
  start_dependent();
  using Row = SubwarpRow<T, lanes, packs, cut>;
  const int index = subwarp_row_index<lanes>();
  T* const y = rows.template at<1>(all_y, index);
  const Row row(y, rows.length, index < rows.count);
  typename Row::Words words;
  row.load(rows.template at<0>(all_x, index), infinities<T>, words);
  const float maximum = lanes_reduce(largest_of<T>(words), Larger{}, lanes);
  const Power<float> power(scale);
  Pack<float, 2> values[Row::Words::count];
  float sums[2] = {0, 0};
#pragma unroll
  for (int i = 0; i < Row::Words::count; ++i) {
    values[i] = widen_pair<T>(words.at[i]);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float& value = values[i][half];
      value -= maximum;
      const float raised = power(value);
      sums[half] += raised;
      if constexpr (!log) value = raised;
    }
  }
  const float sum = lanes_reduce(sums[0] + sums[1], Plus{}, lanes);
  const float last = log ? logarithm(sum) : sum == 0 ? 0.0F : ptx::fast_reciprocal(sum);
  row.store(y, [&](int i) {
#pragma unroll
    for (float& value : values[i].at) value = log ? value * scale - last : value * last;
    return values[i];
  });
}

Support supports(const Softmax::Args& args, const Context&) {
  if (size_of(args.x.dtype) != 2 || args.y.dtype != args.x.dtype) {
    return unsupported("f16 and bf16, with results of that type");
  }
  if (const Support scale = require_foldable_scale(args); !scale) return scale;
  return require_subwarp_rows<2>(args.rows, {args.x.data, args.y.data});
}

Work work(const Softmax::Args& args, const Context&) {
  return subwarp_work(args.rows, args.x.data,
                      [](int packs, bool) { return resident_blocks_of(packs); });
}

void run(const Softmax::Args& args, Context& context) {
  if (args.empty()) return;
  const bool are_rows_cut = are_cut(args.rows, args.x.data);
  visit<f16, bf16>(args.x.dtype, [&]<class T>() {
    const auto p = call_of<T, T>(args);
    with_subwarp_shape(args.length(), are_rows_cut, p.log,
                       [&]<int lanes, int packs, bool cut, bool log>() {
                         launch(context,
                                {.grid = subwarp_blocks(args.count(), lanes),
                                 .block = subwarp_threads,
                                 .dependent = can_depend(context)},
                                softmax_subwarp_rows<T, lanes, packs, cut, log>,
                                subwarp_rows(args.rows), p.x, p.y, p.scale);
                       });
  });
}

const Rung<Softmax> self{{.name = "subwarp_rows",
                          .after = "registers_single_read",
                          .backend = device_backend,
                          .supports = supports,
                          .passes = {.loads = 1, .stores = 1},
                          .work = work,
                          .run = run}};

}  // namespace
}  // namespace rung
