// SPDX-License-Identifier: Apache-2.0
//
// One contiguous row with vectors along it: its statistics, block by block, and y.
#if defined(RUNG_OPS_NORM_CPU_ROW_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_NORM_CPU_ROW_INL_HPP_
#undef RUNG_OPS_NORM_CPU_ROW_INL_HPP_
#else
#define RUNG_OPS_NORM_CPU_ROW_INL_HPP_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "rung/cpu/load-inl.hpp"
#include "rung/cpu/prefetch.hpp"
#include "rung/ops/norm/shared/cpu/plan.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::norm_cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
using cpu::HWY_NAMESPACE::load_as;
using cpu::HWY_NAMESPACE::load_as_n;
using cpu::HWY_NAMESPACE::narrow;
using cpu::HWY_NAMESPACE::store_as;
using cpu::HWY_NAMESPACE::store_as_n;
using cpu::HWY_NAMESPACE::StoredTag;

template <class T>
using Wide = Accumulator<T>;
template <class T>
using Tag = hn::ScalableTag<Wide<T>>;
template <class T>
inline constexpr std::int64_t lanes = static_cast<std::int64_t>(hn::MaxLanes(Tag<T>()));

// Independent sums: they hide the latency of an addition (3 or 4 cycles, two a cycle). The loops
// over them stand where the sums are: captured by a lambda, the compiler keeps them in memory
// (three times slower with g++ 12).
constexpr int chains = 8;

template <class D, class V>
HWY_INLINE hn::TFromD<D> total(D d, V (&sums)[chains]) {
#pragma GCC unroll 4
  for (int k = 0; k < chains / 2; ++k) sums[k] = hn::Add(sums[k], sums[k + chains / 2]);
  const V pair = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
  return hn::GetLane(hn::SumOfLanes(d, pair));
}

const bool from_dram = cpu::asks_memory_for_lines();

/// While a row is worked on in L1, memory is idle: the next one is prefetched line by line during
/// the second pass (4096x4096 on a 2-core Zen 5 vCPU: 3.7 ms in place of 4.7; shared with the third
/// pass or left to it 3.8 to 3.9).
/// From memory into L2 where cpu::asks_memory_for_lines(): on a 2-core Zen 4 vCPU 256x65536 went
/// from 1.35 to 1.62 times the fastest peer's speed with one thread, from 1.38 to 1.52 with two.
template <class T>
struct Next {
  const T* at = nullptr;  // null: nothing is asked for
  bool far = false;

  HWY_INLINE void ask(std::int64_t first, std::int64_t elements) const {
    constexpr std::int64_t line = 64 / sizeof(T);
    if (at == nullptr) return;
    for (std::int64_t i = 0; i < elements; i += line) cpu::ask_for_line(at + first + i, far);
  }
};

/// Adds elements [from, n) of s to what the chains have; `from` is a multiple of what all of them
/// take in a turn.
template <class T, class V>
HWY_INLINE void add_sum(V (&sums)[chains], const T* s, std::int64_t from, std::int64_t n) {
  const Tag<T> d;
  constexpr std::int64_t step = lanes<T>;
  std::int64_t i = from;
  for (; i + chains * step <= n; i += chains * step) {
#pragma GCC unroll 8
    for (int k = 0; k < chains; ++k) sums[k] = hn::Add(sums[k], load_as(d, s + i + k * step));
  }
  for (; i + step <= n; i += step) sums[0] = hn::Add(sums[0], load_as(d, s + i));
  if (i < n) sums[1] = hn::Add(sums[1], load_as_n(d, s + i, static_cast<std::size_t>(n - i)));
}

/// The same of their distances from `middle`, and of the squares of these. `next` is asked for
/// meanwhile.
template <class T, class V>
HWY_INLINE void add_moments(V (&rest)[chains], V (&squares)[chains], V middle, const T* s,
                            std::int64_t from, std::int64_t n, Next<T> next) {
  const Tag<T> d;
  constexpr std::int64_t step = lanes<T>;
  std::int64_t i = from;
  for (; i + chains * step <= n; i += chains * step) {
    next.ask(i, chains * step);
#pragma GCC unroll 8
    for (int k = 0; k < chains; ++k) {
      const V distance = hn::Sub(load_as(d, s + i + k * step), middle);
      rest[k] = hn::Add(rest[k], distance);
      squares[k] = hn::MulAdd(distance, distance, squares[k]);
    }
  }
  for (; i + step <= n; i += step) {
    const V distance = hn::Sub(load_as(d, s + i), middle);
    rest[0] = hn::Add(rest[0], distance);
    squares[0] = hn::MulAdd(distance, distance, squares[0]);
  }
  if (i < n) {
    const auto count = static_cast<std::size_t>(n - i);
    const V distance =
        hn::IfThenElseZero(hn::FirstN(d, count), hn::Sub(load_as_n(d, s + i, count), middle));
    rest[1] = hn::Add(rest[1], distance);
    squares[1] = hn::MulAdd(distance, distance, squares[1]);
  }
}

