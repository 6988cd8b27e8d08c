// SPDX-License-Identifier: Apache-2.0
//
// See gather.hpp.
#include "rung/cpu/gather.hpp"

#include "rung/cpu/foreach_target.hpp"
#include "rung/cpu/load-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
void gather_as(const T* x, std::int64_t stride, std::int64_t count, void* to) {
  using To = std::conditional_t<
      std::is_class_v<T>, float,
      std::conditional_t<std::is_integral_v<T> && sizeof(T) < 4, std::int32_t, T>>;
  To* out = static_cast<To*>(to);
  std::int64_t i = 0;
  if constexpr (std::is_class_v<T>) {
    const hn::ScalableTag<float> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    for (; stride == 1 && i + lanes <= count; i += lanes) {
      hn::StoreU(load_as(d, x + i), d, out + i);
    }
  } else if (stride == 1) {
    // NOLINTNEXTLINE(bugprone-signed-char-misuse): an i8 is a number with a sign
    for (; i < count; ++i) out[i] = static_cast<To>(x[i]);
  }
  // NOLINTNEXTLINE(bugprone-signed-char-misuse): an i8 is a number with a sign
  for (; i < count; ++i) out[i] = static_cast<To>(x[i * stride]);
}

void gather_any(DType from, const void* x, std::int64_t stride, std::int64_t count, void* to) {
  visit<float, double, f16, bf16, std::int8_t, std::uint8_t, std::uint16_t, std::int32_t,
        std::int64_t>(
      from, [&]<class T>() HWY_ATTR { gather_as(static_cast<const T*>(x), stride, count, to); });
}

}  // namespace rung::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::cpu {
namespace {
HWY_EXPORT(gather_any);
}  // namespace

void gather(DType from, const void* x, std::int64_t stride, std::int64_t count, void* to) {
  HWY_DYNAMIC_DISPATCH(gather_any)(from, x, stride, count, to);
}

void copy_strided(std::int64_t size, const void* from, std::int64_t from_stride, void* to,
                  std::int64_t to_stride, std::int64_t n) {
  const DType word = size == 1   ? DType::u8
                     : size == 2 ? DType::u16
                     : size == 4 ? DType::f32
                                 : DType::f64;
  visit<std::uint8_t, std::uint16_t, float, double>(word, [&]<class Word>() {
    const auto* in = static_cast<const Word*>(from);
    auto* out = static_cast<Word*>(to);
    // Constant strides let the compiler vectorize (bf16: 0.5 ns per element otherwise).
    if (from_stride == -1 && to_stride == 1) {
      std::reverse_copy(in - (n - 1), in + 1, out);
    } else if (from_stride == 1 && to_stride == -1) {
      std::reverse_copy(in, in + n, out - (n - 1));
    } else {
      for (std::int64_t i = 0; i < n; ++i) out[i * to_stride] = in[i * from_stride];
    }
  });
}

}  // namespace rung::cpu
#endif
