// SPDX-License-Identifier: Apache-2.0
// stencil's vector code: see kernels.hpp.
#include "rung/ops/stencil/cpu/detail/kernels.hpp"

#include <hwy/cache_control.h>

#include <algorithm>

#include "rung/cpu/foreach_target.hpp"
#include "rung/cpu/load-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::stencil_cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace cpu_n = rung::cpu::HWY_NAMESPACE;

/// Vectors of a row of sums in the main loop: with block_rows of them, what the registers hold
/// beside elements and a weight.
inline constexpr int row_vectors = HWY_TARGET <= HWY_AVX3 ? 4 : 2;

template <class T>
using Vector = hn::Vec<hn::ScalableTag<T>>;

/// Vectors next to each other; by name, for GCC keeps arrays in memory here.
template <class T>
struct Four {
  Vector<T> a, b, c, d;
};

/// The vector has one load, however many use it: GCC would repeat it as an operand of each.
template <class V>
HWY_INLINE void load_once([[maybe_unused]] V& v) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  asm("" : "+v"(v.raw));
#endif
}

template <int vectors, class T>
HWY_INLINE void load_row(const T* from, Four<T>& x) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto load = [&](int i) HWY_ATTR {
    auto v = hn::LoadU(d, from + i * lanes);
    load_once(v);
    return v;
  };
  x.a = load(0);
  if constexpr (vectors > 1) x.b = load(1);
  if constexpr (vectors > 2) x.c = load(2);
  if constexpr (vectors > 2) x.d = load(3);
}

template <int vectors, class T>
HWY_INLINE void add_row(T weight, const Four<T>& x, Four<T>& sum) {
  const auto w = hn::Set(hn::ScalableTag<T>(), weight);
  sum.a = hn::MulAdd(w, x.a, sum.a);
  if constexpr (vectors > 1) sum.b = hn::MulAdd(w, x.b, sum.b);
  if constexpr (vectors > 2) sum.c = hn::MulAdd(w, x.c, sum.c);
  if constexpr (vectors > 2) sum.d = hn::MulAdd(w, x.d, sum.d);
}

/// Sums of the rows of a block.
template <class T>
struct Sums {
  Four<T> row0, row1, row2, row3;
};

/// One line's part in the sums of rows first to last, whose masks it is under: with weights[-q *
/// across] and those behind it in row q. A load of elements serves all of these rows, one of a
/// weight all vectors.
template <int first, int last, int vectors, class T>
HWY_INLINE void weigh_line(const T* from, const T* weights, int across, Sums<T>& sums) {
  for (int tap = 0; tap < across; ++tap, ++from, ++weights) {
    Four<T> x;
    load_row<vectors>(from, x);
    if constexpr (first <= 0) add_row<vectors>(weights[0], x, sums.row0);
    if constexpr (first <= 1 && last >= 1) add_row<vectors>(weights[-across], x, sums.row1);
    if constexpr (first <= 2 && last >= 2) add_row<vectors>(weights[-2 * across], x, sums.row2);
    if constexpr (last >= 3) add_row<vectors>(weights[-3 * across], x, sums.row3);
  }
}

/// The same with the rows found out.
template <int vectors, class T>
HWY_INLINE void weigh_line_of(int r, int down, const T* from, const T* weights, int across,
                              Sums<T>& sums) {
  const int first = std::max(0, r - down + 1);
  switch (first * 4 + std::min(r, 3)) {
    case 0 * 4 + 0:
      return weigh_line<0, 0, vectors>(from, weights, across, sums);
    case 0 * 4 + 1:
      return weigh_line<0, 1, vectors>(from, weights, across, sums);
    case 0 * 4 + 2:
      return weigh_line<0, 2, vectors>(from, weights, across, sums);
    case 0 * 4 + 3:
      return weigh_line<0, 3, vectors>(from, weights, across, sums);
    case 1 * 4 + 1:
      return weigh_line<1, 1, vectors>(from, weights, across, sums);
    case 1 * 4 + 2:
      return weigh_line<1, 2, vectors>(from, weights, across, sums);
    case 1 * 4 + 3:
      return weigh_line<1, 3, vectors>(from, weights, across, sums);
    case 2 * 4 + 2:
      return weigh_line<2, 2, vectors>(from, weights, across, sums);
    case 2 * 4 + 3:
      return weigh_line<2, 3, vectors>(from, weights, across, sums);
    default:
      return weigh_line<3, 3, vectors>(from, weights, across, sums);
  }
}

