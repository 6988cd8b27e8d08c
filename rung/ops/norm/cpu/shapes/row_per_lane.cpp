// SPDX-License-Identifier: Apache-2.0
// norm / row per lane
//
// Idea     A vector holds one element of several rows, one row per lane, so sums need no horizontal
//          reduction. Rows that are adjacent in memory (the normalized axis is not the innermost
//          one) are loaded directly; rows of up to 8 elements, which would leave vectors mostly
//          empty, are transposed into a panel and back.
// Changes  Against the rung threads, which gathers rows element by element: memory is read in
//          contiguous order.
// Cost     x is read up to three times, in panels of four vectors of rows, 256 bytes per column; y
//          is written once.
// Limits   Adjacent rows, and rows of up to 8 elements. Long columns do not stay in L1.
#include "rung/cpu/foreach_target.hpp"

#include <algorithm>

#include "rung/core/integer.hpp"
#include "rung/ops/norm/cpu/detail/call.hpp"
#include "rung/ops/norm/shared/cpu/row-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::norm_cpu::HWY_NAMESPACE {
namespace {
using cpu::HWY_NAMESPACE::store_as;
using cpu::HWY_NAMESPACE::store_as_n;

/// Longest rows that are transposed.
constexpr std::int64_t turned_row = 8;

/// Additions per accumulator before it is added to the total: no chain is longer than n / 32 + 32.
constexpr std::int64_t chain = 32;

/// Tensor pointers at the first row of a panel; offsets within a row are those of Lines' columns.
template <class T>
struct Panel {
  const T* x;
  const T* residual;
  T* y;
  T* sum;
  std::int64_t at[6];  // of the first row, by RowTensor
};

/// Stores mean and rstd of `count` rows, from row `first` of the panel on.
template <class T>
HWY_NOINLINE void store_lanes(const NormCall& call, const Panel<T>& panel, const Wide<T>* means,
                              const Wide<T>* rstds, std::int64_t first, std::int64_t count) {
  const auto& strides = call.lines.rows.strides;
  const int inner = std::max(0, call.lines.rows.rank - 1);
  const auto store_lane = [&](const TensorRef& tensor, int which, const Wide<T>* values) {
    if (tensor.data == nullptr) return;
    Wide<T>* to = static_cast<Wide<T>*>(tensor.data) + panel.at[which];
    for (std::int64_t i = 0; i < count; ++i) to[(first + i) * strides[which][inner]] = values[i];
  };
  store_lane(call.args->mean, norm_lines::row_mean, means);
  store_lane(call.args->rstd, norm_lines::row_rstd, rstds);
}

/// Applies finite_moments() to the row of each lane. element(i, lane) returns s[i] of the lane's
/// row.
template <class T, class Element>
HWY_NOINLINE void finite_lanes(Wide<T>* center, Wide<T>* rest, Wide<T>* squares, std::int64_t n,
                               const Element& element) {
  for (std::int64_t lane = 0; lane < lanes<T>; ++lane) {
    if (in_range(squares[lane], center[lane])) continue;
    const Moments<Wide<T>> found = moments_past_overflow<Wide<T>>(
        [&](std::int64_t i) { return static_cast<Wide<T>>(element(i, lane)); }, n);
    center[lane] = found.center;
    rest[lane] = found.rest;
    squares[lane] = found.squares;
  }
}

/// Computes `vectors` vectors of rows, or `count` rows in one vector.
template <class T, int vectors, bool whole>
void panel_of_rows(const NormCall& call, const Panel<T>& panel, std::size_t count) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  using W = Wide<T>;
  constexpr std::int64_t step = lanes<T>;
  const Norm::Args& args = *call.args;
  const bool layer = args.kind == NormKind::layer;
  const auto load = [&](const T* from, int v) HWY_ATTR {
    return whole ? load_as(d, from + v * step) : load_as_n(d, from, count);
  };
  const auto store = [&](V value, T* to, int v) HWY_ATTR {
    whole ? store_as(value, d, to + v * step) : store_as_n(value, d, to, count);
  };
  const std::int64_t n = call.n;
  const auto place = [&](int tensor, std::int64_t i) {
    if (call.lines.columns.rank == 1) return i * call.lines.columns.strides[tensor][0];
    std::int64_t at[6];
    call.lines.columns.offsets(i, at);
    return at[tensor];
  };
  // After x + residual has been stored, s is read from sum, or from y until y is written.
  const bool adds = panel.residual != nullptr;
  T* const stored = panel.sum != nullptr ? panel.sum : panel.y;
  const int stored_as = panel.sum != nullptr ? norm_lines::column_sum : norm_lines::column_y;
  const T* const s = adds ? stored : panel.x;
  const int s_as = adds ? stored_as : static_cast<int>(norm_lines::column_x);

