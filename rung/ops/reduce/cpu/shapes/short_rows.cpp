// SPDX-License-Identifier: Apache-2.0
// reduce / short rows
//
// Idea     Rows of at most four vectors are folded together: vectors of neighboring rows are
//          combined in pairs until each lane holds the result of one row.
// Changes  Against blocks: no reduction across lanes per row, which takes longer than the row's
//          loads (41952 rows of 8 f64, max, 2-core Zen 5 vCPU: 147 us one by one, 6.8 times the
//          time of rows of 1024 with as many elements in all).
// Cost     lanes - 1 combinations per `lanes` rows, each of two permutations and an operation.
// Limits   Contiguous rows of f32, f64, i32 and i64 up to 256 bytes; no index searches. Groups with
//          a NaN, or a sum of squares out of range, are folded again, row by row.
#include "rung/cpu/foreach_target.hpp"
#include "rung/ops/reduce/cpu/detail/step-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::reduce_cpu::HWY_NAMESPACE {
namespace {

#if HWY_TARGET != HWY_SCALAR
/// Returns the folds of `count` vectors in one: each step combines pairs of lanes, which halves the
/// vectors and doubles the rows per vector.
template <class S, int count>
HWY_INLINE typename S::V across_each(typename S::V (&v)[count]) {
  if constexpr (count == 1) {
    return v[0];
  } else {
    const typename S::D d;
    typename S::V half[count / 2];
#pragma GCC unroll 8
    for (int i = 0; i < count / 2; ++i) {
      half[i] = S::join(hn::ConcatEven(d, v[2 * i + 1], v[2 * i]),
                        hn::ConcatOdd(d, v[2 * i + 1], v[2 * i]));
    }
    return across_each<S>(half);
  }
}
#endif

/// Folds rows [r, r + count) one by one.
template <class S>
HWY_NOINLINE void one_by_one(DType element, const Rows& rows, std::int64_t r, std::int64_t count) {
  using W = Wide<typename S::Element>;
  Rows some = rows;
  some.x = static_cast<const typename S::Element*>(rows.x) + r * rows.stride;
  some.rows = count;
  some.value = static_cast<W*>(rows.value) + r;
  some.rest = static_cast<W*>(rows.rest) + r;
  some.reading = Reading::near;
  fold_rows(element, S::fold, some);
}

template <class S>
HWY_NOINLINE bool short_rows_of([[maybe_unused]] DType element, [[maybe_unused]] const Rows& rows) {
#if HWY_TARGET == HWY_SCALAR
  return false;
#else
  using T = typename S::Element;
  using W = Wide<T>;
  using V = typename S::V;
  const typename S::D d;
  constexpr auto group = static_cast<int>(S::lanes);
  const std::int64_t n = rows.length;
  if (n > 4 * S::lanes) return false;
  const std::int64_t whole = n / S::lanes * S::lanes;
  W* value = static_cast<W*>(rows.value);
  W* rest = static_cast<W*>(rows.rest);
  const auto row = [&](std::int64_t r) { return static_cast<const T*>(rows.x) + r * rows.stride; };
  for (std::int64_t r = 0; r < rows.rows; r += group) {
    const int count = static_cast<int>(std::min<std::int64_t>(group, rows.rows - r));
    V v[group];
    [[maybe_unused]] auto ordered = hn::Eq(hn::Zero(d), hn::Zero(d));
#pragma GCC unroll 16
    for (int i = 0; i < group; ++i) {
      v[i] = S::identity();
      if (i >= count) continue;
      const T* x = row(r + i);
      const auto take = [&](V one) HWY_ATTR {
        v[i] = S::take(v[i], one);
        if constexpr (S::extreme && S::floating) ordered = hn::And(ordered, hn::Eq(one, one));
      };
      for (std::int64_t j = 0; j < whole; j += S::lanes) take(S::load(x + j));
      if (whole < n) take(S::load_some(x + whole, n - whole));
    }
    if constexpr (S::extreme && S::floating) {
      if (HWY_UNLIKELY(!hn::AllTrue(d, ordered))) {
        one_by_one<S>(element, rows, r, count);
        continue;
      }
    }
    HWY_ALIGN typename S::Lane total[group];
    hn::Store(across_each<S>(v), d, total);
    for (int i = 0; i < count; ++i) {
      value[r + i] = static_cast<W>(total[i]);
      rest[r + i] = 0;
      if constexpr (S::fold == Fold::squares && std::is_same_v<T, float>) {
        if (HWY_UNLIKELY(!squares_suffice(total[i]))) one_by_one<S>(element, rows, r + i, 1);
      }
    }
  }
  return true;
#endif
}

bool short_rows(DType element, Fold fold, const Rows& rows) {
  return visit<float, double, std::int32_t, std::int64_t>(element, [&]<class T>() HWY_ATTR {
    constexpr bool integers = std::is_integral_v<T>;
    using Sum = std::conditional_t<integers, std::int64_t, T>;
    if (fold == Fold::least) return short_rows_of<Step<T, Fold::least, T>>(element, rows);
    if (fold == Fold::greatest) return short_rows_of<Step<T, Fold::greatest, T>>(element, rows);
    if constexpr (integers) {
      if (fold == Fold::product) return false;
    } else {
      if (fold == Fold::product) return short_rows_of<Step<T, Fold::product, T>>(element, rows);
      if (fold == Fold::squares) return short_rows_of<Step<T, Fold::squares, T>>(element, rows);
    }
    return short_rows_of<Step<T, Fold::sum, Sum>>(element, rows);
  });
}

}  // namespace
}  // namespace rung::reduce_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::reduce_cpu {
namespace {
HWY_EXPORT(short_rows);
}  // namespace

