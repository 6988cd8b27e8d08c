// SPDX-License-Identifier: Apache-2.0
// softmax / tiny rows
//
// Idea     Rows of 1 to 8 elements: a thread loads the fewest aligned packs of 16 bytes that hold
//          whole rows, computes the rows in its registers, and stores the packs.
// Changes  against short_rows: no shared memory, no barrier, no shuffles; the length is known to
//          the compiler.
// Cost     Compulsory traffic; a pack of a warp spans up to 7 times the bytes that it loads, so
//          that other packs of the warp hit L1.
// Limits   Rows one after another in tensors that begin at multiples of 16 bytes; results of the
//          type of x.
#include "rung/device/block_work.hpp"
#include "rung/device/row/tiny_rows.hpp"
#include "rung/ops/softmax/cuda/detail/softmax.hpp"

namespace rung {
namespace {

using namespace softmax_cuda;

template <class T, int length>
__global__ void __launch_bounds__(tiny_threads)
    softmax_tiny_rows(const T* x, T* y, std::int64_t elements, Accumulator<T> scale, bool log) {
  using Sum = Accumulator<T>;
  const TinySpan<T, length> span(elements);
  if (span.count == 0) return;
  TinyValues<T, length> values(span.load(x));
#pragma unroll
  for (int row = 0; row < TinyRows<T, length>::rows; ++row) {
    Sum maximum = no_maximum<Sum>;
#pragma unroll
    for (int i = 0; i < length; ++i) maximum = Larger{}(maximum, values.at(row, i));
    Sum sum = 0;
#pragma unroll
    for (int i = 0; i < length; ++i) {
      Sum& value = values.at(row, i);
      value = (value - maximum) * scale;
      const Sum raised = fast_exp(value);
      sum += raised;
      if (!log) value = raised;
    }
    const Sum last = log ? logarithm(sum) : reciprocal(sum);
#pragma unroll
    for (int i = 0; i < length; ++i) {
      Sum& value = values.at(row, i);
      value = log ? value - last : value * last;
    }
  }
  span.store(y, values);
}

Support supports(const Softmax::Args& args, const Context&) {
  if (args.x.dtype != args.y.dtype) return unsupported("the result's type must be that of x");
  return require_tiny_rows<2>(args.rows, size_of(args.x.dtype), {args.x.data, args.y.data});
}

Work work(const Softmax::Args& args, const Context&) {
  return block_work(tiny_blocks(args.rows, size_of(args.x.dtype)), tiny_threads, 1,
                    type_path(args.x.dtype), 40);
}

void run(const Softmax::Args& args, Context& context) {
  if (args.empty()) return;
  with_tiny_length(args.length(), [&]<int length>() {
    visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
      const auto p = call_of<T, T>(args);
      launch(context, {.grid = tiny_blocks(args.rows, sizeof(T)), .block = tiny_threads},
             softmax_tiny_rows<T, length>, p.x, p.y, args.count() * args.length(), p.scale, p.log);
    });
  });
}

const Rung<Softmax> self{{.name = "tiny_rows",
                          .after = "short_rows",
                          .backend = device_backend,
                          .supports = supports,
                          .passes = {.loads = 1, .stores = 1},
                          .work = work,
                          .run = run}};

}  // namespace
}  // namespace rung
