// SPDX-License-Identifier: Apache-2.0
// optimizer / naive
//
// Idea     The definition: one loop updates the parameters one by one. Clipping first computes the
//          norm of all gradients.
// Changes  Baseline.
// Cost     Each tensor is read and written once, and gradients are read twice for clipping: 20
//          bytes per f32 parameter with momentum, 28 with Adam; a separate pass per term of the
//          formulas would move 12 bytes per term.
// Limits   Every valid call; one thread.
// Source   The papers named in optimizer.hpp.
#include "rung/ops/optimizer/cpu/detail/steps.hpp"

namespace rung::optimizer_cpu {
namespace {

template <class T>
void step(const Optimizer::Args& args, const Run& run, double clip) {
  using Sum = Accumulator<T>;
  const auto update = OptimizerUpdate<Sum>::of(args);
  const auto root = [](Sum value) { return std::sqrt(value); };
  const auto factor = static_cast<Sum>(clip);
  auto* parameters = static_cast<T*>(run.parameters);
  const auto* gradients = static_cast<const T*>(run.gradients);
  auto* first = static_cast<Sum*>(run.first);
  auto* second = static_cast<Sum*>(run.second);
  auto* master = static_cast<Sum*>(run.master);
  for (std::int64_t i = 0; i < run.n; ++i) {
    T& parameter = parameters[i * run.steps[0]];
    OptimizerState<Sum> state{};
    state.p = master != nullptr ? master[i * run.steps[4]] : static_cast<Sum>(parameter);
    if (first != nullptr) state.m = first[i * run.steps[2]];
    if (second != nullptr) state.v = second[i * run.steps[3]];
    state = update(state, static_cast<Sum>(gradients[i * run.steps[1]]) * factor, root);
    parameter = static_cast<T>(state.p);
    if (master != nullptr) master[i * run.steps[4]] = state.p;
    if (first != nullptr) first[i * run.steps[2]] = state.m;
    if (second != nullptr) second[i * run.steps[3]] = state.v;
  }
}

template <class T>
double squares(const Run& run) {
  double sum = 0;
  const auto* gradients = static_cast<const T*>(run.gradients);
  for (std::int64_t i = 0; i < run.n; ++i) {
    const auto g = static_cast<double>(static_cast<Accumulator<T>>(gradients[i * run.steps[1]]));
    sum += g * g;
  }
  return sum;
}

}  // namespace

Kernels scalar_kernels(DType dtype) {
  return visit<float, double, f16, bf16>(dtype, []<class T>() -> Kernels {
    return {step<T>, squares<T>};
  });
}

}  // namespace rung::optimizer_cpu

namespace rung {
namespace {

void run(const Optimizer::Args& args, Context&) {
  using namespace optimizer_cpu;
  const Kernels kernels = scalar_kernels(args.parameters.dtype);
  const double clip = args.needs_norm() ? clip_of(args, sum_of_squares(args, kernels)) : 1;
  for_runs(args, {0, args.elements.size()}, [&](const Run& one) { kernels.step(args, one, clip); });
}

const Rung<Optimizer> self{{.name = "naive", .step = 10, .teaching = true, .run = run}};

}  // namespace
}  // namespace rung
