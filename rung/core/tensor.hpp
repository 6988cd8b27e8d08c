// SPDX-License-Identifier: Apache-2.0
// Tensor: a TensorRef that owns its memory; and functions that copy and set elements.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#include "rung/core/dtype.hpp"
#include "rung/core/export.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung {

/// Owning tensor, C-contiguous when allocated; 64-byte aligned (256 on a GPU). Movable.
class RUNG_API Tensor {
 public:
  Tensor() = default;
  /// Allocates uninitialized memory on `device`. Throws Error(out_of_memory, not_available).
  Tensor(DType dtype, const Extents& shape, Device device = {});
  /// Adopts existing memory, which `owner` keeps alive. Throws Error(invalid_argument) if the
  /// reference is inconsistent or lacks the data that its shape requires.
  Tensor(const TensorRef& ref, std::shared_ptr<void> owner);

  [[nodiscard]] TensorRef ref() const { return ref_; }
  operator TensorRef() const { return ref_; }       // NOLINT(google-explicit-constructor)
  operator ConstTensorRef() const { return ref_; }  // NOLINT(google-explicit-constructor)
  [[nodiscard]] const Extents& shape() const { return ref_.shape; }
  [[nodiscard]] DType dtype() const { return ref_.dtype; }
  /// Returns the address of the first element. T must be the tensor's element type, an unsigned
  /// type of the same width (the bits), std::uint8_t, or a type without a DType (void, std::byte);
  /// throws Error otherwise.
  template <class T>
  [[nodiscard]] T* data() const {
    constexpr bool bytes = std::is_same_v<std::remove_cv_t<T>, std::uint8_t>;
    if (!bytes && !detail::reads_as<T>(ref_.dtype)) [[unlikely]] {
      detail::throw_no_data(ref_, detail::asked_type<T>(ref_.dtype));
    }
    return static_cast<T*>(ref_.data);
  }

 private:
  TensorRef ref_;
  std::shared_ptr<void> owner_;
};

/// Copies elements between tensors of the same shape and dtype, with any strides, on any devices.
/// Synchronous. Throws Error if shapes or dtypes differ or the address ranges overlap; tensors with
/// interleaved elements are therefore rejected.
RUNG_API void copy(const ConstTensorRef& from, const TensorRef& to);

/// Sets every element to `value`, rounded to the dtype as store_from_double() does; any strides,
/// any device. Synchronous. Throws Error(invalid_argument) for a tensor whose elements overlap.
RUNG_API void fill(const TensorRef& to, double value);

/// Allocates a tensor of zeros.
RUNG_API Tensor zeros(DType dtype, const Extents& shape, Device device = {});

}  // namespace rung
