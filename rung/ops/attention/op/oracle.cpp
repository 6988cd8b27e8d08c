// SPDX-License-Identifier: Apache-2.0
// attention: cost, reference results and tolerances.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "rung/core/bounds.hpp"
#include "rung/core/rounding.hpp"
#include "rung/harness/inputs.hpp"
#include "rung/ops/attention/op/attention.hpp"
#include "rung/ops/attention/shared/arguments.hpp"
#include "rung/ops/attention/shared/heads.hpp"

namespace rung {
namespace {

/// Roundoff of weights kept in the type of v (p of the contract), and their underflow threshold.
struct Weights {
  double roundoff = 0;
  double underflow = 0x1p-126;
};
constexpr Weights weights_of(DType dtype) {
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

/// Reference by definition, one query at a time; f64 is verified in long double.
template <class T, class K>
class Reference {
 public:
  using Real = std::conditional_t<std::is_same_v<T, double>, long double, double>;

  explicit Reference(const Attention::Args& args)
      : heads_(attention_heads<T, K>(args)),
        dtype_(args.q.dtype),
        unit_(std::is_same_v<T, double>  ? 0x1p-53
              : std::is_same_v<T, float> ? 0x1p-24
                                         : 0x1p-23),
        // Kernels receive the scale and the soft cap in the arithmetic type.
        scale_(heads_.rule.scale),
        soft_cap_(heads_.rule.soft_cap) {}

  [[nodiscard]] const AttentionHeads<T, K>& heads() const { return heads_; }

  /// Computes scores, then weights, of query i of head h of batch element b, and their error
  /// bounds.
  void look_at(std::int64_t b, std::int64_t h, std::int64_t i) {
    b_ = b;
    g_ = h / heads_.group;
    const KeyMask<std::int64_t> mask = heads_.mask(b);
    first_ = mask.first_key(i);
    const std::int64_t seen = mask.end_key(i) - first_;
    const std::int64_t diagonal = i + mask.length - mask.queries;
    score_.assign(static_cast<std::size_t>(seen), 0);
    error_.assign(static_cast<std::size_t>(seen), 0);
    is_nan_ = false;
    maximum_ = -std::numeric_limits<Real>::infinity();
    const View<const T, 1> q = heads_.q_of(b).at(h).at(i);
    const Real scale = scale_ * scale_of(heads_.k_scales);
    for (std::int64_t j = 0; j < seen; ++j) {
      Real sum = 0;
      Real terms = 0;
      const View<const K, 1> k = heads_.key(b, g_, first_ + j);
      for (std::int64_t d = 0; d < heads_.width(); ++d) {
        const Real term = wide(q(d)) * wide(k(d));
        sum += term;
        terms += std::abs(term);
      }
      const auto at = static_cast<std::size_t>(j);
      score_[at] = sum * scale;
      error_[at] = terms * scale * (static_cast<Real>(heads_.width()) + 8);
      apply_rule(at, h, i, first_ + j, diagonal);
      is_nan_ =
          is_nan_ || std::isnan(score_[at]) || score_[at] == std::numeric_limits<Real>::infinity();
      maximum_ = std::fmax(maximum_, score_[at]);
    }
    if (is_nan_) return;
    const Real sink = heads_.sinks.data != nullptr ? static_cast<Real>(heads_.sinks(h))
                                                   : -std::numeric_limits<Real>::infinity();
    maximum_ = std::fmax(maximum_, sink);
    has_no_weight_ = std::isinf(maximum_);
    if (has_no_weight_) {
      // All weights are 0 and the sums are not divided, so only a NaN or infinity in v gives NaN.
      std::fill(score_.begin(), score_.end(), Real{0});
      sum_ = 1;
      return;
    }
    sum_ = std::exp(sink - maximum_);
    Real larger = sum_ * std::exp(unit_ * (8 * std::abs(maximum_) + 4 * std::abs(sink - maximum_)));
    if (sum_ == 0) larger = 0;  // without a sink: 0 times NaN
    for (std::size_t j = 0; j < score_.size(); ++j) {
      const Real below = score_[j] - maximum_;
      score_[j] = std::exp(below);  // from here on a weight
      error_[j] = unit_ * (error_[j] + 8 * std::abs(maximum_) + 4 * std::abs(below));
      sum_ += score_[j];
      if (score_[j] > 0) larger += score_[j] * std::exp(error_[j]);
    }
    error_of_sum_ = std::log(larger / sum_);
  }

  /// Returns the row of o and its error bounds.
  void values(double* value, double* bound) {
    const std::int64_t columns = heads_.value_width();
    if (is_nan_) {
      std::fill_n(value, columns, std::numeric_limits<double>::quiet_NaN());
      return;
    }
    const Weights kept = weights_of(dtype_);
    const Real scale = scale_of(heads_.v_scales);
    const Real of_sums = (2 * static_cast<Real>(score_.size()) + 40) * unit_ + kept.roundoff;
    sums_.assign(static_cast<std::size_t>(columns), 0);
    off_.assign(static_cast<std::size_t>(columns), 0);
    for (std::size_t j = 0; j < score_.size(); ++j) {
      Real error = has_no_weight_ ? 0 : kept.underflow;
      if (score_[j] > 0) error += score_[j] * (std::expm1(error_[j] + error_of_sum_) + of_sums);
      const View<const K, 1> v = heads_.value(b_, g_, first_ + static_cast<std::int64_t>(j));
      for (std::int64_t column = 0; column < columns; ++column) {
        const Real term = scale * wide(v(column));
        sums_[static_cast<std::size_t>(column)] += score_[j] * term;
        off_[static_cast<std::size_t>(column)] += error * std::abs(term);
      }
    }
    for (std::size_t column = 0; column < sums_.size(); ++column) {
      value[column] = static_cast<double>(sums_[column] / sum_);
      bound[column] = static_cast<double>(off_[column] / sum_);
    }
  }

  void lse(double* value, double* bound) const {
    if (is_nan_ || has_no_weight_) {
      *value = is_nan_ ? std::numeric_limits<double>::quiet_NaN()
                       : -std::numeric_limits<double>::infinity();
      return;
    }
    const Real result = maximum_ + std::log(sum_);
    const Real of_sum = (static_cast<Real>(score_.size()) + 40) * unit_;
    *value = static_cast<double>(result);
    *bound = static_cast<double>(error_of_sum_ + of_sum +
                                 4 * unit_ * (std::abs(maximum_) + std::abs(result)));
  }

 private:
  template <class Element>
  static Real wide(Element value) {
    return static_cast<Real>(static_cast<Accumulator<Element>>(value));
  }
  /// Returns the factor of the keys or values of the batch element and head.
  [[nodiscard]] Real scale_of(const View<const Accumulator<T>, 2>& scales) const {
    return scales.data != nullptr ? static_cast<Real>(scales(b_, g_)) : Real{1};
  }

  /// Replaces a scaled product by the score and adds the error of the soft cap, the slope and the
  /// bias.
  void apply_rule(std::size_t at, std::int64_t h, std::int64_t i, std::int64_t j,
                  std::int64_t diagonal) {
    const auto& rule = heads_.rule;
    Real terms = 0;
    if (soft_cap_ != 0) {
      score_[at] = soft_cap_ * std::tanh(score_[at] / soft_cap_);
      terms += 16 * soft_cap_;
    }
    if (rule.slopes.data != nullptr) {
      const Real term =
          static_cast<Real>(rule.slopes(h)) * static_cast<Real>(std::abs(j - diagonal));
      score_[at] -= term;
      terms += 4 * std::abs(term);
    }
    if (rule.bias.data != nullptr) {
      const auto term = static_cast<Real>(rule.bias(b_, h, i, j));
      score_[at] += term;
      if (std::isfinite(term)) terms += 4 * std::abs(term);
    }
    error_[at] += terms;
  }

  AttentionHeads<T, K> heads_;
  DType dtype_;
  Real unit_;
  Real scale_, soft_cap_;
  std::int64_t b_ = 0, g_ = 0;
  std::int64_t first_ = 0;  // key of score_[0]
  std::vector<Real> score_, error_, sums_, off_;
  Real maximum_ = 0, sum_ = 0, error_of_sum_ = 0;
  bool is_nan_ = false;
  bool has_no_weight_ = false;  // no visible key, or all scores are -infinity
};

}  // namespace

Cost Attention::cost(const Args& args) {
  const auto size = static_cast<double>(size_of(args.q.dtype));
  const auto width = static_cast<double>(args.width() + args.value_width());
  const auto batch = static_cast<double>(args.batch());
  const auto heads = static_cast<double>(args.heads());
  const double query_rows =
      static_cast<double>(args.q.shape[0]) * heads * static_cast<double>(args.queries());
  const auto keys =
      static_cast<double>(smaller(args.typical_keys(), args.most_keys(args.queries())));
  const double key_rows = batch * static_cast<double>(args.kv_heads()) * keys;
  double written = query_rows * static_cast<double>(args.value_width()) * size;
  if (args.has_lse()) {
    written += query_rows * static_cast<double>(size_of(args.options.lse.dtype));
  }
  double read = size * query_rows * static_cast<double>(args.width()) +
                static_cast<double>(size_of(args.k.dtype)) * key_rows * width;
  for (const auto& option : {args.options.bias, args.options.k_scales, args.options.v_scales}) {
    read += attention_arguments::distinct_bytes(option);
  }
  return {.bytes = read + written,
          .operations = 2 * batch * heads * args.visible_pairs() * width,
          .written = written};
}

void Attention::reference(const Args& args, Oracle& oracle) {
  visit_types(args, [&]<class T, class K>() {
    Reference<T, K> reference(args);
    const std::int64_t heads = args.heads();
    const auto position = [&](std::int64_t batch, std::int64_t row) {
      return packed_position(reference.heads().query_offsets, batch, row, args.queries());
    };
    Oracle::Output& o = oracle.outputs.at(0);
    std::size_t at = 0;
    for (const std::int64_t row : o.rows) {  // of (batch, head, query)
      const std::int64_t head = row / args.queries();
      const auto [element, query] = position(head / heads, row % args.queries());
      reference.look_at(element, head % heads, query);
      reference.values(&o.value[at], &o.magnitude[at]);
      at += static_cast<std::size_t>(o.length);
    }
    if (!args.has_lse()) return;
    Oracle::Output& lse = oracle.outputs.at(1);
    at = 0;
    for (const std::int64_t head : lse.rows) {  // of (batch, head)
      for (std::int64_t row = 0; row < lse.length; ++row, ++at) {
        const auto [element, query] = position(head / heads, row);
        reference.look_at(element, head % heads, query);
        reference.lse(&lse.value[at], &lse.magnitude[at]);
      }
    }
  });
}

Tolerance Attention::tolerance(const Args& args, const RungInfo&, Values) {
  const DType dtype = args.o.dtype;
  Tolerance tolerance{.relative = epsilon(dtype) / 2 * 1.01, .magnitude = 1.01};
  // Half the smallest subnormal of the type, or the threshold of flush to zero.
  tolerance.absolute = dtype == DType::f64 ? 0x1p-1022 : dtype == DType::f16 ? 0x1p-25 : 0x1p-126;
  return tolerance;
}

}  // namespace rung
