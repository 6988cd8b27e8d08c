// SPDX-License-Identifier: Apache-2.0
// D = epilogue(alpha op(A) op(B) + beta C) with element types given at run time: the general form
// of cuBLAS's matrix products.
#pragma once

#include "rung/emulate/cublas/call.hpp"

namespace rung::cublas {

/// Matrices of a batch: at a constant stride (in elements), or given by an array of pointers.
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

/// Pointer to alpha or beta, of any type.
struct AnyScalar {
  const void* given;
  cudaDataType type;
};

enum class Activation : unsigned char { none, relu, gelu, relu_gradient, gelu_gradient };

/// cublasLt's element-wise epilogue.
struct Epilogue {
  Activation activation = Activation::none;
  const void* bias = nullptr;  // one element per row
  cudaDataType bias_type = CUDA_R_32F;
  long long bias_stride = 0;
  // Auxiliary matrix: the input of GELU, or the signs of ReLU as one bit per element. Written by
  // the forward pass and read by the gradient.
  void* aux = nullptr;
  cudaDataType aux_type = CUDA_R_32F;
  long long aux_ld = 0, aux_stride = 0;
  // Scales of fp8 matrices, in device memory; null: 1.
  const float *scale_a = nullptr, *scale_b = nullptr, *scale_c = nullptr, *scale_d = nullptr;
};

struct Product {
  long long m, n, k, batches = 1;
  Batched a, b, c, d;
  bool conjugate_a = false, conjugate_b = false;
  AnyScalar alpha, beta;
  Epilogue epilogue = {};
};

/// Returns the size of an element; 0 for an unsupported type.
size_t size_of(cudaDataType type);
/// Returns true if the scalar is a host value of zero.
bool is_zero(const AnyScalar& scalar);
/// Sets `type` to the type of alpha and beta, given the compute type and the type of C. Returns
/// false for unsupported compute types.
bool scale_type(cublasComputeType_t compute, cudaDataType type_c, cudaDataType& type);

/// Returns true if a product of these types is implemented.
bool supported(const Product& product, cudaDataType sums);
/// Runs a product. Returns CUBLAS_STATUS_NOT_SUPPORTED for unsupported types. The caller must have
/// validated operands and scalars.
cublasStatus_t multiply(const CublasCall& call, const Product& product, cudaDataType sums);

}  // namespace rung::cublas
