// SPDX-License-Identifier: Apache-2.0
// stencil's vector code: see kernels.hpp.
#include "rung/ops/stencil/cpu/detail/kernels.hpp"
#include "rung/cpu/foreach_target.hpp"
#include "rung/cpu/load-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::stencil_cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace cpu_n = rung::cpu::HWY_NAMESPACE;

/// The first `valid` lanes of four vectors that lie one behind the other.
template <class D, class V, class T>
HWY_INLINE void store_four(D d, const V (&v)[4], T* out, std::int64_t valid) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (int i = 0; i < 4; ++i, valid -= lanes, out += lanes) {
    if (valid >= lanes) {
      hn::StoreU(v[i], d, out);
    } else if (valid > 0) {
      cpu_n::store_as_n(v[i], d, out, static_cast<std::size_t>(valid));
    }
  }
}

/// Four vectors of sums stay in registers while all taps pass over them: a load and a multiply-add
/// each, and four sums that do not wait for each other.
template <class T>
void weigh(const T* const* lines, int count, const T* weights, int taps, T scale, T* out,
           std::int64_t length) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t j = 0; j < length; j += 4 * lanes) {
    auto a = hn::Zero(d);
    auto b = a;
    auto e = a;
    auto f = a;
    const T* weight = weights;
    for (int line = 0; line < count; ++line) {
      const T* from = lines[line] + j;
      for (int tap = 0; tap < taps; ++tap, ++from, ++weight) {
        const auto w = hn::Set(d, *weight);
        a = hn::MulAdd(w, hn::LoadU(d, from), a);
        b = hn::MulAdd(w, hn::LoadU(d, from + lanes), b);
        e = hn::MulAdd(w, hn::LoadU(d, from + 2 * lanes), e);
        f = hn::MulAdd(w, hn::LoadU(d, from + 3 * lanes), f);
      }
    }
    const auto s = hn::Set(d, scale);
    const hn::Vec<decltype(d)> sums[4] = {hn::Mul(a, s), hn::Mul(b, s), hn::Mul(e, s),
                                          hn::Mul(f, s)};
    store_four(d, sums, out + j, length - j);
  }
}

template <class T>
void add(const T* a, const T* b, T scale, T* out, std::int64_t length) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto s = hn::Set(d, scale);
  std::int64_t j = 0;
  for (; j + lanes <= length; j += lanes) {
    hn::StoreU(hn::Mul(hn::Add(hn::LoadU(d, a + j), hn::LoadU(d, b + j)), s), d, out + j);
  }
  if (j < length) {
    const auto sum = hn::Add(hn::LoadU(d, a + j), hn::LoadU(d, b + j));
    cpu_n::store_as_n(hn::Mul(sum, s), d, out + j, static_cast<std::size_t>(length - j));
  }
}

void weigh_f32(const float* const* lines, int count, const float* weights, int taps, float scale,
               float* out, std::int64_t length) {
  weigh(lines, count, weights, taps, scale, out, length);
}
void weigh_f64(const double* const* lines, int count, const double* weights, int taps, double scale,
               double* out, std::int64_t length) {
  weigh(lines, count, weights, taps, scale, out, length);
}
void add_f32(const float* a, const float* b, float scale, float* out, std::int64_t length) {
  add(a, b, scale, out, length);
}
void add_f64(const double* a, const double* b, double scale, double* out, std::int64_t length) {
  add(a, b, scale, out, length);
}

void widen(DType type, const void* from, float* line, std::int64_t length) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  visit<float, f16, bf16, std::uint8_t>(type, [&]<class T>() HWY_ATTR {
    const auto* x = static_cast<const T*>(from);
    std::int64_t j = 0;
    for (; j + lanes <= length; j += lanes) hn::StoreU(cpu_n::load_as(d, x + j), d, line + j);
    if (j < length) {
      const auto n = static_cast<std::size_t>(length - j);
      cpu_n::store_as_n(cpu_n::load_as_n(d, x + j, n), d, line + j, n);
    }
  });
}

void narrow(const float* line, DType type, void* to, std::int64_t length) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  if (type == DType::u8) {
    const hn::Rebind<std::uint8_t, decltype(d)> bytes;
    auto* y = static_cast<std::uint8_t*>(to);
    HWY_ALIGN std::uint8_t rest[hn::MaxLanes(bytes)];
    for (std::int64_t j = 0; j < length; j += lanes) {
      // Numbers beyond the range first: what does not fit an i32 is not rounded to one.
      const auto value = hn::LoadU(d, line + j);
      const auto number = hn::IfThenZeroElse(hn::IsNaN(value), value);
      const auto fits = hn::Min(hn::Max(number, hn::Zero(d)), hn::Set(d, 255.0F));
      const auto rounded = hn::DemoteTo(bytes, hn::NearestInt(fits));
      if (j + lanes <= length) {
        hn::StoreU(rounded, bytes, y + j);
      } else {
        hn::Store(rounded, bytes, rest);
        for (std::int64_t i = j; i < length; ++i) y[i] = rest[i - j];
      }
    }
    return;
  }
  visit<float, f16, bf16>(type, [&]<class T>() HWY_ATTR {
    auto* y = static_cast<T*>(to);
    std::int64_t j = 0;
    for (; j + lanes <= length; j += lanes) cpu_n::store_as(hn::LoadU(d, line + j), d, y + j);
    if (j < length) {
      const auto n = static_cast<std::size_t>(length - j);
      cpu_n::store_as_n(hn::LoadU(d, line + j), d, y + j, n);
    }
  });
}

}  // namespace rung::stencil_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::stencil_cpu {
HWY_EXPORT(weigh_f32);
HWY_EXPORT(weigh_f64);
HWY_EXPORT(add_f32);
HWY_EXPORT(add_f64);
HWY_EXPORT(widen);
HWY_EXPORT(narrow);

void weigh_lines(const float* const* lines, int count, const float* weights, int taps, float scale,
                 float* out, std::int64_t length) {
  HWY_DYNAMIC_DISPATCH(weigh_f32)(lines, count, weights, taps, scale, out, length);
}
void weigh_lines(const double* const* lines, int count, const double* weights, int taps,
                 double scale, double* out, std::int64_t length) {
  HWY_DYNAMIC_DISPATCH(weigh_f64)(lines, count, weights, taps, scale, out, length);
}
void add_lines(const float* a, const float* b, float scale, float* out, std::int64_t length) {
  HWY_DYNAMIC_DISPATCH(add_f32)(a, b, scale, out, length);
}
void add_lines(const double* a, const double* b, double scale, double* out, std::int64_t length) {
  HWY_DYNAMIC_DISPATCH(add_f64)(a, b, scale, out, length);
}
void widen_line(DType type, const void* from, float* line, std::int64_t length) {
  HWY_DYNAMIC_DISPATCH(widen)(type, from, line, length);
}
void narrow_line(const float* line, DType type, void* to, std::int64_t length) {
  HWY_DYNAMIC_DISPATCH(narrow)(line, type, to, length);
}
}  // namespace rung::stencil_cpu
#endif
