// SPDX-License-Identifier: Apache-2.0
// softmax / a warp per row
//
// Idea     one warp owns a row; maximum and sum travel between its lanes by shuffle.
// Changes  against online_block: no shared memory and no barrier, so that warps run at their own
//          pace and one's loads overlap another's exponentials.
// Cost     2 reads and a write an element; the second read of a row of up to a few thousand
//          elements is from L1. 4-byte loads still, or 2-byte ones.
// Limits   forward, f32, f16 and bf16 with results of the same type. Rows above a few thousand
//          elements: one warp has too few loads in flight.
// Source   Milakov and Gimelshein for the merging of maxima; the CUDA programming guide's shuffles.
#include "rung/device/waiting.hpp"
#include "rung/ops/softmax/cuda/detail/softmax.hpp"

namespace rung {
namespace {

using namespace softmax_cuda;

constexpr int lanes = 32;
constexpr int rows_a_block = 4;

template <class T>
__global__ void __launch_bounds__(lanes* rows_a_block)
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

double estimate(const Softmax::Args& args, const Context& context) {
  constexpr std::int64_t longest = 2048;
  const double share = !args.rows.are_contiguous() ? 0.12 : args.length() <= longest ? 0.37 : 0.2;
  // A warp occupies an SM for 50 ns per row and per 128 elements, and waits for its loads twice.
  const auto batches = static_cast<double>(ceil_div(args.length(), std::int64_t{batch} * lanes));
  return waiting_seconds(Softmax::cost(args),
                         {.bandwidth = share,
                          .blocks = static_cast<double>(ceil_div(args.count(), rows_a_block)),
                          .blocks_per_sm = 64.0 / rows_a_block,
                          .rounds = 2 * batches,
                          .fixed = 1e-6,
                          .round = args.rows.are_contiguous() ? 0.42e-6 : 0.55e-6,
                          .busy = rows_a_block * (1 + batches) * 0.05e-6},
                         context);
}

void run(const Softmax::Args& args, Context& context) {
  visit<float, f16, bf16>(args.x.dtype, [&]<class T>() {
    launch_rows(context, args.rows, {.threads = lanes, .rows = rows_a_block},
                softmax_warp_per_row<T>, call_of<T, T>(args));
  });
}

const Rung<Softmax> self{{.name = "warp_per_row",
                          .step = 40,
                          .after = "online_block",
                          .backend = device_backend,
                          .supports = supports,
                          .passes = {.loads = 2, .stores = 1},
                          .estimate = estimate,
                          .run = run}};

}  // namespace
}  // namespace rung