  V total_1[vectors];
  V total_2[vectors];
  const auto sum_up = [&](const auto& terms) HWY_ATTR {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) total_1[v] = total_2[v] = hn::Zero(d);
    for (std::int64_t first = 0; first < n; first += chain) {
      V part_1[vectors];
      V part_2[vectors];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) part_1[v] = part_2[v] = hn::Zero(d);
      for (std::int64_t i = first; i < std::min(n, first + chain); ++i) terms(i, part_1, part_2);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        total_1[v] = hn::Add(total_1[v], part_1[v]);
        total_2[v] = hn::Add(total_2[v], part_2[v]);
      }
    }
  };
  const V part_of_n = hn::Set(d, 1 / static_cast<W>(n));
  V center[vectors];
#pragma GCC unroll 4
  for (int v = 0; v < vectors; ++v) center[v] = hn::Zero(d);
  if (adds || layer) {
    sum_up([&](std::int64_t i, V* part, V*) HWY_ATTR {
      if (adds) {
        const T* x = panel.x + place(norm_lines::column_x, i);
        const T* residual = panel.residual + place(norm_lines::column_residual, i);
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) {
          store(hn::Add(load(x, v), load(residual, v)), stored + place(stored_as, i), v);
        }
      }
      const T* from = s + place(s_as, i);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) part[v] = hn::Add(part[v], load(from, v));
    });
    if (layer) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) center[v] = hn::Mul(total_1[v], part_of_n);
    }
  }
  sum_up([&](std::int64_t i, V* rest, V* squares) HWY_ATTR {
    const T* from = s + place(s_as, i);
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      const V distance = hn::Sub(load(from, v), center[v]);
      rest[v] = hn::Add(rest[v], distance);
      squares[v] = hn::MulAdd(distance, distance, squares[v]);
    }
  });
  V rstd[vectors];
  V shift[vectors];
#pragma GCC unroll 4
  for (int v = 0; v < vectors; ++v) {
    const auto in_range = hn::And(hn::Lt(total_2[v], hn::Set(d, infinite<W>)),
                                  hn::Lt(hn::Abs(center[v]), hn::Set(d, too_large<W>)));
    if (layer && !hn::AllTrue(d, in_range)) [[unlikely]] {
      HWY_ALIGN W moments[3][step];
      hn::Store(center[v], d, moments[0]);
      hn::Store(total_1[v], d, moments[1]);
      hn::Store(total_2[v], d, moments[2]);
      finite_lanes<T>(
          moments[0], moments[1], moments[2], n,
          [&](std::int64_t i, std::int64_t lane) { return s[place(s_as, i) + v * step + lane]; });
      center[v] = hn::Load(d, moments[0]);
      total_1[v] = hn::Load(d, moments[1]);
      total_2[v] = hn::Load(d, moments[2]);
    }
    // Vectorized scale_of(), one row per lane.
    const V rest = layer ? hn::Mul(total_1[v], part_of_n) : hn::Zero(d);
    const V variance = hn::MulSub(total_2[v], part_of_n, hn::Mul(rest, rest));
    // Clamp a variance that rounding made negative; propagate a NaN.
    const V positive = hn::IfThenZeroElse(hn::Lt(variance, hn::Zero(d)), variance);
    const V epsilon = hn::Set(d, static_cast<W>(args.epsilon));
    rstd[v] = hn::Div(hn::Set(d, 1), hn::Sqrt(hn::Add(positive, epsilon)));
    shift[v] = hn::Neg(hn::Mul(rest, rstd[v]));
    const V mean = hn::Add(center[v], rest);
    center[v] = hn::IfThenZeroElse(hn::Eq(total_2[v], hn::Set(d, infinite<W>)), center[v]);
    if (args.mean.data == nullptr && args.rstd.data == nullptr) continue;
    HWY_ALIGN W means[step];
    HWY_ALIGN W rstds[step];
    hn::Store(mean, d, means);
    hn::Store(rstd[v], d, rstds);
    store_lanes(call, panel, means, rstds, v * step,
                whole ? step : static_cast<std::int64_t>(count));
  }
  const W* gamma = static_cast<const W*>(call.gamma);
  const W* beta = static_cast<const W*>(call.beta);
  for (std::int64_t i = 0; i < n; ++i) {
    const T* from = s + place(s_as, i);
    const V factor = hn::Set(d, gamma != nullptr ? gamma[i] : W{1});
    const V summand = hn::Set(d, beta != nullptr ? beta[i] : W{0});
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      const V z = hn::MulAdd(hn::Sub(load(from, v), center[v]), rstd[v], shift[v]);
      store(hn::MulAdd(z, factor, summand), panel.y + place(norm_lines::column_y, i), v);
    }
  }
}

