// SPDX-License-Identifier: Apache-2.0
// Loops and requirements of the first CPU rungs.
#pragma once

#include "rung/ops/reduce/cpu/detail/fold.hpp"

namespace rung::reduce_cpu {

/// Stores sum_of(address of the first term, number of terms), a double, for every result.
template <class T, class SumOf>
void for_each_result(const Reduce::Args& args, const SumOf& sum_of) {
  const std::int64_t n = args.terms.size();
  visit<float, double>(args.y.dtype, [&]<class Y>() {
    for (std::int64_t result = 0; result < args.kept.size(); ++result) {
      std::int64_t at[2];
      args.kept.offsets(result, at);
      const double sum = sum_of(static_cast<const T*>(args.x.data) + at[0], n);
      static_cast<Y*>(args.y.data)[at[1]] = finish<Y>(args.operation, sum, 0.0, n);
    }
  });
}

/// Returns unsupported except for sums of f32 and f64.
inline Support require_float_sums(const Reduce::Args& args, const Context&) {
  if (args.operation != Reduction::sum) return unsupported("sums only");
  if (args.x.dtype != DType::f32 && args.x.dtype != DType::f64) return unsupported("f32 and f64");
  if (args.y.dtype != args.x.dtype) return unsupported("y must have x's type");
  if (args.has_segments()) return unsupported("no segments");
  return supported;
}
inline Support require_contiguous_float_sums(const Reduce::Args& args, const Context& context) {
  if (!args.terms.is_contiguous()) return unsupported("the reduced axes must be contiguous");
  return require_float_sums(args, context);
}

/// Returns unsupported except for sums and means of contiguous rows.
inline Support require_contiguous_rows(const Reduce::Args& args, const Context&) {
  if (args.operation != Reduction::sum && args.operation != Reduction::mean) {
    return unsupported("sums and means");
  }
  if (args.x.dtype != DType::f32 && args.x.dtype != DType::f64) return unsupported("f32 and f64");
  if (args.has_segments()) return unsupported("no segments");
  if (!args.terms.is_contiguous()) return unsupported("the reduced axes must be contiguous");
  return supported;
}

}  // namespace rung::reduce_cpu
