// SPDX-License-Identifier: Apache-2.0
// attention_backward: cost, reference results and tolerances.
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "rung/core/rounding.hpp"
#include "rung/harness/inputs.hpp"
#include "rung/ops/attention/shared/arguments.hpp"
#include "rung/ops/attention_backward/shared/gradients.hpp"

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
      : call_(attention_gradients<T>(args)),
        kept_(kept_weights(args.q.dtype)),
        unit_(std::is_same_v<T, double>  ? 0x1p-53
              : std::is_same_v<T, float> ? 0x1p-24
                                         : 0x1p-23),
        row_sums_(static_cast<std::size_t>(args.lse.size())) {}

  /// Positions of rows of a tensor in its batch elements.
  [[nodiscard]] PackedPosition query_at(std::int64_t batch, std::int64_t row) const {
    return packed_position(call_.query_offsets, batch, row, call_.queries());
  }
  [[nodiscard]] PackedPosition key_at(std::int64_t batch, std::int64_t row) const {
    return packed_position(call_.key_offsets, batch, row, call_.keys());
  }

  void query_row(std::int64_t b, std::int64_t h, std::int64_t i, double* value, double* bound) {
    const std::int64_t first = mask(b).first_key(i);
    const std::int64_t end = mask(b).end_key(i);
    start(call_.width());
    for (std::int64_t j = first; j < end; ++j) {
      const Pair pair = pair_at(b, h, i, j);
      add(pair.ds, pair.error_of_ds, end - first,
          call_.of_keys(call_.k, b).at(h / call_.group).at(j));
    }
    finish(call_.rule.scale, value, bound);
  }
  void key_row(std::int64_t b, std::int64_t g, std::int64_t j, double* value, double* bound) {
    start(call_.width());
    for_queries(b, g, j, [&](std::int64_t h, std::int64_t i, std::int64_t terms) {
      const Pair pair = pair_at(b, h, i, j);
      add(pair.ds, pair.error_of_ds, terms, call_.of_queries(call_.q, b).at(h).at(i));
    });
    finish(call_.rule.scale, value, bound);
  }
  void value_row(std::int64_t b, std::int64_t g, std::int64_t j, double* value, double* bound) {
    start(call_.value_width());
    for_queries(b, g, j, [&](std::int64_t h, std::int64_t i, std::int64_t terms) {
      const Pair pair = pair_at(b, h, i, j);
      add(pair.p, pair.error_of_p, terms, call_.of_queries(call_.dout, b).at(h).at(i));
    });
    finish(1, value, bound);
  }
  /// The gradient of the sink of head h.
  void sink(std::int64_t h, double* value, double* bound) {
    const auto sink = static_cast<Real>(call_.sinks(h));
    Real terms = 0;
    for (std::int64_t b = 0; b < call_.batch(); ++b) {
      terms += static_cast<Real>(call_.query_rows(b).count);
    }
    Real sum = 0;
    Real error = 0;
    for (std::int64_t b = 0; b < call_.batch(); ++b) {
      const KeyMask<std::int64_t> mask = call_.mask(b);
      for (std::int64_t i = 0; i < mask.queries; ++i) {
        const auto lse = static_cast<Real>(call_.lse_of(b, h, i));
        if (mask.end_key(i) <= mask.first_key(i) || std::isinf(lse)) continue;
        const RowSum& row = row_sum(b, h, i);
        const Real weight = std::exp(sink - lse);
        const Real e = unit_ * (8 * std::abs(lse) + 4 * std::abs(sink - lse) + 8);
        sum -= weight * row.sum;
        error += weight *
                 (std::expm1(e) * std::abs(row.sum) +
                  std::exp(e) * (static_cast<Real>(call_.value_width()) + 8) * unit_ * row.terms +
                  (2 * terms + 40) * unit_ * std::abs(row.sum));
      }
    }
    *value = static_cast<double>(sum);
    *bound = static_cast<double>(error);
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

  [[nodiscard]] KeyMask<std::int64_t> mask(std::int64_t b) const { return call_.mask(b); }

  /// Calls f(h, i, number of terms) for every query i of every head h that sees key j.
  template <class F>
  void for_queries(std::int64_t b, std::int64_t g, std::int64_t j, const F& f) const {
    const std::int64_t first = mask(b).first_query(j);
    const std::int64_t end = mask(b).end_query(j);
    const std::int64_t terms = call_.group * (end - first);
    for (std::int64_t h = g * call_.group; h < (g + 1) * call_.group; ++h) {
      for (std::int64_t i = first; i < end; ++i) f(h, i, terms);
    }
  }

  const RowSum& row_sum(std::int64_t b, std::int64_t h, std::int64_t i) {
    const std::int64_t first = call_.query_offsets.data == nullptr ? b * call_.heads() + h : h;
    RowSum& row = row_sums_[static_cast<std::size_t>(first * call_.queries() +
                                                     call_.query_rows(b).first + i)];
    if (row.known) return row;
    const View<const T, 1> dout = call_.of_queries(call_.dout, b).at(h).at(i);
    const View<const T, 1> o = call_.of_queries(call_.o, b).at(h).at(i);
    for (std::int64_t c = 0; c < call_.value_width(); ++c) {
      const Real term = wide(dout(c)) * wide(o(c));
      row.sum += term;
      row.terms += std::abs(term);
    }
    row.known = true;
    return row;
  }

  /// The score of a scaled product, the terms of its error bound beside those of the product, and
  /// the derivative of the soft cap.
  struct Score {
    Real score = 0, terms = 0, slope = 1, soft_cap = 0;
    [[nodiscard]] Real error_of_slope(Real unit, Real product_terms) const {
      return soft_cap == 0 ? 0 : unit * (2 * product_terms / soft_cap + 32);
    }
  };
  Score score_of(Real product, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
    const auto& rule = call_.rule;
    Score s{.score = product};
    if (rule.soft_cap != 0) {
      s.soft_cap = rule.soft_cap;
      const Real share = std::tanh(product / s.soft_cap);
      s.score = s.soft_cap * share;
      s.slope = 1 - share * share;
      s.terms += 16 * s.soft_cap;
    }
    if (rule.slopes.data != nullptr) {
      const std::int64_t distance = std::abs(j - mask(b).diagonal(i));
      const Real term = static_cast<Real>(rule.slopes(h)) * static_cast<Real>(distance);
      s.score -= term;
      s.terms += 4 * std::abs(term);
    }
    if (rule.bias.data != nullptr) {
      const auto term = static_cast<Real>(rule.bias(b, h, i, j));
      s.score += term;
      s.terms += 4 * std::abs(term);
    }
    return s;
  }

  Pair pair_at(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
    const auto lse = static_cast<Real>(call_.lse_of(b, h, i));
    if (lse == -std::numeric_limits<Real>::infinity()) return {};
    const std::int64_t g = h / call_.group;
    Real score = 0;
    Real score_terms = 0;
    const View<const T, 1> q = call_.of_queries(call_.q, b).at(h).at(i);
    const View<const T, 1> k = call_.of_keys(call_.k, b).at(g).at(j);
    for (std::int64_t d = 0; d < call_.width(); ++d) {
      const Real term = wide(q(d)) * wide(k(d));
      score += term;
      score_terms += std::abs(term);
    }
    const Score s = score_of(call_.rule.scale * score, b, h, i, j);
    score_terms *= (static_cast<Real>(call_.width()) + 8) * call_.rule.scale;
    score = s.score;
    if (score == -std::numeric_limits<Real>::infinity()) return {};  // hidden by the bias
    Real product = 0;
    Real product_terms = 0;
    const View<const T, 1> dout = call_.of_queries(call_.dout, b).at(h).at(i);
    const View<const T, 1> v = call_.of_keys(call_.v, b).at(g).at(j);
    for (std::int64_t c = 0; c < call_.value_width(); ++c) {
      const Real term = wide(dout(c)) * wide(v(c));
      product += term;
      product_terms += std::abs(term);
    }
    const RowSum& row = row_sum(b, h, i);
    // A score so far below that p is 0 has no error that counts.
    const Real e =
        std::exp(score - lse) == 0
            ? 0
            : unit_ * (score_terms + s.terms + 8 * std::abs(lse) + 4 * std::abs(score - lse) + 8);
    const Real difference = product - row.sum;
    Pair pair;
    pair.p = std::exp(score - lse);
    const Real underflow = std::is_same_v<T, double> ? 0x1p-1022 : 0x1p-126;
    const Real error_of_p = pair.p * std::expm1(e) + underflow;
    pair.error_of_p = error_of_p + kept_.underflow;
    pair.ds = pair.p * s.slope * difference;
    pair.error_of_ds =
        (error_of_p + 4 * unit_ * pair.p) * std::abs(difference) +
        pair.p * std::exp(e) * (static_cast<Real>(call_.value_width()) + 8) *
            (unit_ * (product_terms + row.terms) + underflow) +
        pair.p * std::exp(e) * std::abs(difference) * s.error_of_slope(unit_, score_terms) +
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

  AttentionGradients<T> call_;
  KeptWeights kept_;
  Real unit_;
  std::vector<RowSum> row_sums_;
  std::vector<Real> sums_, errors_;
};

}  // namespace

