// SPDX-License-Identifier: Apache-2.0
// loss / simd
//
// Idea     Use vectors of 16 floats (AVX-512; 8 with AVX2): softmax's maximum and exponentials,
//          stored in dx and scaled in place; hinge and squared error in one pass. A row that fits
//          one vector, such as 10 classes, stays in its register.
// Changes  Against online: one instruction for 16 elements, and one exponential per element instead
//          of two (f16 and bf16, which would round stored exponentials, still take two).
// Cost     x is loaded from memory once, dx written once; both are read again from L1 or L2.
// Limits   Contiguous rows of x and target; a strided row of dx is computed in spare memory and
//          scattered. One thread. Rows far shorter than a vector waste most of it.
#include "rung/cpu/foreach_target.hpp"

#include <type_traits>

#include "rung/cpu/row-inl.hpp"
#include "rung/ops/loss/cpu/detail/rows.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::loss_cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
namespace sm = cpu::HWY_NAMESPACE;

template <class Sum>
using Full = sm::Full<Sum>;
template <class Sum>
using Vector = sm::Vector<Sum>;

/// Calls f(i, chain) for the full vectors of a row, then f(i, 1, n) for its last n elements.
template <class Sum, class F>
HWY_INLINE void for_row(std::int64_t length, F&& f) {
  sm::for_vectors<Sum>(
      length, [&](std::int64_t i, int chain) HWY_ATTR RUNG_ALWAYS_INLINE { f(i, chain); },
      [&](std::int64_t i, std::size_t n) HWY_ATTR RUNG_ALWAYS_INLINE { f(i, 1, n); });
}
/// Returns `terms` with the lanes past the n elements set to 0.
template <class Sum>
HWY_INLINE Vector<Sum> existing(Vector<Sum> terms) {
  return terms;
}
template <class Sum>
HWY_INLINE Vector<Sum> existing(Vector<Sum> terms, std::size_t n) {
  return hn::IfThenElseZero(hn::FirstN(Full<Sum>(), n), terms);
}
template <class T>
HWY_INLINE double cross_entropy(const Row<T>& row, std::int64_t n,
                                const LossTerms<Accumulator<T>>& terms, Accumulator<T> factor) {
  using Sum = Accumulator<T>;
  const Full<Sum> d;
  const Sum maximum = sm::row_maximum<Sum>(row.x, n);
  const Sum at_label = row.value(row.label);  // read before dx, which may alias x, is written
  double linear = terms.label_share == 0 ? 0
                                         : static_cast<double>(terms.label_share) *
                                               static_cast<double>(maximum - at_label);
  if (terms.every_share != 0) {
    sm::Chains<Sum> below(0);
    const auto high = hn::Set(d, maximum);
    for_row<Sum>(n, [&](std::int64_t i, int chain, auto... rest) HWY_ATTR RUNG_ALWAYS_INLINE {
      const auto terms_below = hn::Sub(high, sm::load_some(d, row.x + i, rest...));
      below.at[chain] = hn::Add(below.at[chain], existing<Sum>(terms_below, rest...));
    });
    linear += static_cast<double>(terms.every_share) * static_cast<double>(below.sum());
  }
  // Keep the exponentials in dx if its type does not round them.
  constexpr bool keeps = std::is_same_v<T, Sum>;
  Sum* kept = nullptr;
  if constexpr (keeps) kept = row.dx;
  constexpr const T* nothing = nullptr;
  const Sum sum = kept != nullptr ? sm::row_sum<true>(row.x, n, maximum, Sum{1}, kept, nothing)
                                  : sm::row_sum<false>(row.x, n, maximum, Sum{1},
                                                       static_cast<Sum*>(nullptr), nothing);
  const double loss = linear + static_cast<double>(std::log(sum));
  if (row.dx == nullptr) return loss;
  const Sum inverse = 1 / sum;
  const auto scale = hn::Set(d, inverse * factor);
  const auto shift = hn::Set(d, terms.every_share * factor);
  const auto high = hn::Set(d, maximum);
  const auto exponent = hn::Set(d, sm::log2_e<Sum>);
  for_row<Sum>(n, [&](std::int64_t i, int, auto... rest) HWY_ATTR RUNG_ALWAYS_INLINE {
    Vector<Sum> e;
    if constexpr (keeps) {
      e = sm::load_some(d, kept + i, rest...);
    } else {
      e = sm::exp2<false>(d,
                          hn::Mul(hn::Sub(sm::load_some(d, row.x + i, rest...), high), exponent));
    }
    sm::store_some(hn::MulSub(e, scale, shift), d, row.dx + i, rest...);
  });
  const Sum p = std::exp(at_label - maximum) * inverse;
  row.dx[row.label] = static_cast<T>((p - terms.share(1)) * factor);
  return loss;
}

