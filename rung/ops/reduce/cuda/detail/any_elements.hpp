// SPDX-License-Identifier: Apache-2.0
// Code of reduce's rungs for every type: elements that are widened to f64 or to 64-bit integers
// when loaded, and folds over the widened elements.
#pragma once

#include "rung/ops/reduce/cuda/detail/single_pass.hpp"

namespace rung::reduce_cuda::inline RUNG_TARGET {

struct Elements {
  const void* x;
  DType dtype;
  Collapsed<1> terms;
};

/// Returns element `at`, of any type, as W: double or a 64-bit integer.
template <class W>
__device__ __forceinline__ W load_any(const Elements& from, Index at) {
  const auto get = [&]<class T>(const T* x) {
    return static_cast<W>(convert<Accumulator<T>>(x[at]));
  };
  if constexpr (std::is_integral_v<W>) {
    switch (from.dtype) {
      case DType::i8:
        return get(static_cast<const std::int8_t*>(from.x));
      case DType::u8:
        return get(static_cast<const std::uint8_t*>(from.x));
      case DType::u16:
        return get(static_cast<const std::uint16_t*>(from.x));
      case DType::i32:
        return get(static_cast<const std::int32_t*>(from.x));
      default:
        return get(static_cast<const std::int64_t*>(from.x));
    }
  } else {
    switch (from.dtype) {
      case DType::f32:
        return get(static_cast<const float*>(from.x));
      case DType::f16:
        return get(static_cast<const f16*>(from.x));
      case DType::bf16:
        return get(static_cast<const bf16*>(from.x));
      default:
        return get(static_cast<const double*>(from.x));
    }
  }
}

/// Calls f(fold) with the fold of args over elements widened to W.
template <class W, class F>
void visit_wide_folds(const Reduce::Args& args, F&& f) {
  using reduce_fold::Fold;
  const Fold fold = reduce_fold::fold_of(args.operation);
  switch (fold) {
    case Fold::sum:
      return f(SumFold<W>{});
    case Fold::squares:
      if constexpr (!std::is_integral_v<W>) f(SquareFold<W>{});
      return;
    case Fold::product:
      return f(ProductFold<W>{});
    default: {
      const Flip flip{fold == Fold::greatest};
      if (args.is_arg()) return f(PositionFold<W>{flip});
      return f(ExtremeFold<W>{flip});
    }
  }
}

}  // namespace rung::reduce_cuda::inline RUNG_TARGET
