// SPDX-License-Identifier: Apache-2.0
// Kernel of all general matrix products. Each thread computes 8 x 8 sums, since accesses dominate
// the run time on the simulated GPU: 16 accesses per 64 multiplications.
#include "rung/emulate/cublas/product.hpp"

#include "rung/emulate/cublas/element.hpp"

namespace rung::cublas {
namespace {

constexpr int side = 8;        // block extent in threads
constexpr int per_thread = 8;  // rows and columns per thread, `side` apart
constexpr int tile = side * per_thread;

template <class Sum>
struct Factor {
  const void* device;
  cudaDataType type;
  Sum value;
  [[nodiscard]] Sum get() const {
    return device != nullptr ? cublas::get<Sum>(type, device, 0) : value;
  }
};
template <class Sum>
Factor<Sum> factor(const CublasCall& call, const AnyScalar& scalar) {
  if (call.device_scalars) return {scalar.given, scalar.type, Sum{}};
  return {nullptr, scalar.type, get<Sum>(scalar.type, scalar.given, 0)};
}

float scale(const float* factor) { return factor != nullptr ? *factor : 1.0f; }

float gelu_slope(float x, float& value) {
  constexpr float root = 0.7978845608f, cubic = 0.044715f;  // sqrt(2 / pi)
  const float t = tanhf(root * (x + cubic * x * x * x));
  value = 0.5f * x * (1 + t);
  return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * root * (1 + 3 * cubic * x * x);
}

/// Applies the epilogue to `sum` = alpha op(A) op(B) + beta C at row i and column j.
float finish(const Epilogue& e, float sum, long long i, long long j, long long batch) {
  if (e.bias != nullptr) sum += get<float>(e.bias_type, e.bias, i + batch * e.bias_stride);
  const long long at = i + j * e.aux_ld + batch * e.aux_stride;
  float value = sum;
  switch (e.activation) {
    case Activation::none:
      break;
    case Activation::relu:
      value = sum > 0 ? sum : 0;
      break;
    case Activation::gelu:
      if (e.aux != nullptr) put(e.aux_type, e.aux, at, sum);
      gelu_slope(sum, value);
      break;
    case Activation::relu_gradient:
      value = (static_cast<const unsigned char*>(e.aux)[at / 8] >> at % 8 & 1) != 0 ? sum : 0;
      break;
    case Activation::gelu_gradient: {
      float unused;
      value = sum * gelu_slope(get<float>(e.aux_type, e.aux, at), unused);
      break;
    }
  }
  return value * scale(e.scale_d);
}

/// Accumulates the thread's rows i, i + side, ... and columns j, j + side, ... `full`: without
/// bounds checks.
template <bool full, class Sum, class A, class B>
void accumulate(const Product& p, const A* a, const B* b, int rows, int columns,
                Sum (&sums)[per_thread][per_thread]) {
  const int m = full ? per_thread : rows, n = full ? per_thread : columns;
  for (long long l = 0; l < p.k; ++l, a += p.a.column, b += p.b.row) {
    Sum left[per_thread];
    for (int r = 0; r < m; ++r) {
      left[r] = conjugate_if(p.conjugate_a, convert<Sum>(a[r * side * p.a.row]));
    }
    for (int c = 0; c < n; ++c) {
      const Sum right = conjugate_if(p.conjugate_b, convert<Sum>(b[c * side * p.b.column]));
      for (int r = 0; r < m; ++r) sums[r][c] = sums[r][c] + left[r] * right;
    }
  }
}

int count_of(long long first, long long n) {
  const long long left = n - first;
  return left <= 0 ? 0
                   : static_cast<int>(left > tile - side ? per_thread : (left + side - 1) / side);
}

template <class Sum, class A, class B>
void multiply_tile(const Product& p, const Factor<Sum>& alpha, const Factor<Sum>& beta) {
  const long long tiles = (p.m + tile - 1) / tile;
  const long long i = static_cast<long long>(blockIdx.x) % tiles * tile + threadIdx.x;
  const long long j = static_cast<long long>(blockIdx.x) / tiles * tile + threadIdx.y;
  const int rows = count_of(i, p.m), columns = count_of(j, p.n);
  if (rows == 0 || columns == 0) return;
  Sum of_product = alpha.get();
  const Sum of_c = beta.get();
  const bool has_product = !Scalar<Sum>::is_zero(of_product);
  const bool has_c = !Scalar<Sum>::is_zero(of_c);
  Sum scale_c = of_c;
  if constexpr (std::is_same_v<Sum, float>) {
    of_product *= scale(p.epilogue.scale_a) * scale(p.epilogue.scale_b);
    scale_c *= scale(p.epilogue.scale_c);
  }
  for (long long batch = blockIdx.z; batch < p.batches; batch += gridDim.z) {
    Sum sums[per_thread][per_thread] = {};
    if (has_product && p.k > 0) {
      const A* const a = p.a.matrix<A>(batch) + i * p.a.row;
      const B* const b = p.b.matrix<B>(batch) + j * p.b.column;
      if (rows == per_thread && columns == per_thread) {
        accumulate<true>(p, a, b, rows, columns, sums);
      } else {
        accumulate<false>(p, a, b, rows, columns, sums);
      }
    }
    // Pointers have one static type, while the element type is a run-time value.
    const auto base = [&](const Batched& of) {
      return with_type<Sum>(of.type, of.first, [&](auto* first) -> void* {
        return of.matrix<std::remove_cvref_t<decltype(*first)>>(batch);
      });
    };
    void* const c = has_c ? base(p.c) : nullptr;
    void* const d = base(p.d);
    for (int r = 0; r < rows; ++r) {
      for (int col = 0; col < columns; ++col) {
        const long long x = i + r * side, y = j + col * side;
        Sum sum = of_product * sums[r][col];
        if (has_c) sum = sum + scale_c * get<Sum>(p.c.type, c, x * p.c.row + y * p.c.column);
        if constexpr (std::is_same_v<Sum, float>) sum = finish(p.epilogue, sum, x, y, batch);
        put(p.d.type, d, x * p.d.row + y * p.d.column, sum);
      }
    }
  }
}

template <class Sum, class A, class B = A>
cublasStatus_t run(const CublasCall& call, const Product& p) {
  const long long tiles = (static_cast<long long>(p.m) + tile - 1) / tile;
  const long long columns = (static_cast<long long>(p.n) + tile - 1) / tile;
  const dim3 grid(static_cast<unsigned>(tiles * columns), 1,
                  static_cast<unsigned>(p.batches < 65535 ? p.batches : 65535));
  const Factor<Sum> alpha = factor<Sum>(call, p.alpha), beta = factor<Sum>(call, p.beta);
  return launch(call, grid, dim3(side, side), [=] { multiply_tile<Sum, A, B>(p, alpha, beta); });
}

cublasStatus_t run_floats(const CublasCall& call, const Product& p) {
  switch (p.a.type) {
    case CUDA_R_16F:
      return run<float, __half>(call, p);
    case CUDA_R_16BF:
      return run<float, __nv_bfloat16>(call, p);
    case CUDA_R_8I:
      return run<float, signed char>(call, p);
    case CUDA_R_8F_E4M3:
      if (p.b.type == CUDA_R_8F_E4M3) return run<float, __nv_fp8_e4m3>(call, p);
      return run<float, __nv_fp8_e4m3, __nv_fp8_e5m2>(call, p);
    case CUDA_R_8F_E5M2:
      return run<float, __nv_fp8_e5m2, __nv_fp8_e4m3>(call, p);
    default:
      return run<float, float>(call, p);
  }
}

bool is_fp8(cudaDataType type) { return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2; }

}  // namespace

size_t size_of(cudaDataType type) {
  switch (type) {
    case CUDA_R_8I:
    case CUDA_R_8F_E4M3:
    case CUDA_R_8F_E5M2:
      return 1;
    case CUDA_R_16F:
    case CUDA_R_16BF:
      return 2;
    case CUDA_R_32F:
    case CUDA_R_32I:
      return 4;
    case CUDA_R_64F:
    case CUDA_C_32F:
      return 8;
    case CUDA_C_64F:
      return 16;
    default:
      return 0;
  }
}

bool is_zero(const AnyScalar& scalar) {
  const auto* const bytes = static_cast<const unsigned char*>(scalar.given);
  for (size_t i = 0; i < size_of(scalar.type); ++i) {
    if (bytes[i] != 0) return false;
  }
  return true;
}

bool scale_type(cublasComputeType_t compute, cudaDataType type_c, cudaDataType& type) {
  switch (compute) {
    case CUBLAS_COMPUTE_16F:
    case CUBLAS_COMPUTE_16F_PEDANTIC:
      type = CUDA_R_16F;
      return true;
    case CUBLAS_COMPUTE_32I:
    case CUBLAS_COMPUTE_32I_PEDANTIC:
      type = CUDA_R_32I;
      return true;
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC:
    case CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT:
      type = type_c == CUDA_C_64F ? CUDA_C_64F : CUDA_R_64F;
      return true;
    case CUBLAS_COMPUTE_32F:
    case CUBLAS_COMPUTE_32F_PEDANTIC:
    case CUBLAS_COMPUTE_32F_FAST_16F:
    case CUBLAS_COMPUTE_32F_FAST_16BF:
    case CUBLAS_COMPUTE_32F_FAST_TF32:
    case CUBLAS_COMPUTE_32F_EMULATED_16BFX9:
      type = type_c == CUDA_C_32F ? CUDA_C_32F : CUDA_R_32F;
      return true;
  }
  return false;
}

bool supported(const Product& p, cudaDataType sums) {
  const cudaDataType a = p.a.type, c = p.c.type, d = p.d.type;
  if (a != p.b.type && !(is_fp8(a) && is_fp8(p.b.type))) return false;
  switch (sums) {
    case CUDA_R_16F:
      return a == CUDA_R_16F && c == CUDA_R_16F && d == CUDA_R_16F;
    case CUDA_R_32I:
      return a == CUDA_R_8I && c == CUDA_R_32I && d == CUDA_R_32I;
    case CUDA_R_32F:
      if (a == CUDA_R_32F) return c == CUDA_R_32F && d == CUDA_R_32F;
      if (a == CUDA_R_8I) return c == d && (c == CUDA_R_32F || c == CUDA_R_8I);
      if (is_fp8(a)) {
        const bool fp8_result = is_fp8(d) && (c == CUDA_R_16F || c == CUDA_R_16BF);
        const bool both = a == CUDA_R_8F_E5M2 && p.b.type == CUDA_R_8F_E5M2;  // as on an H200
        return !both && (fp8_result || (c == d && !is_fp8(c) && c != CUDA_R_8I));
      }
      return (a == CUDA_R_16F || a == CUDA_R_16BF) && c == d && (c == a || c == CUDA_R_32F);
    case CUDA_R_64F:
    case CUDA_C_32F:
    case CUDA_C_64F:
      return a == sums && c == sums && d == sums;
    default:
      return false;
  }
}

cublasStatus_t multiply(const CublasCall& call, const Product& p, cudaDataType sums) {
  if (!supported(p, sums)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (p.m == 0 || p.n == 0 || p.batches == 0) return CUBLAS_STATUS_SUCCESS;
  switch (sums) {
    case CUDA_R_64F:
      return run<double, double>(call, p);
    case CUDA_C_32F:
      return run<float2, float2>(call, p);
    case CUDA_C_64F:
      return run<double2, double2>(call, p);
    case CUDA_R_32I:
      return run<int, signed char>(call, p);
    default:
      return run_floats(call, p);
  }
}

}  // namespace rung::cublas
