// SPDX-License-Identifier: Apache-2.0
// optimizer / simd
//
// Idea     vectors of 16 floats (AVX-512; 8 with AVX2); the norm's squares are added up in doubles.
// Changes  against naive: one instruction for 16 elements, square root and division of adam too.
// Cost     as naive: memory decides from a few thousand parameters on.
// Limits   every valid call; one thread; without vectors where elements are not adjacent.
// Tried    -
// Source   -
#include "rung/cpu/foreach_target.hpp"

#include "rung/cpu/load-inl.hpp"
#include "rung/ops/optimizer/cpu/detail/steps.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::optimizer_cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
namespace mem = cpu::HWY_NAMESPACE;

template <class Sum>
using Full = hn::ScalableTag<Sum>;

/// A full vector, or n elements of one.
template <class D, class T>
HWY_INLINE hn::Vec<D> load_some(D d, const T* from) {
  return mem::load_as(d, from);
}
template <class D, class T>
HWY_INLINE hn::Vec<D> load_some(D d, const T* from, std::size_t n) {
  return mem::load_as_n(d, from, n);
}
template <class D, class T>
HWY_INLINE void store_some(hn::Vec<D> values, D d, T* to) {
  mem::store_as(values, d, to);
}
template <class D, class T>
HWY_INLINE void store_some(hn::Vec<D> values, D d, T* to, std::size_t n) {
  mem::store_as_n(values, d, to, n);
}

template <class T>
void adjacent(const OptimizerUpdate<Accumulator<T>>& u, const Run& run, double clip) {
  using Sum = Accumulator<T>;
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

template <class T>
void step(const Optimizer::Args& args, const Run& run, double clip) {
  const auto update = OptimizerUpdate<Accumulator<T>>::of(args);
  if (!run.adjacent()) return scalar_kernels(dtype_of<T>).step(args, run, clip);
  adjacent<T>(update, run, clip);
}

template <class T>
double squares(const Run& run) {
  if (run.steps[1] != 1) return scalar_kernels(dtype_of<T>).squares(run);
  using Sum = Accumulator<T>;
  const auto* g = static_cast<const T*>(run.gradients);
  // In doubles, two vectors of which take one of floats: no square of an f32 overflows.
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
    const auto a = widened(mem::load_as(d, g + i));
    const auto b = widened(mem::load_as(d, g + i + lanes));
    sum = hn::MulAdd(a, a, sum);
    other = hn::MulAdd(b, b, other);
  }
  for (; i < run.n; i += lanes) {
    const auto n = static_cast<std::size_t>(std::min(lanes, run.n - i));
    const auto a =
        widened(n == hn::Lanes(d) ? mem::load_as(d, g + i) : mem::load_as_n(d, g + i, n));
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

// Alone it is slower than on a team, and adds in the same order.
double estimate(const Optimizer::Args& args, const Context&) {
  return 1.01 * optimizer_cpu::seconds(args);
}

void run(const Optimizer::Args& args, Context& context) {
  optimizer_cpu::chunked(args, context, optimizer_cpu::vector_kernels(args.parameters.dtype), 1);
}

const Rung<Optimizer> self{
    {.name = "simd", .step = 20, .after = "naive", .estimate = estimate, .run = run}};

}  // namespace
}  // namespace rung
#endif
