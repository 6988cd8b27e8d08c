// SPDX-License-Identifier: Apache-2.0
//
// activate(activation, x, count): applies an activation function to the results of a CPU rung.
#if defined(RUNG_CPU_ACTIVATE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_CPU_ACTIVATE_INL_HPP_
#undef RUNG_CPU_ACTIVATE_INL_HPP_
#else
#define RUNG_CPU_ACTIVATE_INL_HPP_
#endif

#include <cstdint>

#include "rung/core/activation.hpp"
#include "rung/cpu/math-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Applies the activation in place, in full vectors: reads and writes elements past `count`, up to
/// the next multiple of the vector length.
template <class T>
void activate(Activation activation, T* x, std::int64_t count) {
  const hn::ScalableTag<T> d;
  const auto each = [&](auto f) HWY_ATTR {
    for (std::int64_t j = 0; j < count; j += static_cast<std::int64_t>(hn::Lanes(d))) {
      hn::StoreU(f(hn::LoadU(d, x + j)), d, x + j);
    }
  };
  switch (activation) {
    case Activation::none:
      break;
    case Activation::relu:
      // This operand order propagates NaN on every target.
      each([&](auto v) HWY_ATTR { return hn::IfThenElse(hn::Lt(v, hn::Zero(d)), hn::Zero(d), v); });
      break;
    case Activation::gelu:
      each([&](auto v) HWY_ATTR { return gelu(d, v); });
      break;
    case Activation::sigmoid:
      each([&](auto v) HWY_ATTR { return sigmoid(d, v); });
      break;
    case Activation::tanh:
      each([&](auto v) HWY_ATTR { return tanh(d, v); });
      break;
  }
}

}  // namespace rung::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
