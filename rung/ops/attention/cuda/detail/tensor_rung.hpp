// SPDX-License-Identifier: Apache-2.0
// The host side of the tensor-core rungs: what they take, and what their kernels are given.
#pragma once

#include <cstdint>

#include "rung/core/bounds.hpp"
#include "rung/core/integer.hpp"
#include "rung/ops/attention/cuda/detail/query_job.hpp"

namespace rung::attention_cuda::inline RUNG_TARGET {

constexpr std::int64_t max_tensor_width = 256;
constexpr std::int64_t max_tensor_size = std::int64_t{1} << 30;

inline bool has_contiguous_rows(const ConstTensorRef& heads) {
  return heads.strides[3] == 1 || heads.shape[3] <= 1;
}

/// Whether rows start at multiples of so many bytes; as rows are contiguous, they may be copied in
/// pieces of that size then.
inline bool starts_rows_at(const ConstTensorRef& heads, std::int64_t bytes) {
  const auto element = static_cast<std::int64_t>(size_of(heads.dtype));
  for (int axis = 0; axis < 3; ++axis) {
    if (heads.shape[axis] > 1 && heads.strides[axis] * element % bytes != 0) return false;
  }
  return reinterpret_cast<std::uintptr_t>(heads.data) % static_cast<std::uintptr_t>(bytes) == 0;
}

/// `rows`: queries of a block.
inline Support require_tensor_cores(const Attention::Args& args, int rows) {
  if (args.q.dtype != DType::f16 && args.q.dtype != DType::bf16) {
    return unsupported("this rung multiplies f16 and bf16");
  }
  if (args.width() > max_tensor_width || args.value_width() > max_tensor_width) {
    return unsupported("D or Dv above 256");
  }
  if (!has_contiguous_rows(args.q) || !has_contiguous_rows(args.k) ||
      !has_contiguous_rows(args.v) || !has_contiguous_rows(args.o)) {
    return unsupported("rows of q, k, v and o must be contiguous");
  }
  if (args.queries() > max_tensor_size || args.keys() > max_tensor_size) {
    return unsupported("more than 2^30 queries or keys");
  }
  const double blocks = static_cast<double>(ceil_div(args.queries(), rows)) *
                        static_cast<double>(args.batch()) * static_cast<double>(args.heads());
  return blocks <= static_cast<double>(max_tensor_size) ? supported
                                                        : unsupported("more than 2^30 blocks");
}

template <class T>
QueryJob<T> query_job(const Attention::Args& args, const Context& context, int rows) {
  // Half of L2 for keys and values; the other half sees queries and results pass.
  const double head_bytes = static_cast<double>(args.keys()) *
                            static_cast<double>(args.width() + args.value_width()) * sizeof(T);
  const double cache = static_cast<double>(context.info().l2_bytes) / 2;
  const double shared_heads = larger(1.0, smaller(cache / larger(1.0, head_bytes), 0x1p20));
  const std::int64_t heads = args.batch() * args.heads();
  const std::int64_t section = static_cast<std::int64_t>(shared_heads) * args.group();
  return {.heads = heads_of<T>(args),
          .order = {.tiles = static_cast<int>(ceil_div(args.queries(), rows)),
                    .heads = static_cast<int>(heads),
                    .section = static_cast<int>(smaller(section, heads))},
          .scale = static_cast<float>(args.options.scale * 1.4426950408889634)};
}

/// Calls f.template operator()<T, Width>() for the type and the width to which rows are padded.
template <class F>
void with_width(const Attention::Args& args, F&& f) {
  const std::int64_t width = larger(args.width(), args.value_width());
  visit<f16, bf16>(args.q.dtype, [&]<class T>() {
    if (width <= 64) return f.template operator()<T, 64>();
    if (width <= 128) return f.template operator()<T, 128>();
    f.template operator()<T, 256>();
  });
}

}  // namespace rung::attention_cuda::inline RUNG_TARGET