bool fold_short_rows(DType element, Fold fold, const Rows& rows) {
  return HWY_DYNAMIC_DISPATCH(short_rows)(element, fold, rows);
}

namespace {

Support supports(const Reduce::Args& args, const Context&) {
  if (args.is_arg() || args.has_segments()) return unsupported("no index searches, no segments");
  if (!has_plain_rows(args)) return unsupported("contiguous rows of f32, f64, i32 and i64");
  const auto bytes = args.terms.size() * static_cast<std::int64_t>(size_of(args.x.dtype));
  return bytes <= 256 ? supported : unsupported("rows of more than 256 bytes");
}

Work work(const Reduce::Args& args, const Context&) { return row_facts(args, 1); }

void run(const Reduce::Args& args, Context&) {
  constexpr std::int64_t batch = 256;
  const auto size = static_cast<std::int64_t>(size_of(args.x.dtype));
  // rows along the innermost kept axis are a constant stride apart
  const int last = args.kept.rank - 1;
  const std::int64_t inner = last < 0 ? 1 : args.kept.shape[last];
  with_wide(args.x.dtype, [&]<class W>() {
    W value[batch];
    W rest[batch];
    for (std::int64_t i = 0; i < args.kept.size();) {
      std::int64_t at[2];
      args.kept.offsets(i, at);
      const Rows rows{.x = static_cast<const std::byte*>(args.x.data) + at[0] * size,
                      .stride = last < 0 ? 0 : args.kept.strides[0][last],
                      .rows = std::min(batch, inner - i % inner),
                      .length = args.terms.size(),
                      .value = value,
                      .rest = rest};
      const Fold fold = fold_of(args.operation);
      if (!fold_short_rows(args.x.dtype, fold, rows)) fold_rows(args.x.dtype, fold, rows);
      store_results(args, at[1], last < 0 ? 0 : args.kept.strides[1][last], rows.rows, value, rest,
                    rows.length);
      i += rows.rows;
    }
  });
}

const Rung<Reduce> self{
    {.name = "short_rows", .after = "blocks", .supports = supports, .work = work, .run = run}};
}  // namespace
}  // namespace rung::reduce_cpu
#endif
