// SPDX-License-Identifier: Apache-2.0
// softmax / a warp per row
//
// Idea     One warp owns a row; its lanes reduce maximum and sum by shuffles.
// Changes  against online_block: no shared memory and no barrier, so that warps run independently
//          and the loads of one overlap the exponentials of another.
// Cost     2 loads and 1 store per element; for rows of up to a few thousand elements the second
//          load hits L1. Loads are 4 or 2 bytes wide.
// Limits   f32, f16 and bf16 with results of the same type. For rows above a few thousand elements,
//          one warp has too few loads in flight.
// Source   Milakov and Gimelshein for combining maxima and sums; the CUDA programming guide for
//          shuffles.
#include "rung/ops/softmax/cuda/detail/softmax.hpp"

namespace rung {
namespace {

using namespace softmax_cuda;

constexpr int lanes = 32;
constexpr RowBlock row_block{.threads = lanes, .rows = 4};

template <class T>
__global__ void __launch_bounds__(row_block.threads* row_block.rows)
    softmax_warp_per_row(Rows<2> rows, SoftmaxCall<T, T> p) {
  for_each_row(rows.count(), [&](std::int64_t row, bool exists) {
    if (!exists) return;  // whole warps exit; no barrier follows
    const T* x = p.x + rows.template offset<0>(row);
    T* y = p.y + rows.template offset<1>(row);
    Running<float> running;
    for_each_batch<float>(
        x, rows.length, rows.steps[0], threadIdx.x, lanes,
        [&](std::int64_t, const float(&values)[batch]) { running.add(values, p.scale); });
    float maximum = running.maximum;
    for (int distance = lanes / 2; distance > 0; distance /= 2) {
      maximum = fmaxf(maximum, shuffle_xor(maximum, distance));
    }
    float sum = running.sum * fast_exp((running.maximum - maximum) * p.scale);
    for (int distance = lanes / 2; distance > 0; distance /= 2) {
      sum += shuffle_xor(sum, distance);
    }
    write_results(x, y, rows.length, rows.steps, threadIdx.x, lanes, maximum, sum, p.scale, p.log);
  });
}

Support supports(const Softmax::Args& args, const Context&) {
  if (args.x.dtype != args.y.dtype) return unsupported("the result's type must be that of x");
  return args.x.dtype == DType::f64 ? unsupported("f32, f16 and bf16") : supported;
}

Work work(const Softmax::Args& args, const Context&) {
  return row_work(args.count(), row_block, ceil_div(args.length(), batch * lanes),
                  row_path(args.rows.are_contiguous(), args.length(), 2048));
}

void run(const Softmax::Args& args, Context& context) {
  visit<float, f16, bf16>(args.x.dtype, [&]<class T>() {
    launch_rows(context, args.rows, row_block, softmax_warp_per_row<T>, call_of<T, T>(args));
  });
}

const Rung<Softmax> self{{.name = "warp_per_row",
                          .step = 40,
                          .after = "online_block",
                          .backend = device_backend,
                          .supports = supports,
                          .passes = {.loads = 2, .stores = 1},
                          .work = work,
                          .run = run}};

}  // namespace
}  // namespace rung
