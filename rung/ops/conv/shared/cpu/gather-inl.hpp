// SPDX-License-Identifier: Apache-2.0
// Building blocks of conv's SIMD rungs: runs of pixels within a row, the terms and weights that a
// tile reads, and the results that it stores. Padding reads as zeros; small types are widened.
#if defined(RUNG_OPS_CONV_CPU_GATHER_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_CONV_CPU_GATHER_INL_HPP_
#undef RUNG_OPS_CONV_CPU_GATHER_INL_HPP_
#else
#define RUNG_OPS_CONV_CPU_GATHER_INL_HPP_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "rung/core/context.hpp"
#include "rung/core/integer.hpp"
#include "rung/cpu/activate-inl.hpp"
#include "rung/cpu/register_tile-inl.hpp"
#include "rung/cpu/strided-inl.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/conv/shared/gathered.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::conv_cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace cpu::HWY_NAMESPACE;  // NOLINT: tiles, loads and stores
using conv_layer::Gathered;
using conv_layer::SourceAxis;

/// Number of columns of a full panel.
template <class T>
constexpr int panel_columns = tile_vectors* lanes_of<T>;

/// Adjacent pixels in one row of one image.
struct Run {
  std::int64_t n, o[3];  // first pixel
  int column;            // of the first pixel in its panel
  int count;
};

/// Splits pixels [first, first + count) of all images into runs; returns the number of runs.
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

/// Returns the range of i in [0, count) for which at + i step is in [0, extent).
HWY_INLINE cpu::Range part_inside(std::int64_t at, std::int64_t step, std::int64_t extent,
                                  std::int64_t count) {
  const auto steps = [&](std::int64_t places) {
    return step == 1 ? places : ceil_div(places, step);
  };
  const std::int64_t begin = std::min(at < 0 ? steps(-at) : 0, count);
  const std::int64_t end = at < extent ? steps(extent - at) : 0;
  return {begin, std::clamp(end, begin, count)};
}

/// Returns the range of an axis's pixels whose taps are all within the image.
inline cpu::Range inside(const SourceAxis& axis) {
  const std::int64_t span = (axis.kernel - 1) * axis.between;
  const auto of_tap = [&](std::int64_t at) {
    return part_inside(axis.start + at, axis.step, axis.extent, axis.places);
  };
  const cpu::Range first = of_tap(std::min<std::int64_t>(0, span));
  const cpu::Range last = of_tap(std::max<std::int64_t>(0, span));
  return {std::min(first.begin, last.end), last.end};
}

/// Gathers one channel and tap of a run of pixels into to[0, count), zero where the tap is outside
/// the image. `row` is the image's row, null if the row is outside.
template <class T, class In>
HWY_INLINE void gather_run(const SourceAxis& axis, const In* row, std::int64_t stride,
                           std::int64_t o, std::int64_t t, int count, T* to) {
  if (row == nullptr) {
    std::memset(to, 0, static_cast<std::size_t>(count) * sizeof(T));
    return;
  }
  if (axis.divisor != 1) {
    for (int i = 0; i < count; ++i) {
      const std::int64_t from = axis.source(o + i, t);
      to[i] = from < 0 ? T{0} : static_cast<T>(row[from * stride]);
    }
    return;
  }
  const std::int64_t at = o * axis.step + axis.start + t * axis.between;
  const cpu::Range in = part_inside(at, axis.step, axis.extent, count);
  for (std::int64_t i = 0; i < in.begin; ++i) to[i] = T{0};
  if (in.size() > 0) {
    copy_strided(to + in.begin, row + (at + in.begin * axis.step) * stride, axis.step * stride,
                 static_cast<int>(in.size()));
  }
  for (std::int64_t i = in.end; i < count; ++i) to[i] = T{0};
}

/// Returns the image row that taps t0, t1 of a run read; null if it is in the padding.
template <class In>
HWY_INLINE const In* row_of(const Gathered& g, const In* channel, const Run& run, std::int64_t t0,
                            std::int64_t t1) {
  const std::int64_t d = g.axis[0].source(run.o[0], t0);
  const std::int64_t h = g.axis[1].source(run.o[1], t1);
  if (d < 0 || h < 0) return nullptr;
  return channel + run.n * g.x_strides[0] + d * g.x_strides[2] + h * g.x_strides[3];
}

