// SPDX-License-Identifier: Apache-2.0
// cuBLAS level 1: reductions over vectors, one warp each.
#include "rung/emulate/cublas/call.hpp"

namespace rung::cublas {
namespace {

constexpr unsigned all_lanes = 0xffffffffu;

float from_lane(float value, int lanes) { return __shfl_xor_sync(all_lanes, value, lanes); }
double from_lane(double value, int lanes) { return __shfl_xor_sync(all_lanes, value, lanes); }
int from_lane(int value, int lanes) { return __shfl_xor_sync(all_lanes, value, lanes); }
int64_t from_lane(int64_t value, int lanes) { return __shfl_xor_sync(all_lanes, value, lanes); }
float2 from_lane(float2 v, int lanes) { return {from_lane(v.x, lanes), from_lane(v.y, lanes)}; }
double2 from_lane(double2 v, int lanes) { return {from_lane(v.x, lanes), from_lane(v.y, lanes)}; }

template <class T, class Combine>
T over_warp(T value, Combine combine) {
  for (int lanes = 16; lanes > 0; lanes /= 2) value = combine(value, from_lane(value, lanes));
  return value;
}
constexpr auto sum = [](auto a, auto b) { return a + b; };
constexpr auto maximum = [](auto a, auto b) { return a < b ? b : a; };

template <class T>
T magnitude(T value) {
  return value < 0 ? -value : value;
}
float magnitude(float2 value) { return magnitude(value.x) + magnitude(value.y); }
double magnitude(double2 value) { return magnitude(value.x) + magnitude(value.y); }

// Excluded from recording: a host variable is not memory that kernels may access.
template <class T>
RUNG_UNSEEN __attribute__((noinline)) void write_to_host(T* to, T value) {
  *to = value;
}

/// Runs `find` in one warp. All lanes must return the same result.
template <class T, class Result, class Find>
cublasStatus_t reduce(const CublasCall& call, long long n, std::initializer_list<Operand> operands,
                      Result* result, const Find& find) {
  if (!call.has_handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (result == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (!fits_pointer_mode(call, "the result", result, sizeof(Result)) ||
      !accessible(call, operands)) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  if (n <= 0 && !call.device_scalars) {
    *result = Result{};
    return CUBLAS_STATUS_SUCCESS;
  }
  const bool on_device = call.device_scalars;
  const cublasStatus_t status = launch(call, dim3(1), dim3(32), [=] {
    const Result value = n > 0 ? find() : Result{};
    if (threadIdx.x != 0) return;
    if (on_device) {
      *result = value;
    } else {
      write_to_host(result, value);
    }
  });
  if (on_device || status != CUBLAS_STATUS_SUCCESS) return status;
  const bool done = cudaStreamSynchronize(call.stream) == cudaSuccess;
  return done ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

template <class T>
cublasStatus_t dot(const CublasCall& call, long long n, const T* x, long long incx, const T* y,
                   long long incy, T* result, bool conjugate = false) {
  const Vector<const T> first(x, n, incx), second(y, n, incy);
  return reduce<T>(call, n, {vector_operand("x", x, n, incx), vector_operand("y", y, n, incy)},
                   result, [=] {
                     T mine{};
                     for (long long i = threadIdx.x; i < n; i += 32) {
                       mine = mine + conjugate_if(conjugate, first[i]) * second[i];
                     }
                     return over_warp(mine, sum);
                   });
}

/// Computes the norm of the vector scaled by its largest element, so that no square overflows.
template <class T, class Real>
cublasStatus_t nrm2(const CublasCall& call, long long n, const T* x, long long incx, Real* result) {
  if (incx <= 0) n = 0;
  const Vector<const T> of(x, n, incx);
  return reduce<T>(call, n, {vector_operand("x", x, n, incx)}, result, [=] {
    Real mine = 0;
    for (long long i = threadIdx.x; i < n; i += 32) mine = maximum(mine, magnitude(of[i]));
    const Real largest = over_warp(mine, maximum);
    if (!(largest > 0) || largest - largest != 0) return largest;
    mine = 0;
    for (long long i = threadIdx.x; i < n; i += 32) {
      const T value = of[i];
      if constexpr (requires { value.y; }) {
        const Real a = value.x / largest, b = value.y / largest;
        mine += a * a + b * b;
      } else {
        mine += value / largest * (value / largest);
      }
    }
    return largest * static_cast<Real>(sqrt(over_warp(mine, sum)));
  });
}

template <class T, class Real>
cublasStatus_t asum(const CublasCall& call, long long n, const T* x, long long incx, Real* result) {
  if (incx <= 0) n = 0;
  const Vector<const T> of(x, n, incx);
  return reduce<T>(call, n, {vector_operand("x", x, n, incx)}, result, [=] {
    Real mine = 0;
    for (long long i = threadIdx.x; i < n; i += 32) mine += magnitude(of[i]);
    return over_warp(mine, sum);
  });
}

/// Returns the 1-based index of the first element with the largest or smallest magnitude.
template <class T, class Index>
cublasStatus_t extreme(const CublasCall& call, long long n, const T* x, long long incx,
                       Index* result, bool largest) {
  if (incx <= 0) n = 0;
  const Vector<const T> of(x, n, incx);
  return reduce<T>(call, n, {vector_operand("x", x, n, incx)}, result, [=] {
    const auto better = [=](auto a, long long i, auto b, long long j) {
      return (largest ? a > b : a < b) || (a == b && i < j);
    };
    auto best = magnitude(of[0]);
    Index index = 0;
    for (long long i = threadIdx.x; i < n; i += 32) {
      const auto value = magnitude(of[i]);
      if (!better(value, i, best, index)) continue;
      best = value;
      index = static_cast<Index>(i);
    }
    for (int lanes = 16; lanes > 0; lanes /= 2) {
      const auto other = from_lane(best, lanes);
      const Index other_index = from_lane(index, lanes);
      if (!better(other, other_index, best, index)) continue;
      best = other;
      index = other_index;
    }
    return index + 1;
  });
}

}  // namespace
}  // namespace rung::cublas

namespace blas = rung::cublas;

#define RUNG_CUBLAS_SUMS_OF(L, l, T, R, Int, bits)                                                \
  cublasStatus_t cublas##L##nrm2##bits(cublasHandle_t handle, Int n, const T* x, Int incx,        \
                                       R* result) {                                               \
    return blas::nrm2(RUNG_CUBLAS_CALL("cublas" #L "nrm2" #bits, handle), n, x, incx, result);    \
  }                                                                                               \
  cublasStatus_t cublas##L##asum##bits(cublasHandle_t handle, Int n, const T* x, Int incx,        \
                                       R* result) {                                               \
    return blas::asum(RUNG_CUBLAS_CALL("cublas" #L "asum" #bits, handle), n, x, incx, result);    \
  }                                                                                               \
  cublasStatus_t cublasI##l##amax##bits(cublasHandle_t handle, Int n, const T* x, Int incx,       \
                                        Int* result) {                                            \
    return blas::extreme(RUNG_CUBLAS_CALL("cublasI" #l "amax" #bits, handle), n, x, incx, result, \
                         true);                                                                   \
  }                                                                                               \
  cublasStatus_t cublasI##l##amin##bits(cublasHandle_t handle, Int n, const T* x, Int incx,       \
                                        Int* result) {                                            \
    return blas::extreme(RUNG_CUBLAS_CALL("cublasI" #l "amin" #bits, handle), n, x, incx, result, \
                         false);                                                                  \
  }
RUNG_CUBLAS_NORMS(RUNG_CUBLAS_SUMS_OF)

#define RUNG_CUBLAS_DOT_OF(name, Int, T, conjugate)                                             \
  cublasStatus_t name(cublasHandle_t handle, Int n, const T* x, Int incx, const T* y, Int incy, \
                      T* result) {                                                              \
    return blas::dot(RUNG_CUBLAS_CALL(#name, handle), n, x, incx, y, incy, result, conjugate);  \
  }
RUNG_CUBLAS_BOTH(RUNG_CUBLAS_DOT_OF, cublasSdot, float, false)
RUNG_CUBLAS_BOTH(RUNG_CUBLAS_DOT_OF, cublasDdot, double, false)
RUNG_CUBLAS_BOTH(RUNG_CUBLAS_DOT_OF, cublasCdotu, cuComplex, false)
RUNG_CUBLAS_BOTH(RUNG_CUBLAS_DOT_OF, cublasCdotc, cuComplex, true)
RUNG_CUBLAS_BOTH(RUNG_CUBLAS_DOT_OF, cublasZdotu, cuDoubleComplex, false)
RUNG_CUBLAS_BOTH(RUNG_CUBLAS_DOT_OF, cublasZdotc, cuDoubleComplex, true)
