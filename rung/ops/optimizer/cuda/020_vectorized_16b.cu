// SPDX-License-Identifier: Apache-2.0
// optimizer / vectorized, 16 bytes
//
// Idea     each thread updates 16 bytes of parameters: their gradients, moments and master are
//          loaded in 16-byte accesses, all in flight before the first is used.
// Changes  against thread_per_element: a quarter of the accesses (an eighth for small types) and
//          one address for each tensor.
// Cost     as thread_per_element: every tensor once, and the gradients again for clipping.
// Limits   tensors contiguous in the same order; a tensor with another alignment than the
//          parameters is moved element by element.
// Source   the structure of Apex's multi-tensor optimizers.
#include "rung/device/block_work.hpp"
#include "rung/ops/optimizer/cuda/detail/clip.hpp"

namespace rung {
namespace {

using namespace optimizer_cuda;

constexpr int threads = 256;

/// Loads a pack of an optional tensor; zeros if it is not given.
template <int width, class Sum>
__device__ __forceinline__ Pack<Sum, width> load_state(Sum* data, std::int64_t count, int lead,
                                                       std::int64_t pack) {
  if (data != nullptr) return RowPacks<Sum, width>(data, count, lead).load(pack, Sum(0));
  Pack<Sum, width> zeros;
#pragma unroll
  for (int i = 0; i < width; ++i) zeros[i] = 0;
  return zeros;
}
template <int width, class Sum>
__device__ __forceinline__ void store_state(Sum* data, std::int64_t count, int lead,
                                            std::int64_t pack, const Pack<Sum, width>& values) {
  if (data != nullptr) RowPacks<Sum, width>(data, count, lead).store(pack, values);
}

template <class T>
__global__ void __launch_bounds__(threads)
    optimizer_vectorized_16b(Tensors<T> t, std::int64_t count) {
  start_dependent();
  using Sum = Accumulator<T>;
  constexpr int width = vector_width<T>;
  const Sum clip = t.clip != nullptr ? static_cast<Sum>(*t.clip) : Sum(1);
  const int lead = lead_of<width>(t.parameters);
  const RowPacks<T, width> parameters(t.parameters, count, lead);
  const RowPacks<const T, width> gradients(t.gradients, count, lead);
  const std::int64_t step = std::int64_t{gridDim.x} * threads;
  for (std::int64_t pack = std::int64_t{blockIdx.x} * threads + threadIdx.x;
       pack < parameters.packs(); pack += step) {
    const Pack<T, width> g = gradients.load(pack, zero<T>());
    Pack<Sum, width> m = load_state<width>(t.first, count, lead, pack);
    Pack<Sum, width> v = load_state<width>(t.second, count, lead, pack);
    Pack<Sum, width> p = t.master != nullptr ? load_state<width>(t.master, count, lead, pack)
                                             : convert<Sum>(parameters.load(pack, zero<T>()));
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const OptimizerState<Sum> after =
          t.update({p[i], m[i], v[i]}, convert<Sum>(g[i]) * clip, Root{});
      p[i] = after.p;
      m[i] = after.m;
      v[i] = after.v;
    }
    parameters.store(pack, convert<T>(p));
    store_state(t.master, count, lead, pack, p);
    store_state(t.first, count, lead, pack, m);
    store_state(t.second, count, lead, pack, v);
  }
}

Support supports(const Optimizer::Args& args, const Context&) {
  return args.flat() ? supported : unsupported("takes contiguous tensors of one order");
}

void run(const Optimizer::Args& args, Context& context) {
  constexpr std::int64_t max_blocks = 0x7fffffff;
  visit<float, double, f16, bf16>(args.parameters.dtype, [&]<class T>() {
    constexpr auto width = std::int64_t{vector_width<T>};
    const std::int64_t count = args.elements.size();
    const Tensors<T> tensors = tensors_of<T>(args, context);
    if (count == 0) return;
    launch(context,
           {.grid = smaller(ceil_div(ceil_div(count, width) + 1, threads), max_blocks),
            .block = threads,
            .dependent = can_depend(context)},
           optimizer_vectorized_16b<T>, tensors, count);
  });
}

Work work(const Optimizer::Args& args, const Context&) {
  const auto width = static_cast<int>(16 / size_of(args.parameters.dtype));
  const std::int64_t packs = ceil_div(args.elements.size(), width) + 1;
  return in_launches(launches_of(args),
                     block_work(ceil_div(packs, threads), threads, width, "", 64));
}

const Rung<Optimizer> self{{.name = "vectorized_16b",
                            .step = 20,
                            .after = "thread_per_element",
                            .backend = device_backend,
                            .supports = supports,
                            .passes = {.loads = 1, .stores = 1},
                            .work = work,
                            .run = run}};

}  // namespace
}  // namespace rung
