// SPDX-License-Identifier: Apache-2.0
// cuBLAS: the handle, names of status codes, copies between host and device.
#include "rung/emulate/cublas/call.hpp"

using rung::cublas::CublasCall;

namespace {

struct StatusText {
  cublasStatus_t status;
  const char *name, *text;
};
constexpr StatusText status_texts[] = {
    {CUBLAS_STATUS_SUCCESS, "CUBLAS_STATUS_SUCCESS", "success"},
    {CUBLAS_STATUS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED",
     "the library was not initialized"},
    {CUBLAS_STATUS_ALLOC_FAILED, "CUBLAS_STATUS_ALLOC_FAILED", "the resource allocation failed"},
    {CUBLAS_STATUS_INVALID_VALUE, "CUBLAS_STATUS_INVALID_VALUE",
     "an unsupported value or parameter was passed to the function"},
    {CUBLAS_STATUS_ARCH_MISMATCH, "CUBLAS_STATUS_ARCH_MISMATCH",
     "the function requires an architectural feature absent from the device architecture"},
    {CUBLAS_STATUS_MAPPING_ERROR, "CUBLAS_STATUS_MAPPING_ERROR",
     "an access to GPU memory space failed"},
    {CUBLAS_STATUS_EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED",
     "the function failed to launch on the GPU"},
    {CUBLAS_STATUS_INTERNAL_ERROR, "CUBLAS_STATUS_INTERNAL_ERROR", "an internal operation failed"},
    {CUBLAS_STATUS_NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED",
     "the functionality requested is not supported"},
    {CUBLAS_STATUS_LICENSE_ERROR, "CUBLAS_STATUS_LICENSE_ERROR",
     "the functionality requested requires a license"}};

const StatusText* text_of(cublasStatus_t status) {
  for (const StatusText& one : status_texts) {
    if (one.status == status) return &one;
  }
  return nullptr;
}

cublasStatus_t status_of(cudaError_t error) {
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_MAPPING_ERROR;
}

/// Copies `n` elements of `size` bytes from x to y with strides incx and incy.
cublasStatus_t copy_vector(long long n, long long size, const void* x, long long incx, void* y,
                           long long incy, cudaMemcpyKind kind, const cudaStream_t* stream) {
  if (incx <= 0 || incy <= 0 || size <= 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  const auto bytes = static_cast<size_t>(size);
  const size_t from = bytes * static_cast<size_t>(incx), to = bytes * static_cast<size_t>(incy);
  const auto rows = static_cast<size_t>(n);
  return status_of(stream == nullptr
                       ? cudaMemcpy2D(y, to, x, from, bytes, rows, kind)
                       : cudaMemcpy2DAsync(y, to, x, from, bytes, rows, kind, *stream));
}
cublasStatus_t copy_matrix(long long rows, long long columns, long long size, const void* a,
                           long long lda, void* b, long long ldb, cudaMemcpyKind kind,
                           const cudaStream_t* stream) {
  if (rows < 0 || columns < 0 || size <= 0 || lda < rows || ldb < rows || lda <= 0 || ldb <= 0) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (rows == 0 || columns == 0) return CUBLAS_STATUS_SUCCESS;
  const auto bytes = static_cast<size_t>(size);
  const size_t from = bytes * static_cast<size_t>(lda), to = bytes * static_cast<size_t>(ldb);
  const size_t width = bytes * static_cast<size_t>(rows);
  const auto height = static_cast<size_t>(columns);
  return status_of(stream == nullptr
                       ? cudaMemcpy2D(b, to, a, from, width, height, kind)
                       : cudaMemcpy2DAsync(b, to, a, from, width, height, kind, *stream));
}

}  // namespace

cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetVersion(cublasHandle_t, int* version) {
  if (version == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *version = CUBLAS_VERSION;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value) {
  if (value == nullptr || type < MAJOR_VERSION || type > PATCH_LEVEL) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  *value = type == MAJOR_VERSION   ? CUBLAS_VER_MAJOR
           : type == MINOR_VERSION ? CUBLAS_VER_MINOR
                                   : CUBLAS_VER_PATCH;
  return CUBLAS_STATUS_SUCCESS;
}
size_t cublasGetCudartVersion(void) { return CUDART_VERSION; }
const char* cublasGetStatusName(cublasStatus_t status) {
  const StatusText* const known = text_of(status);
  return known != nullptr ? known->name : "unknown cuBLAS status";
}
const char* cublasGetStatusString(cublasStatus_t status) {
  const StatusText* const known = text_of(status);
  return known != nullptr ? known->text : "unknown cuBLAS status";
}

#define RUNG_CUBLAS_SETTING(Setting, Type, member)                        \
  cublasStatus_t cublasSet##Setting(cublasHandle_t handle, Type value) {  \
    if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;          \
    handle->member = value;                                               \
    return CUBLAS_STATUS_SUCCESS;                                         \
  }                                                                       \
  cublasStatus_t cublasGet##Setting(cublasHandle_t handle, Type* value) { \
    if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;          \
    if (value == nullptr) return CUBLAS_STATUS_INVALID_VALUE;             \
    *value = handle->member;                                              \
    return CUBLAS_STATUS_SUCCESS;                                         \
  }
RUNG_CUBLAS_SETTING(Stream, cudaStream_t, stream)
RUNG_CUBLAS_SETTING(PointerMode, cublasPointerMode_t, pointer_mode)
RUNG_CUBLAS_SETTING(AtomicsMode, cublasAtomicsMode_t, atomics_mode)
RUNG_CUBLAS_SETTING(MathMode, cublasMath_t, math_mode)
RUNG_CUBLAS_SETTING(SmCountTarget, int, sm_count_target)

cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* workspace, size_t bytes) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  const CublasCall call = RUNG_CUBLAS_CALL("cublasSetWorkspace", handle);
  const bool there =
      workspace == nullptr ||
      accessible(call, {{"the workspace", workspace, static_cast<long long>(bytes)}});
  return there ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

#define RUNG_CUBLAS_COPY(name, kind, Int, bits)                                                    \
  cublasStatus_t cublas##name##Vector##bits(Int n, Int size, const void* x, Int incx, void* y,     \
                                            Int incy) {                                            \
    return copy_vector(n, size, x, incx, y, incy, kind, nullptr);                                  \
  }                                                                                                \
  cublasStatus_t cublas##name##VectorAsync##bits(Int n, Int size, const void* x, Int incx,         \
                                                 void* y, Int incy, cudaStream_t stream) {         \
    return copy_vector(n, size, x, incx, y, incy, kind, &stream);                                  \
  }                                                                                                \
  cublasStatus_t cublas##name##Matrix##bits(Int rows, Int columns, Int size, const void* a,        \
                                            Int lda, void* b, Int ldb) {                           \
    return copy_matrix(rows, columns, size, a, lda, b, ldb, kind, nullptr);                        \
  }                                                                                                \
  cublasStatus_t cublas##name##MatrixAsync##bits(Int rows, Int columns, Int size, const void* a,   \
                                                 Int lda, void* b, Int ldb, cudaStream_t stream) { \
    return copy_matrix(rows, columns, size, a, lda, b, ldb, kind, &stream);                        \
  }
RUNG_CUBLAS_COPY(Set, cudaMemcpyHostToDevice, int, )
RUNG_CUBLAS_COPY(Get, cudaMemcpyDeviceToHost, int, )
RUNG_CUBLAS_COPY(Set, cudaMemcpyHostToDevice, int64_t, _64)
RUNG_CUBLAS_COPY(Get, cudaMemcpyDeviceToHost, int64_t, _64)
