// SPDX-License-Identifier: Apache-2.0
// optimizer / simd
//
// Idea     Vectors of 16 floats (AVX-512; 8 with AVX2); the norm's squares are summed in doubles.
// Changes  Against naive: one instruction per 16 elements, including Adam's square root and
//          division.
// Cost     As naive: memory-bound from a few thousand parameters on.
// Limits   Every valid call; one thread; scalar code if elements are not adjacent.
#include "rung/cpu/foreach_target.hpp"

#include "rung/cpu/load-inl.hpp"
#include "rung/ops/optimizer/cpu/detail/steps.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::optimizer_cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
using cpu::HWY_NAMESPACE::load_some;
using cpu::HWY_NAMESPACE::store_some;

template <class Sum>
using Full = hn::ScalableTag<Sum>;

/// Updates the parameters of a run, by vectors if its elements are adjacent.
template <class T>
void step(const Optimizer::Args& args, const Run& run, double clip) {
  if (!run.adjacent()) return scalar_kernels(dtype_of<T>).step(args, run, clip);
  using Sum = Accumulator<T>;
  const auto u = OptimizerUpdate<Sum>::of(args);
  const Full<Sum> d;
  auto* parameters = static_cast<T*>(run.parameters);
  const auto* gradients = static_cast<const T*>(run.gradients);
  auto* first = static_cast<Sum*>(run.first);
  auto* second = static_cast<Sum*>(run.second);
  auto* master = static_cast<Sum*>(run.master);
  const auto factor = hn::Set(d, static_cast<Sum>(clip));
  const auto keep = hn::Set(d, u.keep);
  const auto decay = hn::Set(d, u.decay);
  const auto rate = hn::Set(d, u.rate);
  const auto momentum = hn::Set(d, u.momentum);
  const auto gain = hn::Set(d, u.gain);
  const auto beta2 = hn::Set(d, u.beta2);
  const auto gain2 = hn::Set(d, u.gain2);
  const auto correction = hn::Set(d, u.correction);
  const auto epsilon = hn::Set(d, u.epsilon);
  const auto at = [&](std::int64_t i, auto... rest) HWY_ATTR {
    auto p = master != nullptr ? load_some(d, master + i, rest...)
                               : load_some(d, parameters + i, rest...);
    auto g = hn::MulAdd(decay, p, hn::Mul(load_some(d, gradients + i, rest...), factor));
    p = hn::Mul(p, keep);
    if (u.adam) {
      const auto m = hn::MulAdd(momentum, load_some(d, first + i, rest...), hn::Mul(gain, g));
      const auto v =
          hn::MulAdd(beta2, load_some(d, second + i, rest...), hn::Mul(hn::Mul(gain2, g), g));
      store_some(m, d, first + i, rest...);
      store_some(v, d, second + i, rest...);
      p = hn::Sub(p, hn::Div(hn::Mul(rate, m), hn::MulAdd(hn::Sqrt(v), correction, epsilon)));
    } else {
      if (u.has_momentum) {
        const auto m = hn::MulAdd(momentum, load_some(d, first + i, rest...), g);
        store_some(m, d, first + i, rest...);
        g = u.nesterov ? hn::MulAdd(momentum, m, g) : m;
      }
      p = hn::NegMulAdd(rate, g, p);
    }
    if (master != nullptr) store_some(p, d, master + i, rest...);
    store_some(p, d, parameters + i, rest...);
  };
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= run.n; i += lanes) at(i);
  if (i < run.n) at(i, static_cast<std::size_t>(run.n - i));
}

/// Returns the sum of the squares of a run's gradients.
template <class T>
double squares(const Run& run) {
  if (run.steps[1] != 1) return scalar_kernels(dtype_of<T>).squares(run);
  using Sum = Accumulator<T>;
  const auto* g = static_cast<const T*>(run.gradients);
  // In double, which the square of an f32 cannot overflow.
  const Full<double> wide;
  const hn::Rebind<Sum, Full<double>> d;
  auto sum = hn::Zero(wide);
  auto other = hn::Zero(wide);
  const auto widened = [&](auto v) HWY_ATTR {
    if constexpr (sizeof(Sum) == 8) {
      return v;
    } else {
      return hn::PromoteTo(wide, v);
    }
  };
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + 2 * lanes <= run.n; i += 2 * lanes) {
    const auto a = widened(load_some(d, g + i));
    const auto b = widened(load_some(d, g + i + lanes));
    sum = hn::MulAdd(a, a, sum);
    other = hn::MulAdd(b, b, other);
  }
  for (; i < run.n; i += lanes) {
    const auto n = static_cast<std::size_t>(std::min(lanes, run.n - i));
    const auto a = widened(n == hn::Lanes(d) ? load_some(d, g + i) : load_some(d, g + i, n));
    sum = hn::MulAdd(a, a, sum);
  }
  return hn::GetLane(hn::SumOfLanes(wide, hn::Add(sum, other)));
}

}  // namespace

Kernels kernels_of(DType dtype) {
  return visit<float, double, f16, bf16>(dtype, []<class T>() -> Kernels {
    return {step<T>, squares<T>};
  });
}

}  // namespace rung::optimizer_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::optimizer_cpu {
HWY_EXPORT(kernels_of);
Kernels vector_kernels(DType dtype) { return HWY_DYNAMIC_DISPATCH(kernels_of)(dtype); }
}  // namespace rung::optimizer_cpu

namespace rung {
namespace {
using namespace optimizer_cpu;

Work work(const Optimizer::Args& args, const Context&) { return step_work(args, 1); }

void run(const Optimizer::Args& args, Context&) {
  const Kernels kernels = vector_kernels(args.parameters.dtype);
  const double clip = args.needs_norm() ? clip_of(args, sum_of_squares(args, kernels)) : 1;
  for_runs(args, {0, args.elements.size()}, [&](const Run& one) { kernels.step(args, one, clip); });
}

const Rung<Optimizer> self{
    {.name = "simd", .step = 20, .after = "naive", .work = work, .run = run}};

}  // namespace
}  // namespace rung
#endif
