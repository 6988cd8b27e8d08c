// SPDX-License-Identifier: Apache-2.0
// Pixels of a layer, as runs within a row; and their gathering into panels and rows for the tiles,
// with the padding as zeros and small types widened.
#if defined(RUNG_OPS_CONV_CPU_GATHER_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_CONV_CPU_GATHER_INL_HPP_
#undef RUNG_OPS_CONV_CPU_GATHER_INL_HPP_
#else
#define RUNG_OPS_CONV_CPU_GATHER_INL_HPP_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "rung/core/integer.hpp"
#include "rung/cpu/activate-inl.hpp"
#include "rung/cpu/load-inl.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/conv/shared/cpu/tile-inl.hpp"
#include "rung/ops/conv/shared/gathered.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::conv_cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using conv_layer::Gathered;
using conv_layer::SourceAxis;
using cpu::HWY_NAMESPACE::activate;

/// Pixels that are neighbors in one row of one image.
struct Run {
  std::int64_t n, o[3];  // the first one
  int column;            // among the pixels of a panel
  int count;
};

/// Pixels [first, first + count) of all images, as runs; returns how many.
inline int runs_of(const Gathered& g, std::int64_t first, int count, Run* runs) {
  int made = 0;
  for (int column = 0; column < count;) {
    Run& run = runs[made++];
    std::int64_t rest = first + column;
    for (int axis = 2; axis >= 0; --axis) {
      run.o[axis] = rest % g.axis[axis].places;
      rest /= g.axis[axis].places;
    }
    run.n = rest;
    run.column = column;
    run.count =
        static_cast<int>(std::min<std::int64_t>(count - column, g.axis[2].places - run.o[2]));
    column += run.count;
  }
  return made;
}

/// Elements a step apart, widened.
template <class T, class In>
HWY_INLINE void copy_strided(T* to, const In* from, std::int64_t step, int count) {
  if (step == 1) {
    const hn::ScalableTag<T> d;
    const int lanes = static_cast<int>(hn::Lanes(d));
    int i = 0;
    for (; i + lanes <= count; i += lanes) {
      hn::StoreU(cpu::HWY_NAMESPACE::load_as(d, from + i), d, to + i);
    }
    if (i < count) {
      const auto rest = static_cast<std::size_t>(count - i);
      cpu::HWY_NAMESPACE::store_as_n(cpu::HWY_NAMESPACE::load_as_n(d, from + i, rest), d, to + i,
                                     rest);
    }
    return;
  }
  for (int i = 0; i < count; ++i) to[i] = static_cast<T>(from[i * step]);
}

/// Four rows of `count` elements, `row` apart, as columns: to[k pitch + i] is row i's element k.
template <class T, class In>
HWY_INLINE void transpose_four(const In* from, std::int64_t row, std::int64_t count, T* to,
                               std::int64_t pitch) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int lanes = lanes_of<T>;
  for (std::int64_t k = 0; k < count; k += lanes) {
    const auto some = static_cast<std::size_t>(std::min<std::int64_t>(lanes, count - k));
    V v[4];
    for (int i = 0; i < 4; ++i) {
      const In* line = from + i * row + k;
      v[i] = some == lanes ? cpu::HWY_NAMESPACE::load_as(d, line)
                           : cpu::HWY_NAMESPACE::load_as_n(d, line, some);
    }
    HWY_ALIGN T four[4 * lanes];
    hn::StoreInterleaved4(v[0], v[1], v[2], v[3], d, four);
    for (std::size_t i = 0; i < some; ++i) {
      std::memcpy(to + (k + static_cast<std::int64_t>(i)) * pitch, four + 4 * i, 4 * sizeof(T));
    }
  }
}

/// Pixels [begin, end) of an axis whose taps are all within the image.
inline cpu::Range inside(const SourceAxis& axis) {
  const std::int64_t span = (axis.kernel - 1) * axis.between;
  const std::int64_t low = axis.start + std::min<std::int64_t>(0, span);
  const std::int64_t room = axis.extent - 1 - axis.start - std::max<std::int64_t>(0, span);
  const std::int64_t begin = low >= 0 ? 0 : ceil_div(-low, axis.step);
  const std::int64_t end = room < 0 ? 0 : room / axis.step + 1;
  const std::int64_t last = std::clamp<std::int64_t>(end, 0, axis.places);
  return {std::min(begin, last), last};
}

/// One channel and tap of a run of pixels: to[0, count), zero where the tap is outside. `row` is
/// the image's row, null where that is outside.
template <class T, class In>
HWY_INLINE void gather_run(const SourceAxis& axis, const In* row, std::int64_t stride,
                           std::int64_t o, std::int64_t t, int count, T* to) {
  if (row == nullptr) {
    std::memset(to, 0, static_cast<std::size_t>(count) * sizeof(T));
    return;
  }
  const std::int64_t at = o * axis.step + axis.start + t * axis.between;
  if (axis.divisor != 1) {
    for (int i = 0; i < count; ++i) {
      const std::int64_t from = axis.source(o + i, t);
      to[i] = from < 0 ? T{0} : static_cast<T>(row[from * stride]);
    }
    return;
  }
  // Pixels [begin, end) of the run are within the image.
  const std::int64_t step = axis.step;
  std::int64_t begin = at >= 0 ? 0 : (step == 1 ? -at : (-at + step - 1) / step);
  const std::int64_t room = axis.extent - at;  // places from the first pixel's to the end
  std::int64_t end = room <= 0 ? 0 : (step == 1 ? room : (room - 1) / step + 1);
  begin = std::min<std::int64_t>(begin, count);
  end = std::clamp<std::int64_t>(end, begin, count);
  for (std::int64_t i = 0; i < begin; ++i) to[i] = T{0};
  if (end > begin) {
    copy_strided(to + begin, row + (at + begin * step) * stride, step * stride,
                 static_cast<int>(end - begin));
  }
  for (std::int64_t i = end; i < count; ++i) to[i] = T{0};
}

