// SPDX-License-Identifier: Apache-2.0
// activation_backward / vectorized, 16 bytes
//
// Idea     each thread moves 16 bytes of every tensor in one access, from a 16-byte boundary of dx
//          on; saved and dy are both in flight before either is used.
// Changes  against thread_per_element: a quarter of the accesses (an eighth for small types); one
//          address per pack; the next launch is set up while this one runs.
// Cost     loads and stores every element once. gelu and silu: an exponential and one or two
//          divisions, about 30 instructions per 12 bytes of f32.
// Limits   contiguous tensors; a tensor with another alignment than dx is moved element by element.
// Source   elementwise's ladder (ops/elementwise/cuda/040_vectorized_16b.cu).
#include "rung/device/block_work.hpp"
#include "rung/device/dependent.hpp"
#include "rung/device/rows.hpp"
#include "rung/ops/activation_backward/op/slopes.hpp"

namespace rung {
namespace {

constexpr int threads = 256;

/// Functor for e^z. exp2f has an error of 2 ulp, and its argument is rounded by up to half an ulp.
/// Subnormal results matter, since dy may be large: ex2.approx.ftz would flush them to zero.
struct Exponential {
  __device__ __forceinline__ float operator()(float z) const {
    return ::exp2f(z * 1.44269504088896340736F);
  }
  __device__ __forceinline__ double operator()(double z) const { return ::exp(z); }
};

template <class T>
__global__ void __launch_bounds__(threads)
    activation_backward_vectorized_16b(ActivationFunction function, const T* saved, const T* dy,
                                       T* dx, std::int64_t count) {
  using Sum = Accumulator<T>;
  constexpr int width = vector_width<T>;
  start_dependent();
  const int lead = lead_of<width>(dx);
  const RowPacks<const T, width> from(saved, count, lead);
  const RowPacks<const T, width> gradients(dy, count, lead);
  const RowPacks<T, width> to(dx, count, lead);
  const std::int64_t step = std::int64_t{gridDim.x} * threads;
  for (std::int64_t pack = std::int64_t{blockIdx.x} * threads + threadIdx.x; pack < to.packs();
       pack += step) {
    const Pack<T, width> values = from.load(pack, zero<T>());
    const Pack<T, width> dys = gradients.load(pack, zero<T>());
    Pack<Sum, width> made;
#pragma unroll
    for (int i = 0; i < width; ++i) {
      made[i] = activation_slopes::gradient(function, convert<Sum>(values[i]), convert<Sum>(dys[i]),
                                            Exponential{});
    }
    to.store(pack, convert<T>(made));
  }
}

Support supports(const ActivationBackward::Args& args, const Context&) {
  return args.flat() ? supported : unsupported("takes contiguous tensors of one order");
}

void run(const ActivationBackward::Args& args, Context& context) {
  constexpr std::int64_t max_blocks = 0x7fffffff;
  visit<float, double, f16, bf16>(args.dx.dtype, [&]<class T>() {
    constexpr auto width = std::int64_t{vector_width<T>};
    const std::int64_t packs = ceil_div(args.dx.size(), width) + 1;
    launch(context,
           {.grid = smaller(ceil_div(packs, threads), max_blocks),
            .block = threads,
            .dependent = can_depend(context)},
           activation_backward_vectorized_16b<T>, args.function,
           static_cast<const T*>(args.saved.data), static_cast<const T*>(args.dy.data),
           static_cast<T*>(args.dx.data), args.dx.size());
  });
}

Work work(const ActivationBackward::Args& args, const Context&) {
  const auto width = static_cast<int>(16 / size_of(args.dx.dtype));
  const std::int64_t packs = ceil_div(args.dx.size(), width) + 1;
  return block_work(ceil_div(packs, threads), threads, width, type_path(args.dx.dtype));
}

const Rung<ActivationBackward> self{{.name = "vectorized_16b",
                                     .step = 20,
                                     .after = "thread_per_element",
                                     .backend = device_backend,
                                     .supports = supports,
                                     .passes = {.loads = 1, .stores = 1},
                                     .work = work,
                                     .run = run}};

}  // namespace
}  // namespace rung