/// Computes a row that fits one vector: it is read once and stays in a register, and the label's
/// weight is one lane of a vector.
template <class T>
HWY_INLINE double short_cross_entropy(const Row<T>& row, std::int64_t n,
                                      const LossTerms<Accumulator<T>>& terms,
                                      Accumulator<T> factor) {
  using Sum = Accumulator<T>;
  const Full<Sum> d;
  const auto count = static_cast<std::size_t>(n);
  const auto exists = hn::FirstN(d, count);
  const auto x = sm::load_as_n(d, row.x, count);
  const auto lowest = hn::Set(d, std::numeric_limits<Sum>::lowest());
  // Max of a NaN and a number returns the second operand; the sum restores the NaN.
  const auto high = hn::MaxOfLanes(d, hn::IfThenElse(exists, hn::Max(x, lowest), lowest));
  const auto below = hn::Sub(high, x);
  const auto e =
      hn::IfThenElseZero(exists, sm::exp2<false>(d, hn::Mul(below, hn::Set(d, -sm::log2_e<Sum>))));
  const auto is_label = hn::Eq(hn::Iota(d, 0), hn::Set(d, static_cast<Sum>(row.label)));
  const auto q = hn::Add(hn::IfThenElseZero(is_label, hn::Set(d, terms.label_share)),
                         hn::IfThenElseZero(exists, hn::Set(d, terms.every_share)));
  // x may be -infinity if q is 0.
  const auto weighed = hn::IfThenZeroElse(hn::Eq(q, hn::Zero(d)), hn::Mul(q, below));
  const Sum sum = hn::GetLane(hn::SumOfLanes(d, e));
  const Sum linear = hn::GetLane(hn::SumOfLanes(d, weighed));
  if (row.dx != nullptr) {
    const auto p = hn::Mul(e, hn::Set(d, 1 / sum));
    sm::store_as_n(hn::Mul(hn::Sub(p, q), hn::Set(d, factor)), d, row.dx, count);
  }
  return static_cast<double>(linear + std::log(sum));
}

/// Returns x in the label's lane, -x in other lanes.
template <class Sum>
HWY_INLINE Vector<Sum> towards_label(Vector<Sum> x, std::int64_t i, std::int64_t label) {
  const Full<Sum> d;
  const Vector<Sum> away = hn::Neg(x);
  const std::int64_t lane = label - i;
  if (lane < 0 || lane >= static_cast<std::int64_t>(hn::Lanes(d))) return away;
  return hn::IfThenElse(hn::Eq(hn::Iota(d, 0), hn::Set(d, static_cast<Sum>(lane))), x, away);
}

template <class T>
HWY_INLINE double hinge(const Row<T>& row, std::int64_t n, const LossTerms<Accumulator<T>>& terms,
                        Accumulator<T> factor) {
  using Sum = Accumulator<T>;
  const Full<Sum> d;
  const auto margin = hn::Set(d, terms.margin);
  const auto zero = hn::Zero(d);
  const auto one = hn::Set(d, 1);
  const auto scale = hn::Set(d, factor);
  sm::Chains<Sum> sums(0);
  for_row<Sum>(n, [&](std::int64_t i, int chain, auto... rest) HWY_ATTR RUNG_ALWAYS_INLINE {
    const auto x = sm::load_some(d, row.x + i, rest...);
    const auto slack = hn::Sub(margin, towards_label<Sum>(x, i, row.label));
    const auto met = hn::Lt(slack, zero);  // false for NaN, which is kept
    sums.at[chain] =
        hn::Add(sums.at[chain], existing<Sum>(hn::IfThenZeroElse(met, slack), rest...));
    if (row.dx != nullptr) {
      const auto slope = hn::Neg(towards_label<Sum>(one, i, row.label));
      const auto some = hn::IfThenElse(hn::IsNaN(slack), slack, hn::Mul(slope, scale));
      sm::store_some(hn::IfThenZeroElse(met, some), d, row.dx + i, rest...);
    }
  });
  return static_cast<double>(sums.sum());
}

