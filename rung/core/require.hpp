// SPDX-License-Identifier: Apache-2.0
// Checks of arguments that all operators share: each throws Error(invalid_argument) that names the
// operator, the argument, the given value and the accepted ones.
//
// They take the cheap way first and build no string unless they throw.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "rung/core/context.hpp"
#include "rung/core/export.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung {

/// "softmax: x is ...".
[[noreturn]] RUNG_API void reject(std::string_view op, const std::string& message);

/// Throws unless a tensor's fields agree with each other (TensorRef::consistent()), its size fits
/// 63 bits, its elements are within the address space, and it has data or is empty. bind() calls it
/// first, for each tensor.
RUNG_API void require_tensor(std::string_view op, const ConstTensorRef& tensor,
                             std::string_view name);

/// Returns whether a tensor that may be left out is there: one with axes but no data was meant to
/// be.
inline bool is_given(const ConstTensorRef& tensor) {
  return tensor.data != nullptr || tensor.shape.rank != 0;
}

/// A rank that was set by hand, of a list of axes.
RUNG_API void require_list(std::string_view op, const Extents& list, std::string_view name);

/// An enumerator, `last` the greatest one.
template <class Enum>
void require_choice(std::string_view op, Enum value, Enum last, std::string_view name) {
  if (value <= last) return;
  reject(op, std::string(name) + " is " + std::to_string(static_cast<int>(value)) +
                 "; accepted: 0 to " + std::to_string(static_cast<int>(last)));
}

/// Requires a tensor on the context's device; host memory serves cpu and simt alike. The context
/// must not have been moved from.
RUNG_API void require_here(std::string_view op, const ConstTensorRef& tensor, std::string_view name,
                           const Context& context);

/// Rejects tensors of a simulated GPU in a build without one, although they are in host memory.
RUNG_API void require_device_of_build(std::string_view op, const ConstTensorRef& tensor,
                                      std::string_view name);

RUNG_API void require_dtype(std::string_view op, const ConstTensorRef& tensor,
                            std::string_view name, std::initializer_list<DType> accepted);

RUNG_API void require_shape(std::string_view op, const ConstTensorRef& tensor,
                            std::string_view name, const Extents& accepted);

/// Requires that no two elements share memory, so that writes are unambiguous.
RUNG_API void require_writable(std::string_view op, const ConstTensorRef& tensor,
                               std::string_view name);

/// The bytes that one spans are not those of the other.
RUNG_API void require_apart(std::string_view op, const ConstTensorRef& written,
                            std::string_view written_name, const ConstTensorRef& read,
                            std::string_view read_name);

/// Throws if the two overlap, unless they are one tensor.
RUNG_API void require_same_or_apart(std::string_view op, const ConstTensorRef& written,
                                    std::string_view written_name, const ConstTensorRef& read,
                                    std::string_view read_name);

/// Returns true if both are the same elements at the same addresses, as in-place operators accept.
inline bool same_place(const ConstTensorRef& a, const ConstTensorRef& b) {
  return a.data == b.data && a.dtype == b.dtype && a.shape == b.shape && a.strides == b.strides;
}

/// An axis counted from the front, or from the end when negative (-1: the last).
RUNG_API int require_axis(std::string_view op, std::int64_t axis, int rank);

}  // namespace rung
