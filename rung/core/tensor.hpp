// SPDX-License-Identifier: Apache-2.0
// Tensor: a TensorRef that owns its memory; and copies between tensors.
#pragma once

#include <memory>

#include "rung/core/dtype.hpp"
#include "rung/core/export.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung {

/// Owning tensor, C-contiguous when allocated; 64-byte aligned (256 on a GPU). Movable.
class RUNG_API Tensor {
 public:
  Tensor() = default;
  /// Uninitialised memory on `device`. Throws Error(out_of_memory, not_available).
  Tensor(DType dtype, const Extents& shape, Device device = {});
  /// Adopts memory that somebody else made; `owner` keeps it alive. Throws Error(invalid_argument)
  /// for a reference whose fields contradict each other, or one without the data its shape needs.
  Tensor(const TensorRef& ref, std::shared_ptr<void> owner);

  [[nodiscard]] TensorRef ref() const { return ref_; }
  operator TensorRef() const { return ref_; }       // NOLINT(google-explicit-constructor)
  operator ConstTensorRef() const { return ref_; }  // NOLINT(google-explicit-constructor)
  [[nodiscard]] const Extents& shape() const { return ref_.shape; }
  [[nodiscard]] DType dtype() const { return ref_.dtype; }
  template <class T>
  [[nodiscard]] T* data() const {
    return static_cast<T*>(ref_.data);
  }

 private:
  TensorRef ref_;
  std::shared_ptr<void> owner_;
};

/// Copies elements between tensors of one shape and dtype, any strides, any devices. Synchronous.
/// Throws Error when shapes or dtypes differ or the two overlap: by address ranges, so that tensors
/// whose elements interleave are refused.
RUNG_API void copy(const ConstTensorRef& from, const TensorRef& to);

}  // namespace rung
