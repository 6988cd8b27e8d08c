// SPDX-License-Identifier: Apache-2.0
// ScoreRule: the score of a query and a key from the product of their vectors, by scale, soft cap,
// ALiBi slopes and bias. Attention and its gradient share it, on hosts and devices.
#pragma once

#include <cmath>
#include <cstdint>

#include "rung/core/export.hpp"
#include "rung/core/view.hpp"

namespace rung {

template <class Sum>
struct ScoreRule {
  Sum scale;
  Sum soft_cap;               // 0: none
  View<const Sum, 1> slopes;  // per head of q; no data: none
  View<const Sum, 4> bias;    // batch x heads x queries x keys; no data: none

  /// Returns whether the score is scale times the product and nothing else.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE bool is_plain() const {
    return soft_cap == 0 && slopes.data == nullptr && bias.data == nullptr;
  }

  /// Returns the score of query i of head h and key j. `diagonal` is the last key that a causal
  /// mask shows query i: i + L - Sq.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE Sum operator()(Sum product, std::int64_t b,
                                                          std::int64_t h, std::int64_t i,
                                                          std::int64_t j,
                                                          std::int64_t diagonal) const {
    Sum score = scale * product;
    if (soft_cap != 0) score = soft_cap * std::tanh(score / soft_cap);
    if (slopes.data != nullptr) score -= slopes(h) * static_cast<Sum>(distance(j, diagonal));
    if (bias.data != nullptr) score += bias(b, h, i, j);
    return score;
  }

  /// Returns the factor by which the gradient of a score becomes that of scale times the product:
  /// the derivative of the soft cap.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE Sum slope_at(Sum product) const {
    if (soft_cap == 0) return 1;
    const Sum share = std::tanh(scale * product / soft_cap);
    return 1 - share * share;
  }

  static RUNG_HD RUNG_ALWAYS_INLINE std::int64_t distance(std::int64_t j, std::int64_t diagonal) {
    return j < diagonal ? diagonal - j : j - diagonal;
  }
};

// --- on the host ---------------------------------------------------------------------------------

/// Returns the rule of the options of attention() or of its gradient.
template <class Sum, class Options>
ScoreRule<Sum> score_rule(const Options& options) {
  ScoreRule<Sum> rule{.scale = static_cast<Sum>(options.scale),
                      .soft_cap = static_cast<Sum>(options.soft_cap),
                      .slopes = {},
                      .bias = {}};
  if (options.slopes.data != nullptr) rule.slopes = options.slopes.template view<const Sum, 1>();
  if (options.bias.data != nullptr) rule.bias = options.bias.template view<const Sum, 4>();
  return rule;
}

}  // namespace rung
