// SPDX-License-Identifier: Apache-2.0
// Argument checks shared by all operators. Each throws Error(invalid_argument) that names the
// operator, the argument, its value and the accepted values; strings are built only for the error.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "rung/core/context.hpp"
#include "rung/core/export.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung {

/// Throws Error(invalid_argument) with a message such as "softmax: x is ...".
[[noreturn]] RUNG_API void reject(std::string_view op, const std::string& message);

/// Throws unless a tensor's fields agree with each other (TensorRef::consistent()), its size in
/// bytes fits 63 bits, its elements are within the address space, and it has data or is empty.
/// bind() calls it first, for each tensor.
RUNG_API void require_tensor(std::string_view op, const ConstTensorRef& tensor,
                             std::string_view name);

/// Returns whether an optional tensor was given. A tensor with axes but no data counts as given,
/// and is then rejected.
inline bool is_given(const ConstTensorRef& tensor) {
  return tensor.data != nullptr || tensor.shape.rank != 0;
}

/// Throws if the rank of a list of axes, set by hand, is invalid.
RUNG_API void require_list(std::string_view op, const Extents& list, std::string_view name);

/// Throws unless `value` is an enumerator; `last` is the greatest one.
template <class Enum>
void require_choice(std::string_view op, Enum value, Enum last, std::string_view name) {
  if (value <= last) return;
  reject(op, std::string(name) + " is " + std::to_string(static_cast<int>(value)) +
                 "; accepted: 0 to " + std::to_string(static_cast<int>(last)));
}

/// Throws unless a tensor is on the context's device; cpu and simt contexts accept any host memory.
/// Throws for a context that has been moved from.
RUNG_API void require_here(std::string_view op, const ConstTensorRef& tensor, std::string_view name,
                           const Context& context);

/// Throws for a tensor on the simulated GPU if this build has none, although its memory is host
/// memory.
RUNG_API void require_device_of_build(std::string_view op, const ConstTensorRef& tensor,
                                      std::string_view name);

RUNG_API void require_dtype(std::string_view op, const ConstTensorRef& tensor,
                            std::string_view name, std::initializer_list<DType> accepted);

RUNG_API void require_shape(std::string_view op, const ConstTensorRef& tensor,
                            std::string_view name, const Extents& accepted);

/// Throws if two elements of a tensor share memory, since writes to it would be ambiguous.
RUNG_API void require_writable(std::string_view op, const ConstTensorRef& tensor,
                               std::string_view name);

/// Throws if the address ranges of two tensors overlap.
RUNG_API void require_apart(std::string_view op, const ConstTensorRef& written,
                            std::string_view written_name, const ConstTensorRef& read,
                            std::string_view read_name);

/// Throws if the address ranges of two tensors overlap, unless they are the same tensor.
RUNG_API void require_same_or_apart(std::string_view op, const ConstTensorRef& written,
                                    std::string_view written_name, const ConstTensorRef& read,
                                    std::string_view read_name);

/// Returns true if both tensors have the same elements at the same addresses, as for in-place
/// calls.
inline bool same_place(const ConstTensorRef& a, const ConstTensorRef& b) {
  return a.data == b.data && a.dtype == b.dtype && a.shape == b.shape && a.strides == b.strides;
}

/// Returns the axis counted from 0; a negative `axis` counts from the end (-1: the last). Throws if
/// it is out of range.
RUNG_API int require_axis(std::string_view op, std::int64_t axis, int rank);

}  // namespace rung
