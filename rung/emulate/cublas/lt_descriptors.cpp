// SPDX-License-Identifier: Apache-2.0
// cublasLt: handles and descriptors.
#include <cstring>

#include "cublasLt.h"

struct cublasLtContext {};

namespace {

/// Location of an attribute in its descriptor; `at` is null for an unknown attribute.
struct Field {
  void* at = nullptr;
  size_t bytes = 0;
};
template <class T>
Field field(T& member) {
  return {&member, sizeof(T)};
}

Field field_of(cublasLtMatrixLayoutOpaque_t& one, cublasLtMatrixLayoutAttribute_t attribute) {
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_TYPE:
      return field(one.type);
    case CUBLASLT_MATRIX_LAYOUT_ORDER:
      return field(one.order);
    case CUBLASLT_MATRIX_LAYOUT_ROWS:
      return field(one.rows);
    case CUBLASLT_MATRIX_LAYOUT_COLS:
      return field(one.columns);
    case CUBLASLT_MATRIX_LAYOUT_LD:
      return field(one.ld);
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
      return field(one.batches);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      return field(one.stride);
    case CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET:
      return field(one.plane_offset);
  }
  return {};
}

Field field_of(cublasLtMatmulDescOpaque_t& one, cublasLtMatmulDescAttributes_t attribute) {
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE:
      return field(one.compute);
    case CUBLASLT_MATMUL_DESC_SCALE_TYPE:
      return field(one.scale);
    case CUBLASLT_MATMUL_DESC_POINTER_MODE:
      return field(one.pointer_mode);
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return field(one.op_a);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return field(one.op_b);
    case CUBLASLT_MATMUL_DESC_TRANSC:
      return field(one.op_c);
    case CUBLASLT_MATMUL_DESC_FILL_MODE:
      return field(one.fill_mode);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return field(one.epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return field(one.bias);
    case CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE:
      return field(one.bias_stride);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      return field(one.aux);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      return field(one.aux_ld);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE:
      return field(one.aux_stride);
    case CUBLASLT_MATMUL_DESC_ALPHA_VECTOR_BATCH_STRIDE:
      return field(one.alpha_stride);
    case CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET:
      return field(one.sm_count_target);
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
      return field(one.scale_a);
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
      return field(one.scale_b);
    case CUBLASLT_MATMUL_DESC_C_SCALE_POINTER:
      return field(one.scale_c);
    case CUBLASLT_MATMUL_DESC_D_SCALE_POINTER:
      return field(one.scale_d);
    case CUBLASLT_MATMUL_DESC_AMAX_D_POINTER:
      return field(one.amax_d);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE:
      return field(one.aux_type);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER:
      return field(one.scale_aux);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER:
      return field(one.amax_aux);
    case CUBLASLT_MATMUL_DESC_FAST_ACCUM:
      return field(one.fast_accumulation);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      return field(one.bias_type);
    case CUBLASLT_MATMUL_DESC_A_SCALE_MODE:
    case CUBLASLT_MATMUL_DESC_B_SCALE_MODE:
    case CUBLASLT_MATMUL_DESC_C_SCALE_MODE:
    case CUBLASLT_MATMUL_DESC_D_SCALE_MODE:
      return field(one.scale_modes[attribute - CUBLASLT_MATMUL_DESC_A_SCALE_MODE]);
  }
  return {};
}

template <class Descriptor, class Attribute>
cublasStatus_t set(Descriptor* one, Attribute attribute, const void* value, size_t bytes) {
  if (one == nullptr || value == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const Field to = field_of(*one, attribute);
  if (to.at == nullptr || bytes != to.bytes) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(to.at, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}
template <class Descriptor, class Attribute>
cublasStatus_t get(Descriptor* one, Attribute attribute, void* value, size_t bytes,
                   size_t* written) {
  if (one == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const Field from = field_of(*one, attribute);
  if (from.at == nullptr || (bytes != 0 && (bytes != from.bytes || value == nullptr))) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (written != nullptr) *written = from.bytes;
  if (bytes != 0) std::memcpy(value, from.at, bytes);
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
cublasStatus_t create(T** one) {
  if (one == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *one = new T;
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) { return create(handle); }
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasLtGetStatusName(cublasStatus_t status) { return cublasGetStatusName(status); }
const char* cublasLtGetStatusString(cublasStatus_t status) { return cublasGetStatusString(status); }
size_t cublasLtGetVersion(void) { return CUBLAS_VERSION; }
size_t cublasLtGetCudartVersion(void) { return CUDART_VERSION; }
cublasStatus_t cublasLtGetProperty(libraryPropertyType type, int* value) {
  return cublasGetProperty(type, value);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t ld) {
  const cublasStatus_t status = create(layout);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  return cublasLtMatrixLayoutInit(*layout, type, rows, columns, ld);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* value, size_t bytes) {
  return set(layout, attribute, value, bytes);
}
cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                void* value, size_t bytes, size_t* written) {
  return get(layout, attribute, value, bytes, written);
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* operation,
                                        cublasComputeType_t compute, cudaDataType_t scale) {
  const cublasStatus_t status = create(operation);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  return cublasLtMatmulDescInit(*operation, compute, scale);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation) {
  delete operation;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  return set(operation, attribute, value, bytes);
}
cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t operation,
                                              cublasLtMatmulDescAttributes_t attribute, void* value,
                                              size_t bytes, size_t* written) {
  return get(operation, attribute, value, bytes, written);
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return create(preference);
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
/// Accepts every preference and stores none: the only algorithm needs no workspace.
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t bytes) {
  if (preference == nullptr || value == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) {
    if (bytes != sizeof(preference->max_workspace_bytes)) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&preference->max_workspace_bytes, value, bytes);
  }
  return CUBLAS_STATUS_SUCCESS;
}
