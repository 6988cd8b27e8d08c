// SPDX-License-Identifier: Apache-2.0
// D = epilogue(alpha op(A) op(B) + beta C) of matrices whose types are known by number: what all of
// cuBLAS's products of general matrices come down to.
#pragma once

#include "rung/emulate/cublas/call.hpp"

namespace rung::cublas {

/// The matrices of a batch: `stride` elements apart, or where an array of pointers says.
struct Batched {
  const void* first = nullptr;
  cudaDataType type = CUDA_R_32F;
  long long row = 1, column = 1;  // element (i, j) is at i * row + j * column
  long long stride = 0;
  bool by_pointers = false;

  template <class T>
  [[nodiscard]] T* matrix(long long batch) const {
    if (by_pointers) return static_cast<T* const*>(first)[batch];
    return static_cast<T*>(const_cast<void*>(first)) + batch * stride;
  }
};

/// alpha or beta, of some type.
struct AnyScalar {
  const void* given;
  cudaDataType type;
};

enum class Activation : unsigned char { none, relu, gelu, relu_gradient, gelu_gradient };

/// What cublasLt does to each element of the result.
struct Epilogue {
  Activation activation = Activation::none;
  const void* bias = nullptr;  // one element per row
  cudaDataType bias_type = CUDA_R_32F;
  long long bias_stride = 0;
  // GELU's argument, which is written or, for the gradient, read; the signs of ReLU's, a bit each.
  void* aux = nullptr;
  cudaDataType aux_type = CUDA_R_32F;
  long long aux_ld = 0, aux_stride = 0;
  // Factors of fp8 matrices, in the device's memory; null: 1.
  const float *scale_a = nullptr, *scale_b = nullptr, *scale_c = nullptr, *scale_d = nullptr;
};

struct Product {
  long long m, n, k, batches = 1;
  Batched a, b, c, d;
  bool conjugate_a = false, conjugate_b = false;
  AnyScalar alpha, beta;
  Epilogue epilogue = {};
};

/// Bytes of an element; 0: of a type that is not supported.
size_t size_of(cudaDataType type);
/// Of a scalar of the host.
bool is_zero(const AnyScalar& scalar);
/// The type of alpha and beta, and of sums where they are not narrower than float.
bool scale_type(cublasComputeType_t compute, cudaDataType type_c, cudaDataType& type);

/// Returns whether there is a product of these types.
bool supported(const Product& product, cudaDataType sums);
/// CUBLAS_STATUS_NOT_SUPPORTED where there is none. Operands and scalars are checked before.
cublasStatus_t multiply(const Call& call, const Product& product, cudaDataType sums);

}  // namespace rung::cublas
