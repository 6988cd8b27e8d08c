// SPDX-License-Identifier: Apache-2.0
// cuBLAS level 1: element-wise operations on vectors.
#include "rung/emulate/cublas/call.hpp"

namespace rung::cublas {
namespace {

template <class T>
cublasStatus_t axpy(const CublasCall& call, long long n, const T* alpha, const T* x, long long incx,
                    T* y, long long incy) {
  if (!call.has_handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (alpha == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  if (!fits_pointer_mode(call, "alpha", alpha, sizeof(T)) ||
      !accessible(call, {vector_operand("x", x, n, incx), vector_operand("y", y, n, incy, true)})) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  const Vector<const T> from(x, n, incx);
  const Vector<T> to(y, n, incy);
  return for_each(call, n, [a = scalar(call, alpha), from, to](long long i) {
    to[i] = a.get() * from[i] + to[i];
  });
}

template <class Factor, class T>
cublasStatus_t scal(const CublasCall& call, long long n, const Factor* alpha, T* x,
                    long long incx) {
  if (!call.has_handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (alpha == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (n <= 0 || incx <= 0) return CUBLAS_STATUS_SUCCESS;
  if (!fits_pointer_mode(call, "alpha", alpha, sizeof(Factor)) ||
      !accessible(call, {vector_operand("x", x, n, incx, true)})) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  const Vector<T> to(x, n, incx);
  return for_each(call, n, [a = scalar(call, alpha), to](long long i) {
    if constexpr (std::is_same_v<Factor, T>) {
      to[i] = a.get() * to[i];
    } else {
      const Factor factor = a.get();
      const T value = to[i];
      to[i] = T{factor * value.x, factor * value.y};
    }
  });
}

template <class T>
cublasStatus_t copy(const CublasCall& call, long long n, const T* x, long long incx, T* y,
                    long long incy) {
  if (!call.has_handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  if (!accessible(call, {vector_operand("x", x, n, incx), vector_operand("y", y, n, incy, true)})) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  const Vector<const T> from(x, n, incx);
  const Vector<T> to(y, n, incy);
  return for_each(call, n, [from, to](long long i) { to[i] = from[i]; });
}

template <class T>
cublasStatus_t swap(const CublasCall& call, long long n, T* x, long long incx, T* y,
                    long long incy) {
  if (!call.has_handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  if (!accessible(call,
                  {vector_operand("x", x, n, incx, true), vector_operand("y", y, n, incy, true)})) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  const Vector<T> first(x, n, incx), second(y, n, incy);
  return for_each(call, n, [first, second](long long i) {
    const T former = first[i];
    first[i] = second[i];
    second[i] = former;
  });
}

template <class T>
cublasStatus_t rot(const CublasCall& call, long long n, T* x, long long incx, T* y, long long incy,
                   const T* c, const T* s) {
  if (!call.has_handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (c == nullptr || s == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  if (!fits_pointer_mode(call, "c", c, sizeof(T)) || !fits_pointer_mode(call, "s", s, sizeof(T)) ||
      !accessible(call,
                  {vector_operand("x", x, n, incx, true), vector_operand("y", y, n, incy, true)})) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  const Vector<T> first(x, n, incx), second(y, n, incy);
  return for_each(call, n,
                  [cosine = scalar(call, c), sine = scalar(call, s), first, second](long long i) {
                    const T a = first[i], b = second[i];
                    first[i] = cosine.get() * a + sine.get() * b;
                    second[i] = cosine.get() * b - sine.get() * a;
                  });
}

}  // namespace
}  // namespace rung::cublas

namespace blas = rung::cublas;

#define RUNG_CUBLAS_VECTORS_OF(L, T, Int, bits)                                                  \
  cublasStatus_t cublas##L##axpy##bits(cublasHandle_t handle, Int n, const T* alpha, const T* x, \
                                       Int incx, T* y, Int incy) {                               \
    return blas::axpy(RUNG_CUBLAS_CALL("cublas" #L "axpy" #bits, handle), n, alpha, x, incx, y,  \
                      incy);                                                                     \
  }                                                                                              \
  cublasStatus_t cublas##L##scal##bits(cublasHandle_t handle, Int n, const T* alpha, T* x,       \
                                       Int incx) {                                               \
    return blas::scal(RUNG_CUBLAS_CALL("cublas" #L "scal" #bits, handle), n, alpha, x, incx);    \
  }                                                                                              \
  cublasStatus_t cublas##L##copy##bits(cublasHandle_t handle, Int n, const T* x, Int incx, T* y, \
                                       Int incy) {                                               \
    return blas::copy(RUNG_CUBLAS_CALL("cublas" #L "copy" #bits, handle), n, x, incx, y, incy);  \
  }                                                                                              \
  cublasStatus_t cublas##L##swap##bits(cublasHandle_t handle, Int n, T* x, Int incx, T* y,       \
                                       Int incy) {                                               \
    return blas::swap(RUNG_CUBLAS_CALL("cublas" #L "swap" #bits, handle), n, x, incx, y, incy);  \
  }
RUNG_CUBLAS_TYPES(RUNG_CUBLAS_VECTORS_OF)

#define RUNG_CUBLAS_ROT_OF(L, T, Int, bits)                                                     \
  cublasStatus_t cublas##L##rot##bits(cublasHandle_t handle, Int n, T* x, Int incx, T* y,       \
                                      Int incy, const T* c, const T* s) {                       \
    return blas::rot(RUNG_CUBLAS_CALL("cublas" #L "rot" #bits, handle), n, x, incx, y, incy, c, \
                     s);                                                                        \
  }
RUNG_CUBLAS_REAL_TYPES(RUNG_CUBLAS_ROT_OF)

#define RUNG_CUBLAS_BY_REALS_OF(Int, bits)                                                \
  cublasStatus_t cublasCsscal##bits(cublasHandle_t handle, Int n, const float* alpha,     \
                                    cuComplex* x, Int incx) {                             \
    return blas::scal(RUNG_CUBLAS_CALL("cublasCsscal" #bits, handle), n, alpha, x, incx); \
  }                                                                                       \
  cublasStatus_t cublasZdscal##bits(cublasHandle_t handle, Int n, const double* alpha,    \
                                    cuDoubleComplex* x, Int incx) {                       \
    return blas::scal(RUNG_CUBLAS_CALL("cublasZdscal" #bits, handle), n, alpha, x, incx); \
  }
RUNG_CUBLAS_BY_REALS_OF(int, )
RUNG_CUBLAS_BY_REALS_OF(int64_t, _64)
