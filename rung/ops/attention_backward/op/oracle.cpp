// SPDX-License-Identifier: Apache-2.0
// attention_backward: cost, reference results and tolerances.
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "rung/core/rounding.hpp"
#include "rung/harness/inputs.hpp"
#include "rung/ops/attention/shared/mask.hpp"
#include "rung/ops/attention_backward/op/attention_backward.hpp"

namespace rung {
namespace {

/// Roundoff of p and ds kept in the type of q, and their underflow threshold.
struct KeptWeights {
  double roundoff = 0;
  double underflow = 0x1p-126;
};
constexpr KeptWeights kept_weights(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return {epsilon(dtype) / 2, 0x1p-25};  // half the smallest step of f16
    case DType::bf16:
      return {epsilon(dtype) / 2};
    case DType::f64:
      return {0, 0x1p-1022};
    default:
      return {};
  }
}

/// Reference by definition, one row of a gradient at a time; f64 is verified in long double.
template <class T>
class GradientReference {
 public:
  using Real = std::conditional_t<std::is_same_v<T, double>, long double, double>;

  explicit GradientReference(const AttentionBackward::Args& args)
      : args_(args),
        q_(args.q.view<const T, 4>()),
        k_(args.k.view<const T, 4>()),
        v_(args.v.view<const T, 4>()),
        o_(args.o.view<const T, 4>()),
        dout_(args.dout.view<const T, 4>()),
        lse_(args.lse.view<const Accumulator<T>, 3>()),
        kept_(kept_weights(args.q.dtype)),
        unit_(std::is_same_v<T, double>  ? 0x1p-53
              : std::is_same_v<T, float> ? 0x1p-24
                                         : 0x1p-23),
        // Kernels receive the scale in the arithmetic type.
        scale_(std::is_same_v<T, double> ? args.options.scale : nearest_f32(args.options.scale)),
        row_sums_(static_cast<std::size_t>(args.lse.size())) {}

  void query_row(std::int64_t b, std::int64_t h, std::int64_t i, double* value, double* bound) {
    const std::int64_t first = mask(b).first_key(i);
    const std::int64_t end = mask(b).end_key(i);
    start(args_.width());
    for (std::int64_t j = first; j < end; ++j) {
      const Pair pair = pair_at(b, h, i, j);
      add(pair.ds, pair.error_of_ds, end - first, k_.at(b).at(h / args_.group()).at(j));
    }
    finish(scale_, value, bound);
  }
  void key_row(std::int64_t b, std::int64_t g, std::int64_t j, double* value, double* bound) {
    start(args_.width());
    for_queries(b, g, j, [&](std::int64_t h, std::int64_t i, std::int64_t terms) {
      const Pair pair = pair_at(b, h, i, j);
      add(pair.ds, pair.error_of_ds, terms, q_.at(b).at(h).at(i));
    });
    finish(scale_, value, bound);
  }
  void value_row(std::int64_t b, std::int64_t g, std::int64_t j, double* value, double* bound) {
    start(args_.value_width());
    for_queries(b, g, j, [&](std::int64_t h, std::int64_t i, std::int64_t terms) {
      const Pair pair = pair_at(b, h, i, j);
      add(pair.p, pair.error_of_p, terms, dout_.at(b).at(h).at(i));
    });
    finish(1, value, bound);
  }

 private:
  struct Pair {
    Real p = 0, error_of_p = 0;
    Real ds = 0, error_of_ds = 0;
  };
  struct RowSum {
    Real sum = 0;    // sum of dout o
    Real terms = 0;  // sum of |dout o|
    bool known = false;
  };

  static Real wide(T value) { return static_cast<Real>(static_cast<Accumulator<T>>(value)); }

  [[nodiscard]] KeyMask<std::int64_t> mask(std::int64_t b) const {
    std::int64_t length = args_.keys();
    if (args_.has_lengths()) {
      length = key_length(args_.options.key_lengths.view<const std::int32_t, 1>()(b), length);
    }
    return {args_.queries(), length, args_.options.causal, args_.options.window};
  }

  /// Calls f(h, i, number of terms) for every query i of every head h that sees key j.
  template <class F>
  void for_queries(std::int64_t b, std::int64_t g, std::int64_t j, const F& f) const {
    const std::int64_t first = mask(b).first_query(j);
    const std::int64_t end = mask(b).end_query(j);
    const std::int64_t terms = args_.group() * (end - first);
    for (std::int64_t h = g * args_.group(); h < (g + 1) * args_.group(); ++h) {
      for (std::int64_t i = first; i < end; ++i) f(h, i, terms);
    }
  }

  const RowSum& row_sum(std::int64_t b, std::int64_t h, std::int64_t i) {
    RowSum& row =
        row_sums_[static_cast<std::size_t>((b * args_.heads() + h) * args_.queries() + i)];
    if (row.known) return row;
    for (std::int64_t c = 0; c < args_.value_width(); ++c) {
      const Real term = wide(dout_(b, h, i, c)) * wide(o_(b, h, i, c));
      row.sum += term;
      row.terms += std::abs(term);
    }
    row.known = true;
    return row;
  }