/// Computes adjacent rows: panels of four vectors of rows, then of one.
template <class T>
void adjacent_rows(const NormCall& call, cpu::Range rows) {
  const Norm::Args& args = *call.args;
  constexpr int vectors = 4;
  const std::int64_t adjacent = call.adjacent_rows();
  for (std::int64_t row = rows.begin; row < rows.end;) {
    // Limit the panel to rows that are adjacent in memory.
    const std::int64_t left = std::min(rows.end - row, adjacent - row % adjacent);
    Panel<T> panel{};
    call.lines.rows.offsets(row, panel.at);
    panel.x = static_cast<const T*>(args.x.data) + panel.at[norm_lines::row_x];
    panel.y = static_cast<T*>(args.y.data) + panel.at[norm_lines::row_y];
    if (args.residual.data != nullptr) {
      panel.residual =
          static_cast<const T*>(args.residual.data) + panel.at[norm_lines::row_residual];
    }
    if (args.sum.data != nullptr) {
      panel.sum = static_cast<T*>(args.sum.data) + panel.at[norm_lines::row_sum];
    }
    if (left >= vectors * lanes<T>) {
      panel_of_rows<T, vectors, true>(call, panel, 0);
      row += vectors * lanes<T>;
    } else {
      const std::int64_t count = std::min(left, lanes<T>);
      panel_of_rows<T, 1, false>(call, panel, static_cast<std::size_t>(count));
      row += count;
    }
  }
}

