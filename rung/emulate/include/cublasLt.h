// SPDX-License-Identifier: Apache-2.0
// cublasLt for programs run by `rung emulate`: matrix products described by operation, layout and
// epilogue descriptors. docs/emulate.md lists the coverage.
#pragma once

#include "rung_cuda/cublas_lt_types.h"
#include "rung_cuda/cublas_missing.h"

extern "C" {
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle);
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle);
const char* cublasLtGetStatusName(cublasStatus_t status);
const char* cublasLtGetStatusString(cublasStatus_t status);
size_t cublasLtGetVersion(void);
size_t cublasLtGetCudartVersion(void);
cublasStatus_t cublasLtGetProperty(libraryPropertyType type, int* value);

/// Computes D = epilogue(alpha op(A) op(B) + beta C). D may alias C.
cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                              const void* alpha, const void* a, cublasLtMatrixLayout_t layout_a,
                              const void* b, cublasLtMatrixLayout_t layout_b, const void* beta,
                              const void* c, cublasLtMatrixLayout_t layout_c, void* d,
                              cublasLtMatrixLayout_t layout_d,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              size_t workspace_bytes, cudaStream_t stream);

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t ld);
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout);
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* value, size_t bytes);
cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                void* value, size_t bytes, size_t* written);
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* operation,
                                        cublasComputeType_t compute, cudaDataType_t scale);
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation);
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes);
cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t operation,
                                              cublasLtMatmulDescAttributes_t attribute, void* value,
                                              size_t bytes, size_t* written);
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference);
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference);
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t bytes);

/// Returns one algorithm, without a workspace, if the product is supported; else none.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t layout_a,
    cublasLtMatrixLayout_t layout_b, cublasLtMatrixLayout_t layout_c,
    cublasLtMatrixLayout_t layout_d, cublasLtMatmulPreference_t preference, int wanted,
    cublasLtMatmulHeuristicResult_t results[], int* found);
}

inline cublasStatus_t cublasLtMatrixLayoutInit(cublasLtMatrixLayout_t layout, cudaDataType type,
                                               uint64_t rows, uint64_t columns, int64_t ld) {
  *layout = cublasLtMatrixLayoutOpaque_t{};
  layout->type = type;
  layout->rows = rows;
  layout->columns = columns;
  layout->ld = ld;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulDescInit(cublasLtMatmulDesc_t operation,
                                             cublasComputeType_t compute, cudaDataType_t scale) {
  *operation = cublasLtMatmulDescOpaque_t{};
  operation->compute = compute;
  operation->scale = scale;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulPreferenceInit(cublasLtMatmulPreference_t preference) {
  *preference = cublasLtMatmulPreferenceOpaque_t{};
  return CUBLAS_STATUS_SUCCESS;
}

RUNG_CUBLAS_MISSING(cublasLtMatrixTransform)
RUNG_CUBLAS_MISSING(cublasLtMatrixTransformDescCreate)
RUNG_CUBLAS_MISSING(cublasLtMatmulAlgoGetIds)
RUNG_CUBLAS_MISSING(cublasLtMatmulAlgoInit)
RUNG_CUBLAS_MISSING(cublasLtMatmulAlgoCheck)
RUNG_CUBLAS_MISSING(cublasLtMatmulAlgoCapGetAttribute)
RUNG_CUBLAS_MISSING(cublasLtMatmulAlgoConfigSetAttribute)
RUNG_CUBLAS_MISSING(cublasLtMatmulAlgoConfigGetAttribute)
