// SPDX-License-Identifier: Apache-2.0
// Update of one parameter, for hosts and devices.
#pragma once

#include <cmath>

#include "rung/core/export.hpp"
#include "rung/ops/optimizer/op/optimizer.hpp"

namespace rung {

/// A parameter and its moments.
template <class Sum>
struct OptimizerState {
  Sum p;
  Sum m;
  Sum v;
};

/// Constants of the update, in the type of the arithmetic.
template <class Sum>
struct OptimizerUpdate {
  bool adam;
  bool has_momentum;
  bool nesterov;
  Sum keep;      // factor of p: 1, or 1 minus the decoupled decay
  Sum decay;     // factor of p in the gradient
  Sum rate;      // adam: divided by 1 - beta1^t
  Sum momentum;  // adam: beta1
  Sum gain;      // factor of g in the first moment: 1, adam 1 - beta1
  Sum beta2;
  Sum gain2;       // 1 - beta2
  Sum correction;  // 1 / sqrt(1 - beta2^t)
  Sum epsilon;

  static OptimizerUpdate of(const Optimizer::Args& args) {
    const OptimizerOptions& o = args.options;
    const bool adam = o.kind == OptimizerKind::adam;
    // Differences from 1 are computed in double: 1 - beta2 would lose digits in f32.
    const double first = adam ? 1 - std::pow(o.beta1, o.step) : 1;
    const double second = adam ? 1 - std::pow(o.beta2, o.step) : 1;
    OptimizerUpdate update{};
    update.adam = adam;
    update.has_momentum = !adam && o.momentum != 0;
    update.nesterov = o.nesterov;
    update.keep = static_cast<Sum>(o.decoupled ? 1 - o.learning_rate * o.weight_decay : 1.0);
    update.decay = static_cast<Sum>(o.decoupled ? 0.0 : o.weight_decay);
    update.rate = static_cast<Sum>(o.learning_rate / first);
    update.momentum = static_cast<Sum>(adam ? o.beta1 : o.momentum);
    update.gain = static_cast<Sum>(adam ? 1 - o.beta1 : 1.0);
    update.beta2 = static_cast<Sum>(o.beta2);
    update.gain2 = static_cast<Sum>(1 - o.beta2);
    update.correction = static_cast<Sum>(1 / std::sqrt(second));
    update.epsilon = static_cast<Sum>(o.epsilon);
    return update;
  }

  /// Returns the updated state; `g` is already clipped.
  template <class Root>
  RUNG_HD RUNG_ALWAYS_INLINE OptimizerState<Sum> operator()(OptimizerState<Sum> s, Sum g,
                                                            const Root& root) const {
    g += decay * s.p;
    s.p *= keep;
    if (adam) {
      s.m = momentum * s.m + gain * g;
      s.v = beta2 * s.v + gain2 * g * g;
      s.p -= rate * s.m / (root(s.v) * correction + epsilon);
      return s;
    }
    if (has_momentum) {
      s.m = momentum * s.m + g;
      g = nesterov ? g + momentum * s.m : s.m;
    }
    s.p -= rate * g;
    return s;
  }
};

/// Returns the clipping factor for gradients with this norm.
RUNG_HD RUNG_ALWAYS_INLINE inline double clip_factor(double max_norm, double norm) {
  return max_norm > 0 && !(norm <= max_norm) ? max_norm / norm : 1.0;
}

}  // namespace rung
