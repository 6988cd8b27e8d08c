// SPDX-License-Identifier: Apache-2.0
// The host side of the rungs that copy with cp.async: which access suits an operand.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "rung/ops/gemm/cuda/detail/pipeline.hpp"
#include "rung/ops/gemm/cuda/detail/rung.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

/// Wide copies need whole aligned groups along `outer`, the axis shared with C.
inline Access access_of(const View<const float, 3>& operand, int outer, int depth) {
  constexpr std::int64_t width = 4;
  const bool wide = operand.strides[outer] == 1 && operand.shape[outer] % width == 0 &&
                    operand.strides[depth] % width == 0 && operand.strides[0] % width == 0 &&
                    reinterpret_cast<std::uintptr_t>(operand.data) % 16 == 0;
  if (wide) return Access::wide;
  return operand.strides[depth] == 1 ? Access::along_depth : Access::any;
}

/// Calls f.template operator()<access of A, access of B>(). If one is any, both are: five kernels
/// instead of nine.
template <class F>
void with_access(const Product32& p, F&& f) {
  constexpr Access along_depth = Access::along_depth;
  constexpr Access wide = Access::wide;
  const Access a = access_of(p.a, 1, 2);
  const Access b = access_of(p.b, 2, 1);
  if (a == Access::any || b == Access::any) {
    return f.template operator()<Access::any, Access::any>();
  }
  if (a == wide) {
    return b == wide ? f.template operator()<wide, wide>()
                     : f.template operator()<wide, along_depth>();
  }
  b == wide ? f.template operator()<along_depth, wide>()
            : f.template operator()<along_depth, along_depth>();
}

/// How a kernel of one pipeline a block is launched.
template <TileShape shape, Access access_a, Access access_b>
constexpr Tiling tiling_of{
    .rows = shape.rows,
    .columns = shape.columns,
    .block = shape.threads(),
    .shared_bytes = sizeof(typename Pipeline<shape, access_a, access_b>::Stages)};

/// C with contiguous columns is made as the transposed product, whose C has contiguous rows.
inline Product32 with_contiguous_rows(const Product32& p) {
  return p.c.strides[2] != 1 && p.c.strides[1] == 1 ? transpose(p) : p;
}

/// Distances within a tile are kept in 32 bits: 256 rows or columns, 32 steps at the most.
inline Support require_short_strides(const Gemm::Args& args, const Context& context) {
  if (const Support f32 = require_f32(args, context); !f32) return f32;
  constexpr std::int64_t longest = std::int64_t{1} << 22;
  for (const ConstTensorRef* operand : {&args.a, &args.b}) {
    if (std::abs(operand->strides[1]) > longest || std::abs(operand->strides[2]) > longest) {
      return unsupported("A and B must have strides of at most 4194304 elements");
    }
  }
  return supported;
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