/// Term of a sum: channel q and tap t.
struct TermIndex {
  std::int64_t q, t[3];
};
/// Returns term number `term`, in the order of channels then taps, or of taps then channels.
inline TermIndex term_at(const Gathered& g, std::int64_t term, bool channels_outside) {
  TermIndex at{};
  if (!channels_outside) {
    at.q = term % g.q;
    term /= g.q;
  }
  for (int axis = 2; axis >= 0; --axis) {
    at.t[axis] = term % g.axis[axis].kernel;
    term /= g.axis[axis].kernel;
  }
  if (channels_outside) at.q = term;
  return at;
}
/// Advances t to the next tap. After the last tap it resets t to the first and returns false.
inline bool next_tap(const Gathered& g, std::int64_t (&t)[3]) {
  for (int axis = 2; axis >= 0; --axis) {
    if (++t[axis] < g.axis[axis].kernel) return true;
    t[axis] = 0;
  }
  return false;
}
/// Calls f(t) for each tap.
template <class F>
HWY_INLINE void for_each_tap(const Gathered& g, const F& f) {
  std::int64_t t[3];
  for (t[0] = 0; t[0] < g.axis[0].kernel; ++t[0]) {
    for (t[1] = 0; t[1] < g.axis[1].kernel; ++t[1]) {
      for (t[2] = 0; t[2] < g.axis[2].kernel; ++t[2]) f(t);
    }
  }
}
/// Returns the offset of a tap's weight from the first weight of its filter and channel.
inline std::int64_t weight_at(const Gathered& g, const std::int64_t (&t)[3]) {
  return t[0] * g.w_strides[2] + t[1] * g.w_strides[3] + t[2] * g.w_strides[4];
}

/// Gathers terms [first, first + count) of some pixels, channels outermost: to[term][pixel], with
/// rows `pitch` apart.
template <class T, class In>
void gather_terms(const Gathered& g, const In* group, const Run* runs, int run_count,
                  std::int64_t first, std::int64_t count, T* to, std::int64_t pitch) {
  TermIndex at = term_at(g, first, true);
  for (std::int64_t term = 0; term < count; ++term, to += pitch) {
    const In* channel = group + at.q * g.x_strides[1];
    for (int i = 0; i < run_count; ++i) {
      const Run& run = runs[i];
      gather_run(g.axis[2], row_of(g, channel, run, at.t[0], at.t[1]), g.x_strides[4], run.o[2],
                 at.t[2], run.count, to + run.column);
    }
    if (!next_tap(g, at.t)) ++at.q;
  }
}

/// Packs the weights of `rows` filters, channels outermost: to[term][filter].
template <class T, class In>
void pack_filters(const Gathered& g, const In* from, int rows, T* to) {
  const std::int64_t across = g.axis[2].kernel, tap = g.w_strides[4], filter = g.w_strides[0];
  for (std::int64_t q = 0; q < g.q; ++q) {
    for (std::int64_t t0 = 0; t0 < g.axis[0].kernel; ++t0) {
      for (std::int64_t t1 = 0; t1 < g.axis[1].kernel; ++t1) {
        const In* line = from + q * g.w_strides[1] + t0 * g.w_strides[2] + t1 * g.w_strides[3];
        for (std::int64_t t2 = 0; t2 < across; ++t2, line += tap, to += rows) {
          for (int i = 0; i < rows; ++i) to[i] = static_cast<T>(line[i * filter]);
        }
      }
    }
  }
}

/// Copies biases, or zeros if there are none. A bias of -0 becomes +0, so that a sum of zeros is +0
/// wherever the bias is added and however many terms of the padding are added.
template <class T, class In>
void copy_bias(const Gathered& g, std::int64_t first, int count, T* to) {
  const auto* bias = static_cast<const In*>(g.bias);
  for (int i = 0; i < count; ++i) {
    to[i] = bias == nullptr ? T{0} : static_cast<T>(bias[(first + i) * g.bias_stride]) + T{0};
  }
}

/// Returns the offset of pixel o of y from the first pixel of its channel.
inline std::int64_t result_at(const Gathered& g, std::int64_t n, const std::int64_t (&o)[3]) {
  return n * g.y_strides[0] + o[0] * g.y_strides[2] + o[1] * g.y_strides[3] + o[2] * g.y_strides[4];
}

/// Stores rows of sums, one per filter, with bias and activation, to the pixels of some runs; only
/// the first `used` elements of a row are initialized.
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
      store_strided(sums + run.column, y + result_at(g, run.n, run.o), g.y_strides[4], run.count);
    }
  }
}

/// Runs a layer on a team of threads: layer.run(team, shared, own), with memory shared by all
/// threads and memory of each thread.
template <class Layer>
void run_layer(const Layer& layer, Context& context, int threads) {
  const std::size_t shared = layer.shared_bytes(), own = layer.thread_bytes();
  auto* memory =
      static_cast<std::byte*>(context.workspace(shared + static_cast<std::size_t>(threads) * own));
  cpu::run_team(threads, [&](const cpu::Team& team) {
    layer.run(team, memory, memory + shared + static_cast<std::size_t>(team.rank()) * own);
  });
}

}  // namespace rung::conv_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
