// SPDX-License-Identifier: Apache-2.0
// Common parts of the cuBLAS functions: call data, argument checks, and launches. The library's
// kernels run on the simulated GPU, so that findings and counters cover its accesses.
#pragma once

#include <initializer_list>

#include "cublas_v2.h"

struct cublasContext {
  cudaStream_t stream = nullptr;
  cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_HOST;
  cublasAtomicsMode_t atomics_mode = CUBLAS_ATOMICS_NOT_ALLOWED;
  cublasMath_t math_mode = CUBLAS_DEFAULT_MATH;
  int sm_count_target = 0;
};

namespace rung::cublas {

/// A library call by the program: function name, return address, and pointer mode.
struct CublasCall {
  const char* name;
  const void* code;
  bool has_handle = false;
  cudaStream_t stream = nullptr;
  bool device_scalars = false;  // alpha, beta and results are in device memory

  CublasCall(const char* function, const void* caller, cublasHandle_t handle)
      : name(function), code(caller), has_handle(handle != nullptr) {
    if (!has_handle) return;
    stream = handle->stream;
    device_scalars = handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE;
  }
};
#define RUNG_CUBLAS_CALL(name, handle) \
  ::rung::cublas::CublasCall(name, __builtin_return_address(0), handle)

/// Memory that a library call reads or, if `writes`, also writes; ignored if `bytes` is 0.
struct Operand {
  const char* name;
  const void* begin;
  long long bytes;
  bool writes = false;
};
/// Returns the number of elements spanned by a column-major matrix, from its first to its last
/// element.
inline long long matrix_extent(long long rows, long long columns, long long ld) {
  return rows <= 0 || columns <= 0 ? 0 : (columns - 1) * ld + rows;
}
template <class T>
Operand vector_operand(const char* name, const T* data, long long n, long long step,
                       bool writes = false) {
  const long long extent = n <= 0 ? 0 : 1 + (n - 1) * (step < 0 ? -step : step);
  return {name, data, extent * static_cast<long long>(sizeof(T)), writes};
}
template <class T>
Operand matrix_operand(const char* name, const T* data, long long rows, long long columns,
                       long long ld, bool writes = false) {
  return {name, data, matrix_extent(rows, columns, ld) * static_cast<long long>(sizeof(T)), writes};
}

/// Returns true if kernels may access all operands; otherwise reports a finding at the program's
/// call and returns false.
bool accessible(const CublasCall& call, std::initializer_list<Operand> operands);
/// Returns true if the scalar's pointer is a host or device pointer as required by the pointer
/// mode.
bool fits_pointer_mode(const CublasCall& call, const char* name, const void* scalar,
                       long long bytes);

/// Value of alpha or beta: a host value, or device memory that the kernel reads.
template <class T>
struct Scalar {
  const T* device = nullptr;
  T value{};
  [[nodiscard]] T get() const { return device != nullptr ? *device : value; }
  /// Returns true if the scalar is a host value of zero; the operand that it multiplies is then not
  /// accessed.
  [[nodiscard]] bool zero() const { return device == nullptr && is_zero(value); }

  static bool is_zero(const T& value) {
    if constexpr (requires { value.x; }) {
      return value.x == 0 && value.y == 0;
    } else {
      return static_cast<float>(value) == 0;
    }
  }
};
template <class T>
Scalar<T> scalar(const CublasCall& call, const T* given) {
  if (call.device_scalars) return {given, T{}};
  return {nullptr, *given};
}

/// Records the name of the running kernel.
RUNG_UNSEEN __attribute__((noinline)) inline void enter(const char* name) {
  if (rung::cuda::launch_data->kernel == nullptr) rung::cuda::begin_kernel(name);
}
template <class Body>
__attribute__((noinline)) void one_thread(const char* name, Body body) {
  enter(name);
  body();
}

/// Launches a kernel with the call's name, in which each thread runs `body`.
template <class Body>
cublasStatus_t launch(const CublasCall& call, dim3 grid, dim3 block, const Body& body) {
  rung::cuda::LaunchConfig config;
  config.grid = grid;
  config.block = block;
  config.stream = call.stream;
  config.name = call.name;
  config.caller = call.code;
  const auto thread = [body, name = call.name]() RUNG_UNSEEN { one_thread(name, body); };
  const cudaError_t error = rung::cuda::launch(config, rung::cuda::make_closure(thread));
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

/// Runs body(i) for each i < n, one thread per element.
template <class Body>
cublasStatus_t for_each(const CublasCall& call, long long n, const Body& body) {
  constexpr unsigned threads = 256;
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  const dim3 grid(static_cast<unsigned>((n + threads - 1) / threads));
  return launch(call, grid, dim3(threads), [body, n] {
    const long long i = static_cast<long long>(blockIdx.x) * threads + threadIdx.x;
    if (i < n) body(i);
  });
}
/// Runs body(i, j) for each element of an m x n matrix, one thread per element.
template <class Body>
cublasStatus_t for_each(const CublasCall& call, long long m, long long n, const Body& body) {
  return for_each(call, m * n, [body, m](long long element) { body(element % m, element / m); });
}

/// A strided vector. With a negative stride the first element has the highest address.
template <class T>
struct Vector {
  T* first;
  long long step;
  Vector(T* data, long long n, long long increment)
      : first(increment < 0 && n > 0 ? data - (n - 1) * increment : data), step(increment) {}
  T& operator[](long long i) const { return first[i * step]; }
};

template <class T>
T conjugate_if(bool conjugate, T value) {
  if constexpr (requires { value.y; }) {
    if (conjugate) value.y = -value.y;
  }
  return value;
}

/// View of op(A): element (i, j) is data[i * row + j * column], conjugated if requested.
template <class T>
struct Matrix {
  const T* data;
  long long row, column;
  bool conjugate;
  Matrix(const T* a, long long ld, cublasOperation_t op)
      : data(a),
        row(op == CUBLAS_OP_N ? 1 : ld),
        column(op == CUBLAS_OP_N ? ld : 1),
        conjugate(op == CUBLAS_OP_C) {}
  [[nodiscard]] T at(long long i, long long j) const {
    return conjugate_if(conjugate, data[i * row + j * column]);
  }
};

inline bool valid(cublasOperation_t op) {
  return op == CUBLAS_OP_N || op == CUBLAS_OP_T || op == CUBLAS_OP_C;
}

}  // namespace rung::cublas

// Operators for complex numbers, for use in templates.
inline float2 operator+(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
inline float2 operator-(float2 a, float2 b) { return make_float2(a.x - b.x, a.y - b.y); }
inline float2 operator*(float2 a, float2 b) { return cuCmulf(a, b); }
inline float2 operator/(float2 a, float2 b) { return cuCdivf(a, b); }
inline double2 operator+(double2 a, double2 b) { return make_double2(a.x + b.x, a.y + b.y); }
inline double2 operator-(double2 a, double2 b) { return make_double2(a.x - b.x, a.y - b.y); }
inline double2 operator*(double2 a, double2 b) { return cuCmul(a, b); }
inline double2 operator/(double2 a, double2 b) { return cuCdiv(a, b); }