template <int vectors, class T>
HWY_INLINE void store_row(const Four<T>& sum, T scale, T* out, bool streams) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto s = hn::Set(d, scale);
  const auto store = [&](Vector<T> v, int i) HWY_ATTR {
    if (streams) {
      hn::Stream(hn::Mul(v, s), d, out + i * lanes);
    } else {
      hn::StoreU(hn::Mul(v, s), d, out + i * lanes);
    }
  };
  store(sum.a, 0);
  if constexpr (vectors > 1) store(sum.b, 1);
  if constexpr (vectors > 2) store(sum.c, 2);
  if constexpr (vectors > 2) store(sum.d, 3);
}

/// Columns j and those behind it: so many vectors, or, of one vector, the first `valid` lanes. Sums
/// stay in registers while all lines and taps pass.
template <class T, int rows, int vectors>
HWY_INLINE void weigh_columns(const Weighing<T>& w, std::int64_t j, std::int64_t valid) {
  const hn::ScalableTag<T> d;
  const auto zero = hn::Zero(d);
  const Four<T> none{zero, zero, zero, zero};
  Sums<T> sums{none, none, none, none};
  const T* const* line = w.lines;
  const T* weights = w.weights;
  for (int k = 0; k < w.planes; ++k, weights += w.down * w.across) {
    for (int r = 0; r < w.down + rows - 1; ++r, ++line) {
      if constexpr (rows == 1) {
        weigh_line<0, 0, vectors>(*line + j, weights + r * w.across, w.across, sums);
      } else {
        weigh_line_of<vectors>(r, w.down, *line + j, weights + r * w.across, w.across, sums);
      }
    }
  }
  if (valid < static_cast<std::int64_t>(hn::Lanes(d))) {
    const auto store = [&](const Four<T>& sum, int q) HWY_ATTR {
      cpu_n::store_as_n(hn::Mul(sum.a, hn::Set(d, w.scale)), d, w.out[q] + j,
                        static_cast<std::size_t>(valid));
    };
    store(sums.row0, 0);
    if constexpr (rows > 1) {
      store(sums.row1, 1);
      store(sums.row2, 2);
      store(sums.row3, 3);
    }
    return;
  }
  store_row<vectors>(sums.row0, w.scale, w.out[0] + j, w.streams);
  if constexpr (rows > 1) {
    store_row<vectors>(sums.row1, w.scale, w.out[1] + j, w.streams);
    store_row<vectors>(sums.row2, w.scale, w.out[2] + j, w.streams);
    store_row<vectors>(sums.row3, w.scale, w.out[3] + j, w.streams);
  }
}

template <class T, int rows, int vectors>
HWY_NOINLINE void weigh(const Weighing<T>& w) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  std::int64_t j = 0;
  for (; j + vectors * lanes <= w.length; j += vectors * lanes) {
    weigh_columns<T, rows, vectors>(w, j, lanes);
  }
  for (; j < w.length; j += lanes) weigh_columns<T, rows, 1>(w, j, w.length - j);
}

template <class T>
void weigh_any(const Weighing<T>& w) {
  if (w.rows == block_rows) {
    weigh<T, block_rows, row_vectors>(w);
  } else {
    weigh<T, 1, 4>(w);
  }
}

template <class T>
void add(const T* a, const T* b, T scale, T* out, std::int64_t length, bool streams) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto s = hn::Set(d, scale);
  std::int64_t j = 0;
  const auto result = [&](std::int64_t i) HWY_ATTR {
    return hn::Mul(hn::Add(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), s);
  };
  if (streams) {
    for (; j + lanes <= length; j += lanes) hn::Stream(result(j), d, out + j);
  } else {
    for (; j + lanes <= length; j += lanes) hn::StoreU(result(j), d, out + j);
  }
  if (j < length) {
    cpu_n::store_as_n(result(j), d, out + j, static_cast<std::size_t>(length - j));
  }
}

