// SPDX-License-Identifier: Apache-2.0
// activation_backward / a thread per element
//
// Idea     one thread computes one element.
// Changes  baseline.
// Cost     the lanes of a warp load and store neighboring elements, for f32 in full sectors; one
//          access and one address computation per element and tensor.
// Limits   every valid call; if axes do not merge, a division per axis and element.
// Source   the chain rule.
#include "rung/device/block_work.hpp"
#include "rung/device/convert.hpp"
#include "rung/device/device.hpp"
#include "rung/device/launch.hpp"
#include "rung/ops/activation_backward/op/slopes.hpp"

namespace rung {
namespace {

constexpr int threads = 256;

template <class T>
__global__ void __launch_bounds__(threads)
    activation_backward_thread_per_element(ActivationFunction function, const T* saved, const T* dy,
                                           T* dx, Collapsed<3> elements) {
  using Sum = Accumulator<T>;
  const auto exponential = [](Sum x) { return ::exp(x); };
  const std::int64_t step = std::int64_t{gridDim.x} * threads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < elements.size();
       i += step) {
    std::int64_t at[3];
    elements.offsets(i, at);
    dx[at[ActivationBackward::element_dx]] = convert<T>(activation_slopes::gradient(
        function, convert<Sum>(saved[at[ActivationBackward::element_saved]]),
        convert<Sum>(dy[at[ActivationBackward::element_dy]]), exponential));
  }
}

void run(const ActivationBackward::Args& args, Context& context) {
  constexpr std::int64_t max_blocks = 0x7fffffff;
  const std::int64_t blocks = (args.elements.size() + threads - 1) / threads;
  visit<float, double, f16, bf16>(args.dx.dtype, [&]<class T>() {
    launch(context, {.grid = blocks < max_blocks ? blocks : max_blocks, .block = threads},
           activation_backward_thread_per_element<T>, args.function,
           static_cast<const T*>(args.saved.data), static_cast<const T*>(args.dy.data),
           static_cast<T*>(args.dx.data), args.elements);
  });
}

Work work(const ActivationBackward::Args& args, const Context&) {
  return block_work(ceil_div(args.elements.size(), threads), threads, 1,
                    args.flat() ? type_path(args.dx.dtype) : "strided");
}

const Rung<ActivationBackward> self{{.name = "thread_per_element",
                                     .step = 10,
                                     .backend = device_backend,
                                     .passes = {.loads = 1, .stores = 1},
                                     .work = work,
                                     .run = run}};

}  // namespace
}  // namespace rung