/// The row of the image that taps t0, t1 of a run are in; null in the padding.
template <class In>
HWY_INLINE const In* row_of(const Gathered& g, const In* channel, const Run& run, std::int64_t t0,
                            std::int64_t t1) {
  const std::int64_t d = g.axis[0].source(run.o[0], t0);
  const std::int64_t h = g.axis[1].source(run.o[1], t1);
  if (d < 0 || h < 0) return nullptr;
  return channel + run.n * g.x_strides[0] + d * g.x_strides[2] + h * g.x_strides[3];
}

/// Terms [first, first + count) of some pixels, term (q, t) in the order q t0 t1 t2, each `row`
/// elements long: to[term][pixel].
template <class T, class In>
void gather_terms(const Gathered& g, const In* group, const Run* runs, int run_count,
                  std::int64_t first, std::int64_t count, T* to, std::int64_t row) {
  std::int64_t rest = first;
  std::int64_t t2 = rest % g.axis[2].kernel;
  rest /= g.axis[2].kernel;
  std::int64_t t1 = rest % g.axis[1].kernel;
  rest /= g.axis[1].kernel;
  std::int64_t t0 = rest % g.axis[0].kernel;
  std::int64_t q = rest / g.axis[0].kernel;
  for (std::int64_t term = 0; term < count; ++term, to += row) {
    const In* channel = group + q * g.x_strides[1];
    for (int i = 0; i < run_count; ++i) {
      const Run& run = runs[i];
      gather_run(g.axis[2], row_of(g, channel, run, t0, t1), g.x_strides[4], run.o[2], t2,
                 run.count, to + run.column);
    }
    if (++t2 < g.axis[2].kernel) continue;
    t2 = 0;
    if (++t1 < g.axis[1].kernel) continue;
    t1 = 0;
    if (++t0 < g.axis[0].kernel) continue;
    t0 = 0;
    ++q;
  }
}

/// Elements a step apart, rounded to their type.
template <class T, class Out>
HWY_INLINE void store_strided(const T* from, Out* to, std::int64_t step, int count) {
  if (step == 1) {
    const hn::ScalableTag<T> d;
    const int lanes = static_cast<int>(hn::Lanes(d));
    int i = 0;
    for (; i + lanes <= count; i += lanes) {
      cpu::HWY_NAMESPACE::store_as(hn::LoadU(d, from + i), d, to + i);
    }
    if (i < count) {
      const auto rest = static_cast<std::size_t>(count - i);
      // Behind the last run there is no vector to read.
      const auto v = cpu::HWY_NAMESPACE::load_as_n(d, from + i, rest);
      cpu::HWY_NAMESPACE::store_as_n(v, d, to + i, rest);
    }
    return;
  }
  for (int i = 0; i < count; ++i) to[i * step] = static_cast<Out>(from[i]);
}

/// Biases, zeros where there are none. A bias of -0 becomes +0: a sum of nothing but zeros is then
/// +0 wherever the bias is added, and however many terms of the padding are.
template <class T, class In>
void copy_bias(const Gathered& g, std::int64_t first, int count, T* to) {
  const auto* bias = static_cast<const In*>(g.bias);
  for (int i = 0; i < count; ++i) {
    to[i] = bias == nullptr ? T{0} : static_cast<T>(bias[(first + i) * g.bias_stride]) + T{0};
  }
}

/// Rows of sums, one per filter, with bias and activation, to the pixels of some runs; the first
/// `used` of a row are numbers.
template <class T, class In>
void write_filters(const Gathered& g, std::int64_t first, std::int64_t filters, const Run* runs,
                   int run_count, int used, T* sums) {
  const hn::ScalableTag<T> d;
  const auto whole = static_cast<int>(round_up(used, lanes_of<T>));
  In* y = static_cast<In*>(g.y) + first * g.y_strides[1];
  for (std::int64_t i = 0; i < filters; ++i, sums += panel_columns<T>, y += g.y_strides[1]) {
    if (g.bias != nullptr) {
      T bias;
      copy_bias<T, In>(g, first + i, 1, &bias);
      for (int j = 0; j < whole; j += lanes_of<T>) {
        hn::StoreU(hn::Add(hn::LoadU(d, sums + j), hn::Set(d, bias)), d, sums + j);
      }
    }
    activate(g.activation, sums, whole);
    for (int r = 0; r < run_count; ++r) {
      const Run& run = runs[r];
      In* to = y + run.n * g.y_strides[0] + run.o[0] * g.y_strides[2] + run.o[1] * g.y_strides[3] +
               run.o[2] * g.y_strides[4];
      store_strided(sums + run.column, to, g.y_strides[4], run.count);
    }
  }
}

}  // namespace rung::conv_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
