// SPDX-License-Identifier: Apache-2.0
// e^x of vectors against the C library, on every compiled target.
#include "rung/cpu/foreach_target.hpp"

#include <cmath>
#include <limits>

#include "rung/cpu/exp-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace math = cpu::HWY_NAMESPACE;

/// Returns the number of x for which e^x, or e^-x and e^2x from their parts, is off by 4 ulp or
/// more.
template <class T, class Wide>
int wrong_exponentials() {
  const hn::ScalableTag<T> d;
  const auto joined = [&](const auto& parts)
                          HWY_ATTR { return hn::MulAdd(parts.scale, parts.expm1, parts.scale); };
  const auto differ = [](T got, Wide exact) {
    const auto near = static_cast<T>(exact);
    const Wide ulp = std::nextafter(near, std::numeric_limits<T>::infinity()) - near;
    return std::isinf(near) ? got != near : std::abs(got - exact) >= 4 * ulp;
  };
  int wrong = 0;
  for (int i = -800; i <= 800; ++i) {
    const T x = static_cast<T>(i) * (sizeof(T) == 4 ? T(0.1373) : T(0.9313));
    const auto v = hn::Set(d, x);
    if (differ(hn::GetLane(math::exp_of(d, v)), std::exp(Wide(x)))) ++wrong;
    if (std::abs(i) > 200) continue;  // the parts need x well within the range
    if (differ(hn::GetLane(joined(math::scaled_exp<-1>(d, v))), std::exp(-Wide(x)))) ++wrong;
    if (differ(hn::GetLane(joined(math::scaled_exp<2>(d, v))), std::exp(2 * Wide(x)))) ++wrong;
  }
  constexpr T infinity = std::numeric_limits<T>::infinity();
  if (hn::GetLane(math::exp_of(d, hn::Set(d, infinity))) != infinity) ++wrong;
  if (hn::GetLane(math::exp_of(d, hn::Set(d, -infinity))) != 0) ++wrong;
  const T nan = hn::GetLane(math::exp_of(d, hn::Set(d, std::numeric_limits<T>::quiet_NaN())));
  return wrong + (std::isnan(nan) ? 0 : 1);
}
int wrong_in_exp() {
  return wrong_exponentials<float, double>() + wrong_exponentials<double, long double>();
}

}  // namespace rung::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <gtest/gtest.h>

namespace rung {
HWY_EXPORT(wrong_in_exp);

TEST(Exp, IsWithinFourUlpOfTheCLibrary) {
  for (const auto target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    EXPECT_EQ(HWY_DYNAMIC_DISPATCH(wrong_in_exp)(), 0) << hwy::TargetName(target);
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
}

}  // namespace rung
#endif
