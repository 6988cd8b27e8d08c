// SPDX-License-Identifier: Apache-2.0
// optimizer / a thread per element
//
// Idea     one thread updates one parameter.
// Changes  baseline.
// Cost     reads and writes every tensor once, and reads the gradients again for clipping; an
//          access of 4 or 2 bytes and an address for each of up to 8 tensors.
// Limits   every valid call; if axes do not merge, a division per axis and element.
// Source   the papers named in optimizer.hpp.
#include "rung/device/block_work.hpp"
#include "rung/ops/optimizer/cuda/detail/clip.hpp"

namespace rung {
namespace {

using namespace optimizer_cuda;

constexpr int threads = 256;

template <class T>
__global__ void __launch_bounds__(threads)
    optimizer_thread_per_element(Tensors<T> t, Collapsed<5> elements) {
  start_dependent();
  using Sum = Accumulator<T>;
  const Sum clip = t.clip != nullptr ? static_cast<Sum>(*t.clip) : Sum(1);
  const std::int64_t step = std::int64_t{gridDim.x} * threads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < elements.size();
       i += step) {
    std::int64_t at[5];
    elements.offsets(i, at);
    T* const parameter = t.parameters + at[Optimizer::element_parameters];
    Sum* const first = t.first + at[Optimizer::element_first];
    Sum* const second = t.second + at[Optimizer::element_second];
    Sum* const master = t.master + at[Optimizer::element_master];
    OptimizerState<Sum> state{};
    state.p = t.master != nullptr ? *master : convert<Sum>(*parameter);
    if (t.first != nullptr) state.m = *first;
    if (t.second != nullptr) state.v = *second;
    const Sum g = convert<Sum>(t.gradients[at[Optimizer::element_gradients]]) * clip;
    state = t.update(state, g, Root{});
    *parameter = convert<T>(state.p);
    if (t.master != nullptr) *master = state.p;
    if (t.first != nullptr) *first = state.m;
    if (t.second != nullptr) *second = state.v;
  }
}

void run(const Optimizer::Args& args, Context& context) {
  constexpr std::int64_t max_blocks = 0x7fffffff;
  visit<float, double, f16, bf16>(args.parameters.dtype, [&]<class T>() {
    const Tensors<T> tensors = tensors_of<T>(args, context);
    launch(context,
           {.grid = smaller(ceil_div(args.elements.size(), threads), max_blocks),
            .block = threads,
            .dependent = can_depend(context)},
           optimizer_thread_per_element<T>, tensors, args.elements);
  });
}

Work work(const Optimizer::Args& args, const Context&) {
  return in_launches(launches_of(args), block_work(ceil_div(args.elements.size(), threads), threads,
                                                   1, args.flat() ? "" : "strided"));
}

const Rung<Optimizer> self{{.name = "thread_per_element",
                            .step = 10,
                            .backend = device_backend,
                            .passes = {.loads = 1, .stores = 1},
                            .work = work,
                            .run = run}};

}  // namespace
}  // namespace rung
