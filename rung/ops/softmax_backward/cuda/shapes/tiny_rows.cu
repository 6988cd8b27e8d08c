// SPDX-License-Identifier: Apache-2.0
// softmax_backward / tiny rows
//
// Idea     Rows of 1 to 8 elements: a thread loads the fewest aligned packs of 16 bytes of y and dy
//          that hold whole rows, computes the rows in its registers, and stores the packs.
// Changes  against short_rows: no shared memory, no barrier, no shuffles; the length is known to
//          the compiler.
// Cost     Compulsory traffic; a pack of a warp spans up to 7 times the bytes that it loads, so
//          that other packs of the warp hit L1.
// Limits   Rows one after another in tensors that begin at multiples of 16 bytes; dx of the type of
//          y.
#include "rung/device/block_work.hpp"
#include "rung/device/row/tiny_rows.hpp"
#include "rung/ops/softmax_backward/cuda/detail/softmax_backward.hpp"

namespace rung {
namespace {

using namespace softmax_backward_cuda;

template <class T, int length, bool log>
__global__ void __launch_bounds__(tiny_threads)
    softmax_backward_tiny_rows(const T* all_y, const T* all_dy, T* all_dx, std::int64_t elements,
                               Accumulator<T> scale) {
  using Sum = Accumulator<T>;
  const TinySpan<T, length> span(elements);
  if (span.count == 0) return;
  const TinyWords<T, length> loaded_y = span.load(all_y);
  const TinyWords<T, length> loaded_dy = span.load(all_dy);
  TinyValues<T, length> y(loaded_y);
  TinyValues<T, length> dy(loaded_dy);
#pragma unroll
  for (int row = 0; row < TinyRows<T, length>::rows; ++row) {
    Sum sum = 0;
#pragma unroll
    for (int i = 0; i < length; ++i) sum += term_of(y.at(row, i), dy.at(row, i), log);
#pragma unroll
    for (int i = 0; i < length; ++i) {
      dy.at(row, i) = gradient_of(y.at(row, i), dy.at(row, i), sum, scale, log);
    }
  }
  span.store(all_dx, dy);
}

Support supports(const SoftmaxBackward::Args& args, const Context&) {
  if (args.y.dtype != args.dx.dtype) return unsupported("the result's type must be that of y");
  return require_tiny_rows<3>(args.rows, size_of(args.y.dtype),
                              {args.y.data, args.dy.data, args.dx.data});
}

Work work(const SoftmaxBackward::Args& args, const Context&) {
  return block_work(tiny_blocks(args.rows, size_of(args.y.dtype)), tiny_threads, 1,
                    type_path(args.y.dtype), 40);
}

void run(const SoftmaxBackward::Args& args, Context& context) {
  if (args.empty()) return;
  with_tiny_length(args.length(), [&]<int length>() {
    visit<float, double, f16, bf16>(args.y.dtype, [&]<class T>() {
      const auto p = call_of<T, T>(args);
      launch(context, {.grid = tiny_blocks(args.rows, sizeof(T)), .block = tiny_threads},
             p.log ? softmax_backward_tiny_rows<T, length, true>
                   : softmax_backward_tiny_rows<T, length, false>,
             p.y, p.dy, p.dx, args.count() * args.length(), p.scale);
    });
  });
}

const Rung<SoftmaxBackward> self{{.name = "tiny_rows",
                                  .after = "short_rows",
                                  .backend = device_backend,
                                  .supports = supports,
                                  .passes = {.loads = 1, .stores = 1},
                                  .work = work,
                                  .run = run}};

}  // namespace
}  // namespace rung