/// sum(s)
template <class T>
HWY_INLINE Wide<T> sum_of(const T* s, std::int64_t n) {
  const Tag<T> d;
  hn::Vec<Tag<T>> sums[chains];
#pragma GCC unroll 8
  for (int k = 0; k < chains; ++k) sums[k] = hn::Zero(d);
  add_sum(sums, s, 0, n);
  return total(d, sums);
}

/// The moments of n elements of a row, at most `block`, about `center`. `next` is asked for
/// meanwhile.
template <class T>
HWY_INLINE Moments<Wide<T>> moments_about(Wide<T> center, const T* s, std::int64_t n,
                                          Next<T> next) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  V rest[chains];
  V squares[chains];
#pragma GCC unroll 8
  for (int k = 0; k < chains; ++k) rest[k] = squares[k] = hn::Zero(d);
  add_moments(rest, squares, V(hn::Set(d, center)), s, 0, n, next);
  return {center, total(d, rest), total(d, squares)};
}

/// The same of any row of at most `block`: two passes, the second over what is in L1 by then.
template <class T>
HWY_INLINE Moments<Wide<T>> moments_of(const T* s, std::int64_t n, bool layer, Next<T> next) {
  if (layer) {
    return finite_moments(moments_about(sum_of(s, n) / static_cast<Wide<T>>(n), s, n, next), s, n);
  }
  Moments<Wide<T>> result = moments_about<T>(0, s, n, next);
  result.rest = 0;
  return result;
}

/// s = x + residual, rounded to T; s may be either.
template <class T>
HWY_INLINE void add(const T* x, const T* residual, T* s, std::int64_t n) {
  const Tag<T> d;
  constexpr std::int64_t step = lanes<T>;
  std::int64_t i = 0;
  for (; i + step <= n; i += step) {
    store_as(hn::Add(load_as(d, x + i), load_as(d, residual + i)), d, s + i);
  }
  if (i < n) {
    const auto count = static_cast<std::size_t>(n - i);
    const auto sum = hn::Add(load_as_n(d, x + i, count), load_as_n(d, residual + i, count));
    store_as_n(sum, d, s + i, count);
  }
}

/// y from s, which it may be. `streams`: with non-temporal stores. `next` is as long as s and
/// prefetched meanwhile.
template <class T, bool streams>
HWY_INLINE void write(const T* s, T* y, std::int64_t n, const Scale<Wide<T>>& scale,
                      const Wide<T>* gamma, const Wide<T>* beta, Next<T> next) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  constexpr std::int64_t step = lanes<T>;
  const V center = hn::Set(d, scale.center);
  const V rstd = hn::Set(d, scale.rstd);
  const V shift = hn::Set(d, scale.shift);
  const auto y_of = [&](V v, V factor, V summand) HWY_ATTR {
    return hn::MulAdd(hn::MulAdd(hn::Sub(v, center), rstd, shift), factor, summand);
  };
  const V one = hn::Set(d, 1);
  const V zero = hn::Zero(d);
  const auto part = [&](std::int64_t i, std::size_t count) HWY_ATTR {
    const V factor = gamma != nullptr ? load_as_n(d, gamma + i, count) : one;
    const V summand = beta != nullptr ? load_as_n(d, beta + i, count) : zero;
    store_as_n(y_of(load_as_n(d, s + i, count), factor, summand), d, y + i, count);
  };
  std::int64_t i = 0;
  if constexpr (streams) {
    // Streaming stores must be aligned; two of 32 bytes (f16, bf16) make a line of the cache.
    constexpr std::uintptr_t line = static_cast<std::uintptr_t>(step) * sizeof(T);
    const std::uintptr_t beyond = reinterpret_cast<std::uintptr_t>(y) % line;
    if (beyond != 0) {
      i = std::min(n, static_cast<std::int64_t>((line - beyond) / sizeof(T)));
      part(0, static_cast<std::size_t>(i));
    }
  }
  // Eight at a time: streaming stores do better in bunches than one by one between loads
  // (4096x4096 on a 2-core Zen 5 vCPU: 3.9 ms against 4.2).
  constexpr int bunch = 8;
  for (; i + bunch * step <= n; i += bunch * step) {
    next.ask(i, bunch * step);
    V result[bunch];
    if (gamma != nullptr && beta != nullptr) {
#pragma GCC unroll 8
      for (int k = 0; k < bunch; ++k) {
        const std::int64_t at = i + k * step;
        result[k] = y_of(load_as(d, s + at), hn::LoadU(d, gamma + at), hn::LoadU(d, beta + at));
      }
    } else {
#pragma GCC unroll 8
      for (int k = 0; k < bunch; ++k) {
        const std::int64_t at = i + k * step;
        const V factor = gamma != nullptr ? hn::LoadU(d, gamma + at) : one;
        const V summand = beta != nullptr ? hn::LoadU(d, beta + at) : zero;
        result[k] = y_of(load_as(d, s + at), factor, summand);
      }
    }
#pragma GCC unroll 8
    for (int k = 0; k < bunch; ++k) {
      if constexpr (streams) {
        const StoredTag<T, Tag<T>> stored;
        using Bits = hn::TFromD<decltype(stored)>;
        hn::Stream(narrow<T>(d, result[k]), stored, reinterpret_cast<Bits*>(y + i + k * step));
      } else {
        store_as(result[k], d, y + i + k * step);
      }
    }
  }
  for (; i < n; i += step) part(i, static_cast<std::size_t>(std::min(step, n - i)));
}

