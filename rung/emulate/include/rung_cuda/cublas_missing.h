// SPDX-License-Identifier: Apache-2.0
// cuBLAS functions that rung does not implement: calling one is a compile error with an
// explanation.
#pragma once

#include "rung_cuda/cublas_types.h"

#define RUNG_CUBLAS_MISSING_NAME(name)                                                         \
  template <class... Arguments>                                                                \
  __attribute__((error(#name " is not part of rung's cuBLAS: docs/emulate.md lists what is"))) \
  cublasStatus_t                                                                               \
  name(Arguments...);
#define RUNG_CUBLAS_MISSING(name) RUNG_CUBLAS_MISSING_NAME(name) RUNG_CUBLAS_MISSING_NAME(name##_64)
#define RUNG_CUBLAS_MISSING_OF(L)                    \
  RUNG_CUBLAS_MISSING(cublas##L##gbmv)               \
  RUNG_CUBLAS_MISSING(cublas##L##trmv)               \
  RUNG_CUBLAS_MISSING(cublas##L##tbmv)               \
  RUNG_CUBLAS_MISSING(cublas##L##tbsv)               \
  RUNG_CUBLAS_MISSING(cublas##L##tpmv)               \
  RUNG_CUBLAS_MISSING(cublas##L##tpsv)               \
  RUNG_CUBLAS_MISSING(cublas##L##syr)                \
  RUNG_CUBLAS_MISSING(cublas##L##syr2)               \
  RUNG_CUBLAS_MISSING(cublas##L##symm)               \
  RUNG_CUBLAS_MISSING(cublas##L##syr2k)              \
  RUNG_CUBLAS_MISSING(cublas##L##syrkx)              \
  RUNG_CUBLAS_MISSING(cublas##L##trsmBatched)        \
  RUNG_CUBLAS_MISSING(cublas##L##gemvBatched)        \
  RUNG_CUBLAS_MISSING(cublas##L##gemvStridedBatched) \
  RUNG_CUBLAS_MISSING(cublas##L##getrfBatched)       \
  RUNG_CUBLAS_MISSING(cublas##L##getrsBatched)       \
  RUNG_CUBLAS_MISSING(cublas##L##getriBatched)       \
  RUNG_CUBLAS_MISSING(cublas##L##matinvBatched)      \
  RUNG_CUBLAS_MISSING(cublas##L##geqrfBatched)       \
  RUNG_CUBLAS_MISSING(cublas##L##gelsBatched)        \
  RUNG_CUBLAS_MISSING(cublas##L##tpttr)              \
  RUNG_CUBLAS_MISSING(cublas##L##trttp)              \
  RUNG_CUBLAS_MISSING(cublas##L##rotg)
RUNG_CUBLAS_MISSING_OF(S)
RUNG_CUBLAS_MISSING_OF(D)
RUNG_CUBLAS_MISSING_OF(C)
RUNG_CUBLAS_MISSING_OF(Z)
#define RUNG_CUBLAS_MISSING_REAL(L)     \
  RUNG_CUBLAS_MISSING(cublas##L##sbmv)  \
  RUNG_CUBLAS_MISSING(cublas##L##spmv)  \
  RUNG_CUBLAS_MISSING(cublas##L##spr)   \
  RUNG_CUBLAS_MISSING(cublas##L##spr2)  \
  RUNG_CUBLAS_MISSING(cublas##L##rotm)  \
  RUNG_CUBLAS_MISSING(cublas##L##rotmg) \
  RUNG_CUBLAS_MISSING(cublas##L##gemmGroupedBatched)
RUNG_CUBLAS_MISSING_REAL(S)
RUNG_CUBLAS_MISSING_REAL(D)
#define RUNG_CUBLAS_MISSING_COMPLEX(L)  \
  RUNG_CUBLAS_MISSING(cublas##L##rot)   \
  RUNG_CUBLAS_MISSING(cublas##L##hbmv)  \
  RUNG_CUBLAS_MISSING(cublas##L##hemv)  \
  RUNG_CUBLAS_MISSING(cublas##L##hemm)  \
  RUNG_CUBLAS_MISSING(cublas##L##her)   \
  RUNG_CUBLAS_MISSING(cublas##L##her2)  \
  RUNG_CUBLAS_MISSING(cublas##L##herk)  \
  RUNG_CUBLAS_MISSING(cublas##L##her2k) \
  RUNG_CUBLAS_MISSING(cublas##L##herkx) \
  RUNG_CUBLAS_MISSING(cublas##L##hpmv)  \
  RUNG_CUBLAS_MISSING(cublas##L##hpr)   \
  RUNG_CUBLAS_MISSING(cublas##L##hpr2)  \
  RUNG_CUBLAS_MISSING(cublas##L##gemm3m)
RUNG_CUBLAS_MISSING_COMPLEX(C)
RUNG_CUBLAS_MISSING_COMPLEX(Z)
RUNG_CUBLAS_MISSING(cublasCsrot)
RUNG_CUBLAS_MISSING(cublasZdrot)
RUNG_CUBLAS_MISSING(cublasCgemmEx)
RUNG_CUBLAS_MISSING(cublasGemmGroupedBatchedEx)
RUNG_CUBLAS_MISSING(cublasAxpyEx)
RUNG_CUBLAS_MISSING(cublasDotEx)
RUNG_CUBLAS_MISSING(cublasDotcEx)
RUNG_CUBLAS_MISSING(cublasNrm2Ex)
RUNG_CUBLAS_MISSING(cublasScalEx)
RUNG_CUBLAS_MISSING(cublasAsumEx)
RUNG_CUBLAS_MISSING(cublasCopyEx)
RUNG_CUBLAS_MISSING(cublasSwapEx)
RUNG_CUBLAS_MISSING(cublasRotEx)
#undef RUNG_CUBLAS_MISSING_OF
#undef RUNG_CUBLAS_MISSING_REAL
#undef RUNG_CUBLAS_MISSING_COMPLEX
