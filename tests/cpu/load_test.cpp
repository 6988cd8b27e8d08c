// SPDX-License-Identifier: Apache-2.0
// Vector loads and stores with conversion, against core's scalar ones, on every compiled target.
#include "rung/cpu/foreach_target.hpp"
#include "rung/cpu/load-inl.hpp"

#ifndef RUNG_TESTS_CPU_GUARDED_PAGE_
#define RUNG_TESTS_CPU_GUARDED_PAGE_
#include <sys/mman.h>

#include <cmath>
#include <cstddef>

namespace rung::test {

/// A page followed by an inaccessible page, so that an overrun is a segmentation fault.
class GuardedPage {
 public:
  GuardedPage()
      : memory_(static_cast<std::byte*>(
            mmap(nullptr, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    mprotect(memory_ + size, size, PROT_NONE);
  }
  GuardedPage(const GuardedPage&) = delete;
  GuardedPage& operator=(const GuardedPage&) = delete;
  ~GuardedPage() { munmap(memory_, 2 * size); }
  template <class T>
  [[nodiscard]] T* end() const {
    return reinterpret_cast<T*>(memory_ + size);
  }

 private:
  static constexpr std::size_t size = 4096;
  std::byte* memory_;
};

}  // namespace rung::test
#endif

HWY_BEFORE_NAMESPACE();
namespace rung::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Counts the floats whose narrowing to T, or widening back, differs from core's.
template <class T>
int wrong_conversions() {
  const hn::ScalableTag<float> d;
  HWY_ALIGN float in[hn::MaxLanes(d)];
  HWY_ALIGN T out[hn::MaxLanes(d)];
  int wrong = 0;
  // Every upper half, with lower halves around the ties of both formats.
  for (std::uint32_t high = 0; high < 0x10000; ++high) {
    for (const std::uint32_t low : {0u, 1u, 0x0fffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u}) {
      const float value = __builtin_bit_cast(float, high << 16 | low);
      std::fill_n(in, hn::Lanes(d), value);
      cpu::HWY_NAMESPACE::store_as(hn::Load(d, in), d, out);
      const T expected(value);
      const auto got = static_cast<float>(out[0]);
      if (std::isnan(value) ? !std::isnan(got) : out[0].bits != expected.bits) ++wrong;
      hn::Store(cpu::HWY_NAMESPACE::load_as(d, out), d, in);
      if (!std::isnan(value) && in[hn::Lanes(d) - 1] != static_cast<float>(expected)) ++wrong;
    }
  }
  return wrong;
}

/// Returns the number of wrong results of partial accesses at the very end of a page. The preceding
/// element must be kept.
template <class T>
int wrong_parts() {
  const test::GuardedPage page;
  const hn::ScalableTag<float> d;
  HWY_ALIGN float values[hn::MaxLanes(d)];
  int wrong = 0;
  for (std::size_t n = 0; n < hn::Lanes(d); ++n) {
    T* const part = page.end<T>() - n;
    part[-1] = static_cast<T>(99.0F);
    for (std::size_t i = 0; i < hn::Lanes(d); ++i) values[i] = static_cast<float>(i + 1);
    if constexpr (std::is_integral_v<T>) {
      for (std::size_t i = 0; i < n; ++i) part[i] = static_cast<T>(i + 1);
    } else {
      cpu::HWY_NAMESPACE::store_as_n(hn::Load(d, values), d, part, n);
    }
    hn::Store(cpu::HWY_NAMESPACE::load_as_n(d, part, n), d, values);
    for (std::size_t i = 0; i < hn::Lanes(d); ++i) {
      if (values[i] != (i < n ? static_cast<float>(i + 1) : 0.0F)) ++wrong;
    }
    if (static_cast<float>(part[-1]) != 99.0F) ++wrong;
  }
  return wrong;
}

int wrong_in_all() {
  return wrong_conversions<bf16>() + wrong_conversions<f16>() + wrong_parts<float>() +
         wrong_parts<bf16>() + wrong_parts<f16>() + wrong_parts<std::uint8_t>() +
         wrong_parts<std::int8_t>() + wrong_parts<std::uint16_t>();
}

}  // namespace rung::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <gtest/gtest.h>

namespace rung {
HWY_EXPORT(wrong_in_all);

TEST(Load, ConvertsAndMasksAsScalarCodeDoes) {
  for (const auto target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    EXPECT_EQ(HWY_DYNAMIC_DISPATCH(wrong_in_all)(), 0) << hwy::TargetName(target);
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
}

}  // namespace rung
#endif