/// Places of one row's first elements.
template <class T>
struct Row {
  const T* x;
  const T* residual;  // or null
  T* y;
  T* s;  // where x + residual goes: sum, or y until y itself is written
};

// Offsets one by one, not all into an array: an array is stored in one width and read in another,
// and such a read waits until every streaming store before it has left the core, row after row.
template <class T>
HWY_INLINE Row<T> row_at(const Call& call, std::int64_t index) {
  const Norm::Args& args = *call.args;
  const auto& rows = call.lines.rows;
  Row<T> row;
  row.x = static_cast<const T*>(args.x.data) + rows.template offset<norm_lines::row_x>(index);
  row.y = static_cast<T*>(args.y.data) + rows.template offset<norm_lines::row_y>(index);
  row.residual = nullptr;
  row.s = row.y;
  if (args.residual.data != nullptr) {
    row.residual = static_cast<const T*>(args.residual.data) +
                   rows.template offset<norm_lines::row_residual>(index);
    if (args.sum.data != nullptr) {
      row.s = static_cast<T*>(args.sum.data) + rows.template offset<norm_lines::row_sum>(index);
    }
  }
  return row;
}

template <class T>
HWY_INLINE void note(const Call& call, std::int64_t index, const Scale<Wide<T>>& scale) {
  const Norm::Args& args = *call.args;
  const auto& rows = call.lines.rows;
  if (args.mean.data != nullptr) {
    static_cast<Wide<T>*>(args.mean.data)[rows.template offset<norm_lines::row_mean>(index)] =
        scale.mean;
  }
  if (args.rstd.data != nullptr) {
    static_cast<Wide<T>*>(args.rstd.data)[rows.template offset<norm_lines::row_rstd>(index)] =
        scale.rstd;
  }
}

/// The statistics of a whole contiguous row; x + residual is stored in s on the way.
template <class T>
HWY_INLINE Scale<Wide<T>> scale_along(const Norm::Args& args, const T* x, const T* residual, T* s,
                                      std::int64_t n, Next<T> next) {
  const bool layer = args.kind == NormKind::layer;
  const T* source = residual != nullptr ? s : x;
  if (n <= block) {
    if (residual != nullptr) add(x, residual, s, n);
    return scale_of(moments_of(source, n, layer, next), n, args.epsilon);
  }
  CombinedMoments<Wide<T>> combined(n);
  for (std::int64_t first = 0; first < n; first += block) {
    const std::int64_t count = std::min(block, n - first);
    if (residual != nullptr) add(x + first, residual + first, s + first, count);
    combined.add(moments_of<T>(source + first, count, layer, {x + first + count, next.far}), count);
  }
  return combined.scale(args.epsilon);
}

}  // namespace
}  // namespace rung::norm_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
