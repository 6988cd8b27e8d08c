// SPDX-License-Identifier: Apache-2.0
// What an element of a row adds to the row's loss, and its share of the gradient, for hosts and
// devices alike. A row's target is a number per class: 1 for its label and 0 for the others, or
// what x should be.
#pragma once

#include <cmath>
#include <cstdint>

#include "rung/core/export.hpp"
#include "rung/ops/loss/op/loss.hpp"

namespace rung {

template <class Sum>
struct LossTerms {
  LossKind kind;
  Sum label_share;  // of the label, 1 - e, and
  Sum every_share;  // of every class, e / C
  Sum margin;
  Sum part;  // 1 / C

  static LossTerms of(const Loss::Args& args) {
    const LossOptions& options = args.options;
    // The options reach the arithmetic in its type.
    const auto smoothing = static_cast<Sum>(options.smoothing);
    const auto classes = static_cast<Sum>(args.classes());
    return {options.kind, 1 - smoothing, smoothing / classes, static_cast<Sum>(options.margin),
            1 / classes};
  }

  /// Computes the terms of a kind that is a compile-time constant.
  template <LossKind known>
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE LossTerms of_kind() const {
    LossTerms terms = *this;
    terms.kind = known;
    return terms;
  }

  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE bool has_maximum() const {
    return kind == LossKind::cross_entropy;
  }
  /// q_c of cross entropy.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE Sum share(Sum target) const {
    return label_share * target + every_share;
  }

  /// Cross entropy without the logarithm of the sum: q (m - x), and nothing where q is 0, though x
  /// may be -infinity there.
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

  /// d row / dx; `p` is the probability of the class, of cross entropy alone.
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

/// The label of a row, in either type.
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
  /// Returns whether the label is no class; without labels there is none.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE bool is_wrong(std::int64_t label) const {
    return data != nullptr && (label < 0 || label >= classes);
  }
};

}  // namespace rung