template <class T>
HWY_INLINE double squared(const Row<T>& row, std::int64_t n, const LossTerms<Accumulator<T>>& terms,
                          Accumulator<T> factor) {
  using Sum = Accumulator<T>;
  const Full<Sum> d;
  const auto scale = hn::Set(d, 2 * terms.part * factor);
  sm::Chains<Sum> sums(0);
  for_row<Sum>(n, [&](std::int64_t i, int chain, auto... rest) HWY_ATTR RUNG_ALWAYS_INLINE {
    const auto x = sm::load_some(d, row.x + i, rest...);
    const auto difference = hn::Sub(x, sm::load_some(d, row.targets + i, rest...));
    sums.at[chain] = hn::MulAdd(difference, difference, sums.at[chain]);  // 0 past the row's end
    if (row.dx != nullptr) sm::store_some(hn::Mul(difference, scale), d, row.dx + i, rest...);
  });
  return static_cast<double>(sums.sum()) * static_cast<double>(terms.part);
}

/// Computes a range of rows. `scatters`: a row of dx is computed in `spare` and then scattered.
template <class T, bool scatters>
double rows_of(const Loss::Args& args, double factor, cpu::Range rows,
               [[maybe_unused]] void* spare) {
  using Sum = Accumulator<T>;
  const auto terms = LossTerms<Sum>::of(args);
  const auto labels = LossLabels::of(args);
  const std::int64_t n = args.classes();
  const auto scale = static_cast<Sum>(factor);
  const bool is_short = n < static_cast<std::int64_t>(hn::Lanes(Full<Sum>()));
  double all = 0;
  for (std::int64_t number = rows.begin; number < rows.end; ++number) {
    std::conditional_t<scatters, Row<T>, const Row<T>> row(args, labels, number);
    if (!row.counts || row.is_wrong) {
      all += row.write_without_label(n);
      continue;
    }
    [[maybe_unused]] T* const dx = row.dx;
    if constexpr (scatters) row.dx = static_cast<T*>(spare);
    const double loss = args.options.kind == LossKind::cross_entropy
                            ? (is_short ? short_cross_entropy(row, n, terms, scale)
                                        : cross_entropy(row, n, terms, scale))
                        : args.options.kind == LossKind::hinge ? hinge(row, n, terms, scale)
                                                               : squared(row, n, terms, scale);
    if (row.loss != nullptr) *row.loss = static_cast<Sum>(loss);
    all += loss;
    if constexpr (scatters) {
      for (std::int64_t c = 0; c < n; ++c) dx[c * row.step_dx] = row.dx[c];
    }
  }
  return all;
}

}  // namespace

double vector_rows(const Loss::Args& args, double factor, cpu::Range rows, void* spare) {
  return visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
    return spare_bytes(args) > 0 ? rows_of<T, true>(args, factor, rows, spare)
                                 : rows_of<T, false>(args, factor, rows, nullptr);
  });
}

}  // namespace rung::loss_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace loss_cpu {
HWY_EXPORT(vector_rows);
double simd_rows(const Loss::Args& args, double factor, cpu::Range rows, void* spare) {
  return HWY_DYNAMIC_DISPATCH(vector_rows)(args, factor, rows, spare);
}
}  // namespace loss_cpu

namespace {
using namespace loss_cpu;

Support supports(const Loss::Args& args, const Context&) {
  return args.reads_contiguous() ? supported
                                 : unsupported("the rows of x and target must be contiguous");
}

Work work(const Loss::Args& args, const Context&) { return facts(args, true, 1); }

void run(const Loss::Args& args, Context& context) {
  const Chunks chunks(args);
  void* const spare = context.workspace(spare_bytes(args));
  const std::int64_t counted = count_rows(args, {0, chunks.rows});
  const double factor = factor_of(args, counted);
  double sum = 0;
  for (std::int64_t chunk = 0; chunk < chunks.count(); ++chunk) {
    sum += simd_rows(args, factor, chunks[chunk], spare);
  }
  write_result(args, sum, counted);
}

const Rung<Loss> self{{.name = "simd",
                       .step = 30,
                       .after = "online",
                       .supports = supports,
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
#endif
