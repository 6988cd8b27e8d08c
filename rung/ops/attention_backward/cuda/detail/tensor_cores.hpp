// SPDX-License-Identifier: Apache-2.0
// Requirements of the tensor-core rungs, and their instances. Sizes are below 2^30, so indices are
// int.
#pragma once

#include <cstdint>

#include "rung/ops/attention/shared/rows.hpp"
#include "rung/ops/attention_backward/cuda/detail/gradients.hpp"

namespace rung::attention_backward_cuda::inline RUNG_TARGET {

constexpr std::int64_t max_tensor_width = 128;
constexpr std::int64_t max_tensor_size = std::int64_t{1} << 30;

inline Support require_tensor_cores(const AttentionBackward::Args& args) {
  if (args.q.dtype != DType::f16 && args.q.dtype != DType::bf16) {
    return unsupported("this rung multiplies f16 and bf16");
  }
  if (args.width() > max_tensor_width || args.value_width() > max_tensor_width) {
    return unsupported("D or Dv above 128");
  }
  for (const ConstTensorRef& operand : {args.q, args.k, args.v, args.dout, ConstTensorRef(args.dq),
                                        ConstTensorRef(args.dk), ConstTensorRef(args.dv)}) {
    if (!has_contiguous_rows(operand)) {
      return unsupported("rows of q, k, v, dout, dq, dk and dv must be contiguous");
    }
  }
  if (query_rows(args) > max_tensor_size || key_rows(args) > max_tensor_size) {
    return unsupported("more than 2^30 rows of q or k");
  }
  if (static_cast<double>(args.batch()) * static_cast<double>(args.heads()) > max_tensor_size) {
    return unsupported("more than 2^30 heads of batch elements");
  }
  return supported;
}

/// Calls f.template operator()<T, Width>() with the element type and the padded row width.
template <class F>
void with_width(const AttentionBackward::Args& args, F&& f) {
  const bool narrow = args.width() <= 64 && args.value_width() <= 64;
  visit<f16, bf16>(args.q.dtype, [&]<class T>() {
    if (narrow) return f.template operator()<T, 64>();
    f.template operator()<T, 128>();
  });
}

}  // namespace rung::attention_backward_cuda::inline RUNG_TARGET
