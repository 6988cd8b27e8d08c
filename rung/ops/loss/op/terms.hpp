// SPDX-License-Identifier: Apache-2.0
// Term of an element in its row's loss, and its gradient, for hosts and devices. `target` of a
// class is 1 for the label and 0 for other classes, or the desired value of x (squared error).
#pragma once

#include <cmath>
#include <cstdint>

#include "rung/core/export.hpp"
#include "rung/ops/loss/op/loss.hpp"

namespace rung {

template <class Sum>
struct LossTerms {
  LossKind kind;
  Sum label_share;  // 1 - e: weight of the label
  Sum every_share;  // e / C: weight of every class
  Sum margin;
  Sum part;  // 1 / C

  static LossTerms of(const Loss::Args& args) {
    const LossOptions& options = args.options;
    // Rungs use the options in the arithmetic type.
    const auto smoothing = static_cast<Sum>(options.smoothing);
    const auto classes = static_cast<Sum>(args.classes());
    return {options.kind, 1 - smoothing, smoothing / classes, static_cast<Sum>(options.margin),
            1 / classes};
  }

  /// Returns these terms with the kind as a compile-time constant.
  template <LossKind known>
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE LossTerms of_kind() const {
    LossTerms terms = *this;
    terms.kind = known;
    return terms;
  }

  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE bool has_maximum() const {
    return kind == LossKind::cross_entropy;
  }
  /// Returns q_c of cross entropy.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE Sum share(Sum target) const {
    return label_share * target + every_share;
  }

  /// Returns the term of an element. For cross entropy without the logarithm of the sum: q (m - x),
  /// or 0 if q is 0, even for x = -infinity.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE Sum term(Sum x, Sum target, Sum maximum) const {
    if (kind == LossKind::cross_entropy) {
      const Sum q = share(target);
      return q == 0 ? Sum(0) : q * (maximum - x);
    }
    if (kind == LossKind::hinge) {
      const Sum slack = margin - (target != 0 ? x : -x);
      return slack < 0 ? Sum(0) : slack;
    }
    const Sum difference = x - target;
    return difference * difference * part;
  }

  /// Returns d row / dx; `p` is the probability of the class, used by cross entropy only.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE Sum slope(Sum x, Sum target, Sum p) const {
    if (kind == LossKind::cross_entropy) return p - share(target);
    if (kind == LossKind::hinge) {
      const Sum slack = margin - (target != 0 ? x : -x);
      if (std::isnan(slack)) return slack;
      return slack < 0 ? Sum(0) : target != 0 ? Sum(-1) : Sum(1);
    }
    return 2 * (x - target) * part;
  }
};

/// Labels of the rows, i64 or i32.
struct LossLabels {
  const void* data = nullptr;
  bool wide = true;  // i64, else i32
  bool ignores = false;
  std::int64_t ignored = 0;
  std::int64_t classes = 0;

  static LossLabels of(const Loss::Args& args) {
    if (!args.labeled()) return {};
    return {args.target.data, args.target.dtype == DType::i64, args.ignores(),
            args.options.ignored_label, args.classes()};
  }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t at(std::int64_t offset) const {
    return wide ? static_cast<const std::int64_t*>(data)[offset]
                : static_cast<const std::int32_t*>(data)[offset];
  }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE bool counts(std::int64_t label) const {
    return !ignores || label != ignored;
  }
  /// Returns whether the label is outside [0, C); false if the loss has no labels.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE bool is_wrong(std::int64_t label) const {
    return data != nullptr && (label < 0 || label >= classes);
  }
};

}  // namespace rung