/// Sums of 2, 4, 8 and 16 neighbors, each from the ones in front; of those that the window's
/// length is made of, one after the other. All of a piece stays in L1.
template <class T>
void sum_along(const T* from, int taps, T* out, std::int64_t length) {
  constexpr std::int64_t piece = 512;
  constexpr std::int64_t room = piece + 2 * line_slack;
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  HWY_ALIGN T levels[4][room];
  for (std::int64_t at = 0; at < length; at += piece) {
    const std::int64_t columns = std::min(piece, length - at);
    const T* sums[5] = {from + at, levels[0], levels[1], levels[2], levels[3]};
    for (int level = 1; 1 << level <= taps; ++level) {
      const int half = 1 << level >> 1;
      const std::int64_t count = columns + taps - 2 * half;
      const T* const in = sums[level - 1];
      T* const to = levels[level - 1];
      std::int64_t j = 0;
      for (; j + lanes <= count; j += lanes) {
        hn::Store(hn::Add(hn::LoadU(d, in + j), hn::LoadU(d, in + j + half)), d, to + j);
      }
      if (j < count) {  // `from` may end here
        const auto n = static_cast<std::size_t>(count - j);
        hn::Store(hn::Add(cpu_n::load_as_n(d, in + j, n), cpu_n::load_as_n(d, in + j + half, n)), d,
                  to + j);
      }
    }
    for (std::int64_t j = 0; j < columns; j += lanes) {
      auto sum = hn::Zero(d);
      std::int64_t shift = 0;
      for (int level = 0; 1 << level <= taps; ++level) {
        if ((taps >> level & 1) == 0) continue;
        const auto part = hn::LoadU(d, sums[level] + j + shift);
        sum = shift == 0 ? part : hn::Add(sum, part);
        shift += 1 << level;
      }
      if (j + lanes <= columns) {
        hn::StoreU(sum, d, out + at + j);
      } else {
        cpu_n::store_as_n(sum, d, out + at + j, static_cast<std::size_t>(columns - j));
      }
    }
  }
}

void weigh_f32(const Weighing<float>& w) { weigh_any(w); }
void weigh_f64(const Weighing<double>& w) { weigh_any(w); }
void add_f32(const float* a, const float* b, float scale, float* out, std::int64_t length,
             bool streams) {
  add(a, b, scale, out, length, streams);
}
void add_f64(const double* a, const double* b, double scale, double* out, std::int64_t length,
             bool streams) {
  add(a, b, scale, out, length, streams);
}

void sum_along_f32(const float* from, int taps, float* out, std::int64_t length) {
  sum_along(from, taps, out, length);
}
void sum_along_f64(const double* from, int taps, double* out, std::int64_t length) {
  sum_along(from, taps, out, length);
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
HWY_EXPORT(sum_along_f32);
HWY_EXPORT(sum_along_f64);
HWY_EXPORT(widen);
HWY_EXPORT(narrow);

void weigh_lines(const Weighing<float>& w) { HWY_DYNAMIC_DISPATCH(weigh_f32)(w); }
void weigh_lines(const Weighing<double>& w) { HWY_DYNAMIC_DISPATCH(weigh_f64)(w); }
void add_lines(const float* a, const float* b, float scale, float* out, std::int64_t length,
               bool streams) {
  HWY_DYNAMIC_DISPATCH(add_f32)(a, b, scale, out, length, streams);
}
void add_lines(const double* a, const double* b, double scale, double* out, std::int64_t length,
               bool streams) {
  HWY_DYNAMIC_DISPATCH(add_f64)(a, b, scale, out, length, streams);
}
void sum_windows(const float* from, int taps, float* out, std::int64_t length) {
  HWY_DYNAMIC_DISPATCH(sum_along_f32)(from, taps, out, length);
}
void sum_windows(const double* from, int taps, double* out, std::int64_t length) {
  HWY_DYNAMIC_DISPATCH(sum_along_f64)(from, taps, out, length);
}
void end_streaming() { hwy::FlushStream(); }
void widen_line(DType type, const void* from, float* line, std::int64_t length) {
  HWY_DYNAMIC_DISPATCH(widen)(type, from, line, length);
}
void narrow_line(const float* line, DType type, void* to, std::int64_t length) {
  HWY_DYNAMIC_DISPATCH(narrow)(line, type, to, length);
}
}  // namespace rung::stencil_cpu
#endif
