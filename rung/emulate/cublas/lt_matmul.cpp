// SPDX-License-Identifier: Apache-2.0
// cublasLtMatmul: the product with its epilogue, and reductions over the result.
#include "cublasLt.h"
#include "rung/emulate/cublas/element.hpp"
#include "rung/emulate/cublas/product.hpp"

namespace rung::cublas {
namespace {

using Layout = cublasLtMatrixLayoutOpaque_t;
using Operation = cublasLtMatmulDescOpaque_t;
struct Layouts {
  const Layout &a, &b, &c, &d;
};

/// Bits of the number that denotes a cublasLt epilogue.
constexpr unsigned relu = 2, bias = 4, relu_gradient = 8, bias_gradient = 16, gelu = 32,
                   gelu_gradient = 64, aux = 128, sum_of_a = 256, sum_of_b = 512;

Batched batched(const Layout& layout, const void* data, int op) {
  Batched all;
  all.first = data;
  all.type = static_cast<cudaDataType>(layout.type);
  const bool by_rows = layout.order == CUBLASLT_ORDER_ROW;
  all.row = by_rows == (op == CUBLAS_OP_N) ? layout.ld : 1;
  all.column = by_rows == (op == CUBLAS_OP_N) ? 1 : layout.ld;
  all.stride = layout.batches > 1 ? layout.stride : 0;
  return all;
}

bool is_sound(const Layout& layout) {
  const auto along =
      static_cast<int64_t>(layout.order == CUBLASLT_ORDER_ROW ? layout.columns : layout.rows);
  return layout.ld >= along && layout.batches >= 1;
}

/// Sets all of `product` except pointers, and the type of the sums. Returns an error for
/// unsupported types.
cublasStatus_t describe(const Operation& operation, const Layouts& of, Product& product,
                        cudaDataType& sums) {
  const auto rows = [](const Layout& one, int op) {
    return op == CUBLAS_OP_N ? one.rows : one.columns;
  };
  const auto columns = [](const Layout& one, int op) {
    return op == CUBLAS_OP_N ? one.columns : one.rows;
  };
  const uint64_t m = rows(of.a, operation.op_a), k = columns(of.a, operation.op_a);
  const uint64_t n = columns(of.b, operation.op_b);
  if (k != rows(of.b, operation.op_b) || of.d.rows != m || of.d.columns != n || of.c.rows != m ||
      of.c.columns != n) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  for (const Layout* one : {&of.a, &of.b, &of.c, &of.d}) {
    if (!is_sound(*one) || one->batches != of.d.batches) return CUBLAS_STATUS_INVALID_VALUE;
    if (one->order != CUBLASLT_ORDER_COL && one->order != CUBLASLT_ORDER_ROW) {
      return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    if (size_of(static_cast<cudaDataType>(one->type)) == 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  for (const int mode : operation.scale_modes) {
    if (mode != CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (operation.pointer_mode > CUBLASLT_POINTER_MODE_DEVICE || operation.op_c != CUBLAS_OP_N ||
      m > INT32_MAX || n > INT32_MAX || k > INT32_MAX) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  product.m = static_cast<int>(m);
  product.n = static_cast<int>(n);
  product.k = static_cast<int>(k);
  product.batches = of.d.batches;
  product.a = batched(of.a, nullptr, operation.op_a);
  product.b = batched(of.b, nullptr, operation.op_b);
  product.c = batched(of.c, nullptr, CUBLAS_OP_N);
  product.d = batched(of.d, nullptr, CUBLAS_OP_N);
  product.conjugate_a = operation.op_a == CUBLAS_OP_C;
  product.conjugate_b = operation.op_b == CUBLAS_OP_C;
  const auto compute = static_cast<cublasComputeType_t>(operation.compute);
  if (!scale_type(compute, product.d.type, sums)) return CUBLAS_STATUS_INVALID_VALUE;
  // int8 products with int32 sums and float scalars are computed as products of floats.
  const auto scale = static_cast<cudaDataType>(operation.scale);
  if (sums == CUDA_R_32I && scale == CUDA_R_32F) sums = CUDA_R_32F;
  if (scale != sums && !(sums == CUDA_R_16F && scale == CUDA_R_32F)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  product.alpha.type = product.beta.type = scale;
  const bool plain = operation.epilogue == CUBLASLT_EPILOGUE_DEFAULT;
  if (!supported(product, sums) || (!plain && sums != CUDA_R_32F && sums != CUDA_R_16F)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  return CUBLAS_STATUS_SUCCESS;
}

/// Returns the element-wise part of the operation's epilogue; follow() computes the rest.
Epilogue epilogue_of(const Operation& operation, const Product& product) {
  const auto or_else = [](int type, cudaDataType otherwise) {
    return type < 0 ? otherwise : static_cast<cudaDataType>(type);
  };
  const unsigned is = operation.epilogue;
  const bool fp8 = size_of(product.d.type) == 1;
  Epilogue e;
  e.activation = (is & relu) != 0            ? Activation::relu
                 : (is & gelu) != 0          ? Activation::gelu
                 : (is & relu_gradient) != 0 ? Activation::relu_gradient
                 : (is & gelu_gradient) != 0 ? Activation::gelu_gradient
                                             : Activation::none;
  if ((is & bias) != 0) e.bias = operation.bias;
  e.bias_type = or_else(operation.bias_type, fp8 ? product.c.type : product.d.type);
  e.bias_stride = operation.bias_stride;
  if ((is & aux) != 0) e.aux = operation.aux;
  e.aux_type = or_else(operation.aux_type, fp8 ? product.c.type : product.d.type);
  e.aux_ld = operation.aux_ld;
  e.aux_stride = operation.aux_stride;
  e.scale_a = static_cast<const float*>(operation.scale_a);
  e.scale_b = static_cast<const float*>(operation.scale_b);
  e.scale_c = static_cast<const float*>(operation.scale_c);
  e.scale_d = static_cast<const float*>(operation.scale_d);
  return e;
}

Operand operand(const char* name, const Layout& layout, const void* data, bool used,
                bool writes = false) {
  const bool by_rows = layout.order == CUBLASLT_ORDER_ROW;
  const auto rows = static_cast<long long>(layout.rows);
  const auto columns = static_cast<long long>(layout.columns);
  const long long one =
      matrix_extent(by_rows ? columns : rows, by_rows ? rows : columns, layout.ld);
  const long long elements = one == 0 ? 0 : one + (layout.batches - 1) * layout.stride;
  const auto size = static_cast<long long>(size_of(static_cast<cudaDataType>(layout.type)));
  return {name, data, used ? elements * size : 0, writes};
}

bool accessible_epilogue(const CublasCall& call, const Operation& operation, const Product& p) {
  const Epilogue& e = p.epilogue;
  const unsigned is = operation.epilogue;
  const bool has_bias = (is & (bias | bias_gradient | sum_of_a | sum_of_b)) != 0;
  const long long biases = (is & sum_of_b) != 0 ? p.n : p.m;
  const auto size = [](cudaDataType type) { return static_cast<long long>(size_of(type)); };
  long long aux_bytes = (is & aux) == 0 ? 0 : matrix_extent(p.m, p.n, e.aux_ld);
  if (aux_bytes != 0) aux_bytes += (p.batches - 1) * e.aux_stride;
  const bool bits = (is & (relu | relu_gradient)) != 0;
  aux_bytes = bits ? (aux_bytes + 7) / 8 : aux_bytes * size(e.aux_type);
  const bool writes_aux = (is & (relu | gelu)) != 0;
  return accessible(call,
                    {{"the bias", operation.bias,
                      has_bias ? (biases + (p.batches - 1) * e.bias_stride) * size(e.bias_type) : 0,
                      (is & bias) == 0},
                     {"the auxiliary matrix", operation.aux, aux_bytes, writes_aux}});
}

template <class At>
float sum_of(int count, const At& at) {
  float sum = 0;
  for (long long l = 0; l < count; ++l) sum += at(l);
  return sum;
}
float element(const Batched& of, long long batch, long long i, long long j) {
  const long long at = batch * of.stride + i * of.row + j * of.column;
  return get<float>(of.type, of.first, at);
}

/// Computes the parts of the epilogue that follow the product: sums over the result's columns or
/// over the inner index of A or B, signs of ReLU, and the maximum.
cublasStatus_t follow(const CublasCall& call, const Operation& operation, const Product& p) {
  const Epilogue& e = p.epilogue;
  const unsigned is = operation.epilogue;
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  void* const sums = operation.bias;
  if ((is & (bias_gradient | sum_of_a | sum_of_b)) != 0) {
    const int n = (is & sum_of_b) != 0 ? p.n : p.m;
    status = for_each(call, n, p.batches, [=](long long i, long long batch) {
      float sum;
      if ((is & sum_of_a) != 0) {
        sum = sum_of(p.k, [&](long long l) { return element(p.a, batch, i, l); });
      } else if ((is & sum_of_b) != 0) {
        sum = sum_of(p.k, [&](long long l) { return element(p.b, batch, l, i); });
      } else {
        sum = sum_of(p.n, [&](long long j) { return element(p.d, batch, i, j); });
      }
      put(e.bias_type, sums, i + batch * e.bias_stride, sum);
    });
  }
  if (status == CUBLAS_STATUS_SUCCESS && (is & relu) != 0 && e.aux != nullptr) {
    // ReLU's signs: one bit per row, for each column of the result.
    const int bytes = (p.m + 7) / 8;
    status = for_each(call, bytes, p.n * p.batches, [=](long long byte, long long column) {
      const long long j = column % p.n, batch = column / p.n;
      unsigned signs = 0;
      for (int bit = 0; bit < 8 && 8 * byte + bit < p.m; ++bit) {
        if (element(p.d, batch, 8 * byte + bit, j) > 0) signs |= 1u << bit;
      }
      const long long first = (j * e.aux_ld + batch * e.aux_stride) / 8;
      static_cast<unsigned char*>(e.aux)[first + byte] = static_cast<unsigned char>(signs);
    });
  }
  if (status == CUBLAS_STATUS_SUCCESS && operation.amax_d != nullptr) {
    status = launch(call, dim3(1), dim3(32), [=, to = static_cast<float*>(operation.amax_d)] {
      const long long column = static_cast<long long>(p.n) * p.batches;
      float largest = 0;
      for (long long i = threadIdx.x; i < p.m * column; i += 32) {
        const long long j = i / p.m;
        largest = fmaxf(largest, fabsf(element(p.d, j / p.n, i % p.m, j % p.n)));
      }
      for (int lanes = 16; lanes > 0; lanes /= 2) {
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, lanes));
      }
      if (threadIdx.x == 0) *to = e.scale_d != nullptr ? largest / *e.scale_d : largest;
    });
  }
  return status;
}

}  // namespace
}  // namespace rung::cublas

using namespace rung::cublas;  // NOLINT: implementation of cuBLAS

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                              const void* alpha, const void* a, cublasLtMatrixLayout_t layout_a,
                              const void* b, cublasLtMatrixLayout_t layout_b, const void* beta,
                              const void* c, cublasLtMatrixLayout_t layout_c, void* d,
                              cublasLtMatrixLayout_t layout_d, const cublasLtMatmulAlgo_t*, void*,
                              size_t, cudaStream_t stream) {
  CublasCall call = RUNG_CUBLAS_CALL("cublasLtMatmul", nullptr);
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (operation == nullptr || layout_a == nullptr || layout_b == nullptr || layout_d == nullptr ||
      alpha == nullptr || beta == nullptr) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (layout_c == nullptr) layout_c = layout_d;
  call.stream = stream;
  call.device_scalars = operation->pointer_mode == CUBLASLT_POINTER_MODE_DEVICE;
  const Layouts of{*layout_a, *layout_b, *layout_c, *layout_d};
  Product product{};
  cudaDataType sums;
  const cublasStatus_t status = describe(*operation, of, product, sums);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  product.alpha.given = alpha;
  product.beta.given = beta;
  product.a.first = a;
  product.b.first = b;
  product.c.first = c;
  product.d.first = d;
  product.epilogue = epilogue_of(*operation, product);
  const bool wants_aux = (operation->epilogue & aux) != 0;
  if (wants_aux && (operation->aux == nullptr || operation->aux_ld < product.m)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const auto scalar_bytes = static_cast<long long>(size_of(product.alpha.type));
  if (!fits_pointer_mode(call, "alpha", alpha, scalar_bytes) ||
      !fits_pointer_mode(call, "beta", beta, scalar_bytes)) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  const bool reads_c = call.device_scalars || !is_zero(product.beta);
  if (!accessible(call, {operand("A", of.a, a, true), operand("B", of.b, b, true),
                         operand("C", of.c, c, reads_c), operand("D", of.d, d, true, true)}) ||
      !accessible_epilogue(call, *operation, product)) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  const cublasStatus_t done = multiply(call, product, sums);
  return done != CUBLAS_STATUS_SUCCESS ? done : follow(call, *operation, product);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t layout_a,
    cublasLtMatrixLayout_t layout_b, cublasLtMatrixLayout_t layout_c,
    cublasLtMatrixLayout_t layout_d, cublasLtMatmulPreference_t, int wanted,
    cublasLtMatmulHeuristicResult_t results[], int* found) {
  if (found != nullptr) *found = 0;
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (operation == nullptr || layout_a == nullptr || layout_b == nullptr || layout_c == nullptr ||
      layout_d == nullptr || wanted <= 0 || results == nullptr || found == nullptr) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  Product product{};
  cudaDataType sums;
  const cublasStatus_t status =
      describe(*operation, {*layout_a, *layout_b, *layout_c, *layout_d}, product, sums);
  if (status != CUBLAS_STATUS_SUCCESS) return CUBLAS_STATUS_NOT_SUPPORTED;
  results[0] = {};
  results[0].state = CUBLAS_STATUS_SUCCESS;
  results[0].wavesCount = 1;
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}
