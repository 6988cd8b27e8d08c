// SPDX-License-Identifier: Apache-2.0
// Checks of arguments that attention and its gradient share. Each throws Error(invalid_argument)
// that names the operator `op`, the argument, its value and what is accepted.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string_view>

#include "rung/core/require.hpp"
#include "rung/ops/attention/shared/mask.hpp"

namespace rung::attention_arguments {

inline void require_four_axes(std::string_view op, const ConstTensorRef& tensor,
                              std::string_view name, std::string_view accepted) {
  if (tensor.rank() == 4) return;
  reject(op, fmt::format("{} has shape {}; accepted: {}", name, to_string(tensor.shape), accepted));
}

/// Throws unless D and Dv are 1 or more and the heads of k and v divide those of q.
inline void require_widths_and_heads(std::string_view op, std::int64_t width,
                                     std::int64_t value_width, std::int64_t heads,
                                     std::int64_t kv_heads) {
  if (width == 0) reject(op, "q and k have vectors of 0 elements; accepted: 1 or more");
  if (value_width == 0) reject(op, "v has vectors of 0 elements; accepted: 1 or more");
  if (heads > 0 && (kv_heads == 0 || heads % kv_heads != 0)) {
    reject(op, fmt::format("q has {} heads, k and v {}; accepted: a divisor of {}", heads, kv_heads,
                           heads));
  }
}

/// Throws unless a list of row offsets, if given, fits the packed tensor `name`.
inline void require_offsets(std::string_view op, const ConstTensorRef& offsets,
                            std::string_view of_offsets, const ConstTensorRef& tensor,
                            std::string_view name) {
  if (!is_given(offsets)) return;
  require_dtype(op, offsets, of_offsets, {DType::i32});
  if (offsets.rank() != 1 || offsets.shape[0] < 1) {
    reject(op, fmt::format("{} has shape {}; accepted: B + 1 numbers", of_offsets,
                           to_string(offsets.shape)));
  }
  if (tensor.shape[0] == 1) return;
  reject(op, fmt::format("{} has shape {}; accepted with {}: 1 on the first axis", name,
                         to_string(tensor.shape), of_offsets));
}

/// Checks the row offsets of options and what may be given beside them. Returns the extent of the
/// first axis of k and v; `batch` is the number of batch elements, after query_offsets.
template <class Options>
std::int64_t check_packing(std::string_view op, const ConstTensorRef& q, const ConstTensorRef& k,
                           const Options& options) {
  require_offsets(op, options.query_offsets, "query_offsets", q, "q");
  require_offsets(op, options.key_offsets, "key_offsets", k, "k");
  const bool by_queries = is_given(options.query_offsets);
  const std::int64_t batch = by_queries ? options.query_offsets.shape[0] - 1 : q.shape[0];
  const bool by_keys = is_given(options.key_offsets);
  if ((by_queries || by_keys) && is_given(options.bias)) {
    reject(op, "bias is given; accepted with query_offsets or key_offsets: none");
  }
  if (!by_keys) return batch;
  if (is_given(options.key_lengths)) {
    reject(op, "key_lengths are given; accepted with key_offsets: none");
  }
  if (options.key_offsets.shape[0] != batch + 1) {
    reject(op, fmt::format("key_offsets has {} numbers; accepted: {}, one more than batch elements",
                           options.key_offsets.shape[0], batch + 1));
  }
  return 1;
}

/// Throws unless an optional tensor, if given, has the accepted shape and type.
inline void check_optional(std::string_view op, const ConstTensorRef& tensor, std::string_view name,
                           DType dtype, const Extents& accepted) {
  if (!is_given(tensor)) return;
  require_shape(op, tensor, name, accepted);
  require_dtype(op, tensor, name, {dtype});
}

/// Returns the bytes of a tensor's elements, those of axes that repeat once; 0 if there is none.
inline double distinct_bytes(const ConstTensorRef& tensor) {
  if (tensor.data == nullptr) return 0;
  auto bytes = static_cast<double>(size_of(tensor.dtype));
  for (int axis = 0; axis < tensor.rank(); ++axis) {
    if (tensor.strides[axis] != 0) bytes *= static_cast<double>(tensor.shape[axis]);
  }
  return bytes;
}

/// Returns the type of lse, slopes, bias and sinks.
inline DType arithmetic_of(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

/// Throws unless `given`, an option of 0 or a positive number, is within the range of f32; `zero`
/// says what 0 stands for.
inline void require_in_f32(std::string_view op, double given, std::string_view name,
                           std::string_view zero) {
  const auto narrow = static_cast<float>(given);
  if (given == 0 || (narrow > 0 && std::isfinite(narrow))) return;
  reject(op, fmt::format("{} is {}; accepted: 0, for {}, or above 0 and within the range of f32",
                         name, given, zero));
}

/// Checks scale, soft_cap and window and replaces them by what kernels use: the factor of the
/// scores, and a window below the number of keys or 0.
template <class Options>
void bind_numbers(std::string_view op, Options& options, std::int64_t width, std::int64_t keys) {
  require_in_f32(op, options.scale, "scale", "1 / sqrt(D)");
  if (options.scale == 0) options.scale = 1 / std::sqrt(static_cast<double>(width));
  require_in_f32(op, options.soft_cap, "soft_cap", "none");
  if (options.window < 0 || (options.window > 0 && !options.causal)) {
    reject(op, fmt::format(
                   "window is {}; accepted: 0, for none, {}", options.window,
                   options.causal ? "or more" : "or with causal the number of keys of a query"));
  }
  options.window = window_among(options.window, keys);
}

}  // namespace rung::attention_arguments