  Pair pair_at(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
    const auto lse = static_cast<Real>(lse_(b, h, i));
    if (lse == -std::numeric_limits<Real>::infinity()) return {};
    const std::int64_t g = h / args_.group();
    Real score = 0;
    Real score_terms = 0;
    const View<const T, 1> q = q_.at(b).at(h).at(i);
    const View<const T, 1> k = k_.at(b).at(g).at(j);
    for (std::int64_t d = 0; d < args_.width(); ++d) {
      const Real term = wide(q(d)) * wide(k(d));
      score += term;
      score_terms += std::abs(term);
    }
    score *= scale_;
    Real product = 0;
    Real product_terms = 0;
    const View<const T, 1> dout = dout_.at(b).at(h).at(i);
    const View<const T, 1> v = v_.at(b).at(g).at(j);
    for (std::int64_t c = 0; c < args_.value_width(); ++c) {
      const Real term = wide(dout(c)) * wide(v(c));
      product += term;
      product_terms += std::abs(term);
    }
    const RowSum& row = row_sum(b, h, i);
    const Real e = unit_ * ((static_cast<Real>(args_.width()) + 8) * score_terms * scale_ +
                            8 * std::abs(lse) + 4 * std::abs(score - lse) + 8);
    const Real difference = product - row.sum;
    Pair pair;
    pair.p = std::exp(score - lse);
    const Real underflow = std::is_same_v<T, double> ? 0x1p-1022 : 0x1p-126;
    const Real error_of_p = pair.p * std::expm1(e) + underflow;
    pair.error_of_p = error_of_p + kept_.underflow;
    pair.ds = pair.p * difference;
    pair.error_of_ds = (error_of_p + 4 * unit_ * pair.p) * std::abs(difference) +
                       pair.p * std::exp(e) * (static_cast<Real>(args_.value_width()) + 8) *
                           (unit_ * (product_terms + row.terms) + underflow) +
                       kept_.underflow;
    return pair;
  }

  void start(std::int64_t columns) {
    sums_.assign(static_cast<std::size_t>(columns), 0);
    errors_.assign(static_cast<std::size_t>(columns), 0);
  }
  /// Adds one term, of `terms` in the sum, and its error bound.
  void add(Real factor, Real error, std::int64_t terms, const View<const T, 1>& row) {
    const Real off =
        error + std::abs(factor) * ((2 * static_cast<Real>(terms) + 40) * unit_ + kept_.roundoff);
    for (std::size_t c = 0; c < sums_.size(); ++c) {
      const Real x = wide(row(static_cast<std::int64_t>(c)));
      sums_[c] += factor * x;
      errors_[c] += off * std::abs(x);
    }
  }
  void finish(Real factor, double* value, double* bound) const {
    for (std::size_t c = 0; c < sums_.size(); ++c) {
      value[c] = static_cast<double>(factor * sums_[c]);
      bound[c] = static_cast<double>(factor * errors_[c]);
    }
  }

  const AttentionBackward::Args& args_;
  View<const T, 4> q_, k_, v_, o_, dout_;
  View<const Accumulator<T>, 3> lse_;
  KeptWeights kept_;
  Real unit_, scale_;
  std::vector<RowSum> row_sums_;
  std::vector<Real> sums_, errors_;
};

}  // namespace

Cost AttentionBackward::cost(const Args& args) {
  const auto size = static_cast<double>(size_of(args.q.dtype));
  const auto width = static_cast<double>(args.width());
  const auto value_width = static_cast<double>(args.value_width());
  const auto batch = static_cast<double>(args.batch());
  const double query_rows =
      batch * static_cast<double>(args.heads()) * static_cast<double>(args.queries());
  const double key_rows =
      batch * static_cast<double>(args.kv_heads()) * static_cast<double>(args.keys());
  const double read_keys = batch * static_cast<double>(args.kv_heads()) *
                           static_cast<double>(args.most_keys(args.queries()));
  const double read = query_rows * (width + 2 * value_width) + read_keys * (width + value_width);
  const double written = (query_rows * width + key_rows * (width + value_width)) * size;
  return {
      .bytes = read * size + query_rows * static_cast<double>(size_of(args.lse.dtype)) + written,
      // Products: q k^T, dout v^T, p^T dout, ds k and ds^T q.
      .operations = 2 * batch * static_cast<double>(args.heads()) * args.visible_pairs() *
                    (3 * width + 2 * value_width),
      .written = written};
}

void AttentionBackward::reference(const Args& args, Oracle& oracle) {
  visit<float, double, f16, bf16>(args.q.dtype, [&]<class T>() {
    using Reference = GradientReference<T>;
    Reference reference(args);
    // A gradient's rows are indexed by (batch, head, query or key).
    const auto fill = [&](Oracle::Output& output, std::int64_t heads, std::int64_t rows,
                          auto row_of) {
      std::size_t at = 0;
      for (const std::int64_t row : output.rows) {
        const std::int64_t head = row / rows;
        (reference.*row_of)(head / heads, head % heads, row % rows, &output.value[at],
                            &output.magnitude[at]);
        at += static_cast<std::size_t>(output.length);
      }
    };
    fill(oracle.outputs.at(0), args.heads(), args.queries(), &Reference::query_row);
    fill(oracle.outputs.at(1), args.kv_heads(), args.keys(), &Reference::key_row);
    fill(oracle.outputs.at(2), args.kv_heads(), args.keys(), &Reference::value_row);
  });
}

Tolerance AttentionBackward::tolerance(const Args& args, const RungInfo&, Values) {
  const DType dtype = args.q.dtype;
  Tolerance tolerance{.relative = epsilon(dtype) / 2 * 1.01, .magnitude = 1.01};
  // Half the smallest subnormal of the type, or the threshold of flush to zero.
  tolerance.absolute = dtype == DType::f64 ? 0x1p-1022 : dtype == DType::f16 ? 0x1p-25 : 0x1p-126;
  return tolerance;
}

}  // namespace rung
