// SPDX-License-Identifier: Apache-2.0
// What the first CPU rungs have in common: the loops around the fold of one result.
#pragma once

#include "rung/ops/reduce/cpu/detail/finish.hpp"

namespace rung::reduce_cpu {

/// Calls fold_one(first term's address, position of the first term, number of terms, result) for
/// every result; what it leaves in the pair is finished and stored.
template <class T, class FoldOne>
void for_each_result(const Reduce::Args& args, const FoldOne& fold_one) {
  using W = Wide<T>;
  const Fold fold = fold_of(args.operation);
  with_result_type<W>(args.y.dtype, [&]<class Y>() {
    const std::int64_t segments = args.has_segments() ? args.segments() : 1;
    for (std::int64_t segment = 0; segment < segments; ++segment) {
      std::int64_t first = 0;
      std::int64_t count = args.terms.size();
      if (args.has_segments()) {
        first = segment_bound(args, segment);
        count = segment_bound(args, segment + 1) - first;
      }
      for (std::int64_t i = 0; i < args.kept.size(); ++i) {
        std::int64_t at[2];
        args.kept.offsets(i, at);
        W value = identity<W>(fold);
        W rest = args.is_arg() ? -1 : 0;
        fold_one(static_cast<const T*>(args.x.data) + at[0], first, count, value, rest);
        Y* y = static_cast<Y*>(args.y.data) + at[1];
        if (args.has_segments()) y += segment * args.segment_step();
        *y = finish<Y>(args.operation, value, rest, count);
      }
    }
  });
}

/// The rungs between the first and the last take contiguous rows of f32 and f64.
inline Support require_contiguous_rows(const Reduce::Args& args, const Context&) {
  if (args.x.dtype != DType::f32 && args.x.dtype != DType::f64) return unsupported("f32 and f64");
  if (args.is_arg()) return unsupported("no argmin and no argmax");
  if (args.has_segments()) return unsupported("no segments");
  if (!args.terms.is_contiguous()) return unsupported("the reduced axes must be contiguous");
  return supported;
}

}  // namespace rung::reduce_cpu