/// Computes rows of up to turned_row elements at a constant distance along the last axis of rows:
/// transposes panels of them, computes, and transposes back.
template <class T>
void transposed_rows(const NormCall& original, cpu::Range rows) {
  const Norm::Args& args = *original.args;
  constexpr std::int64_t panel_rows = 4 * lanes<T>;
  NormCall call = original;
  call.lines.columns.rank = 1;
  for (auto& strides : call.lines.columns.strides) strides[0] = panel_rows;
  const auto& columns = original.lines.columns.strides;
  const auto& apart = call.lines.rows.strides;
  const int inner = call.lines.rows.rank - 1;
  HWY_ALIGN T x[turned_row * panel_rows];
  HWY_ALIGN T residual[turned_row * panel_rows];
  HWY_ALIGN T y[turned_row * panel_rows];
  HWY_ALIGN T sum[turned_row * panel_rows];
  for (std::int64_t row = rows.begin; row < rows.end;) {
    const std::int64_t left = call.lines.rows.shape[inner] - row % call.lines.rows.shape[inner];
    const std::int64_t count = std::min({rows.end - row, left, panel_rows});
    Panel<T> panel{};
    call.lines.rows.offsets(row, panel.at);
    const auto in = [&](const ConstTensorRef& tensor, int which, int column, T* to) {
      const T* from = static_cast<const T*>(tensor.data) + panel.at[which];
      for (std::int64_t i = 0; i < call.n; ++i) {
        const T* element = from + i * columns[column][0];
        for (std::int64_t r = 0; r < count; ++r)
          to[i * panel_rows + r] = element[r * apart[which][inner]];
      }
    };
    const auto out = [&](const TensorRef& tensor, int which, int column, const T* from) {
      T* to = static_cast<T*>(tensor.data) + panel.at[which];
      for (std::int64_t i = 0; i < call.n; ++i) {
        T* element = to + i * columns[column][0];
        for (std::int64_t r = 0; r < count; ++r) {
          element[r * apart[which][inner]] = from[i * panel_rows + r];
        }
      }
    };
    in(args.x, norm_lines::row_x, norm_lines::column_x, x);
    if (args.residual.data != nullptr) {
      in(args.residual, norm_lines::row_residual, norm_lines::column_residual, residual);
    }
    for (std::int64_t r = 0; r < count;) {
      const bool whole = count == panel_rows;
      Panel<T> part = panel;
      if (r > 0) call.lines.rows.offsets(row + r, part.at);
      part.x = x + r;
      part.residual = args.residual.data != nullptr ? residual + r : nullptr;
      part.y = y + r;
      part.sum = args.sum.data != nullptr ? sum + r : nullptr;
      const std::int64_t some = whole ? panel_rows : std::min(count - r, lanes<T>);
      if (whole) {
        panel_of_rows<T, 4, true>(call, part, 0);
      } else {
        panel_of_rows<T, 1, false>(call, part, static_cast<std::size_t>(some));
      }
      r += some;
    }
    if (args.sum.data != nullptr) out(args.sum, norm_lines::row_sum, norm_lines::column_sum, sum);
    out(args.y, norm_lines::row_y, norm_lines::column_y, y);
    row += count;
  }
}

}  // namespace

void rows_per_lane(const NormCall& call, cpu::Range rows) {
  visit<float, double, f16, bf16>(call.args->x.dtype, [&]<class T>() {
    call.rows_are_contiguous() ? transposed_rows<T>(call, rows) : adjacent_rows<T>(call, rows);
  });
}

}  // namespace rung::norm_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::norm_cpu {
namespace {
HWY_EXPORT(rows_per_lane);

Support supports(const Norm::Args& args, const Context&) {
  const NormCall call(args);
  if (!call.rows_are_contiguous()) {
    return call.adjacent_rows() > 1 ? supported : unsupported("rows must be adjacent");
  }
  const Collapsed<6>& rows = call.lines.rows;
  const bool many = rows.rank >= 1 && rows.shape[rows.rank - 1] >= 8;
  const bool few_elements = call.n >= 1 && call.n <= HWY_NAMESPACE::turned_row;
  return many && few_elements ? supported
                              : unsupported("contiguous rows must be many, of up to 8 elements");
}

std::int64_t unit_of(const NormCall& call) { return call.rows_are_contiguous() ? 1 : 64; }

int threads_of(const NormCall& call, int available) {
  // A panel is four cache lines wide: threads start at panel boundaries, so that no line is split.
  const std::int64_t units = ceil_div(call.rows, unit_of(call));
  const bool is_small = call.rows * std::max<std::int64_t>(call.n, 1) < min_elements;
  return static_cast<int>(std::min<std::int64_t>(is_small ? 1 : available, units));
}

Work work(const Norm::Args& args, const Context& context) {
  const NormCall call(args);
  return cpu::row_facts(ceil_div(call.rows, std::int64_t{16}), call.n, call.rows_are_contiguous(),
                        args.x.dtype, threads_of(call, context.threads()));
}

void run(const Norm::Args& args, Context& context) {
  NormCall call(args);
  place_weights(call, context, 0);
  const std::int64_t unit = unit_of(call);
  const std::int64_t units = ceil_div(call.rows, unit);
  const int threads = threads_of(call, context.threads());
  cpu::run_shares(threads, [&](const cpu::Team& team) {
    const cpu::Range share = team.share(units);
    HWY_DYNAMIC_DISPATCH(rows_per_lane)
    (call, {share.begin * unit, std::min(call.rows, share.end * unit)});
  });
}

const Rung<Norm> self{
    {.name = "row_per_lane", .after = "threads", .supports = supports, .work = work, .run = run}};

}  // namespace
}  // namespace rung::norm_cpu
#endif