Cost AttentionBackward::cost(const Args& args) {
  const auto size = static_cast<double>(size_of(args.q.dtype));
  const auto width = static_cast<double>(args.width());
  const auto value_width = static_cast<double>(args.value_width());
  const auto batch = static_cast<double>(args.batch());
  const double query_rows = static_cast<double>(args.q.shape[0]) *
                            static_cast<double>(args.heads()) * static_cast<double>(args.queries());
  const double key_rows = static_cast<double>(args.k.shape[0]) *
                          static_cast<double>(args.kv_heads()) * static_cast<double>(args.keys());
  const double read_keys =
      batch * static_cast<double>(args.kv_heads()) *
      static_cast<double>(smaller(args.typical_keys(), args.most_keys(args.queries())));
  const double read = query_rows * (width + 2 * value_width) + read_keys * (width + value_width);
  const double written = (query_rows * width + key_rows * (width + value_width)) * size;
  const double bias = attention_arguments::distinct_bytes(args.options.bias);
  return {.bytes = read * size + query_rows * static_cast<double>(size_of(args.lse.dtype)) + bias +
                   written,
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
                          auto position, auto row_of) {
      std::size_t at = 0;
      for (const std::int64_t row : output.rows) {
        const std::int64_t head = row / rows;
        const PackedPosition place = (reference.*position)(head / heads, row % rows);
        (reference.*row_of)(place.element, head % heads, place.row, &output.value[at],
                            &output.magnitude[at]);
        at += static_cast<std::size_t>(output.length);
      }
    };
    fill(oracle.outputs.at(0), args.heads(), args.queries(), &Reference::query_at,
         &Reference::query_row);
    fill(oracle.outputs.at(1), args.kv_heads(), args.keys(), &Reference::key_at,
         &Reference::key_row);
    fill(oracle.outputs.at(2), args.kv_heads(), args.keys(), &Reference::key_at,
         &Reference::value_row);
    if (!args.has_sink_gradient()) return;
    Oracle::Output& dsinks = oracle.outputs.at(3);
    for (std::int64_t h = 0; !dsinks.rows.empty() && h < dsinks.length; ++h) {
      reference.sink(h, &dsinks.value[static_cast<std::size_t>(h)],
                     &dsinks.magnitude[static_cast<std::size_t>(h)]);
    }
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
