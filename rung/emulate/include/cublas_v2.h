// SPDX-License-Identifier: Apache-2.0
// cuBLAS for programs run by `rung emulate`; docs/emulate.md lists the coverage. The library's
// kernels run on the simulated GPU; they are in librung_cublas.a.
#pragma once

#include "rung_cuda/cublas_functions.h"
#include "rung_cuda/cublas_missing.h"

#define CUBLAS_V2_H_
#define CUBLAS_API_H_

// Names that NVIDIA's header defines.
#define cublasCreate_v2 cublasCreate
#define cublasDestroy_v2 cublasDestroy
#define cublasGetVersion_v2 cublasGetVersion
#define cublasSetStream_v2 cublasSetStream
#define cublasGetStream_v2 cublasGetStream
#define cublasSetPointerMode_v2 cublasSetPointerMode
#define cublasGetPointerMode_v2 cublasGetPointerMode
#define cublasSetWorkspace_v2 cublasSetWorkspace
#define cublasSgemm_v2 cublasSgemm
#define cublasSgemm_v2_64 cublasSgemm_64
#define cublasDgemm_v2 cublasDgemm
#define cublasDgemm_v2_64 cublasDgemm_64
#define cublasCgemm_v2 cublasCgemm
#define cublasCgemm_v2_64 cublasCgemm_64
#define cublasZgemm_v2 cublasZgemm
#define cublasZgemm_v2_64 cublasZgemm_64
#define cublasSgemv_v2 cublasSgemv
#define cublasSgemv_v2_64 cublasSgemv_64
#define cublasDgemv_v2 cublasDgemv
#define cublasDgemv_v2_64 cublasDgemv_64
#define cublasSaxpy_v2 cublasSaxpy
#define cublasSaxpy_v2_64 cublasSaxpy_64
#define cublasDaxpy_v2 cublasDaxpy
#define cublasDaxpy_v2_64 cublasDaxpy_64
#define cublasSdot_v2 cublasSdot
#define cublasSdot_v2_64 cublasSdot_64
#define cublasDdot_v2 cublasDdot
#define cublasDdot_v2_64 cublasDdot_64
#define cublasSscal_v2 cublasSscal
#define cublasSscal_v2_64 cublasSscal_64
#define cublasDscal_v2 cublasDscal
#define cublasDscal_v2_64 cublasDscal_64
#define cublasSnrm2_v2 cublasSnrm2
#define cublasSnrm2_v2_64 cublasSnrm2_64
#define cublasDnrm2_v2 cublasDnrm2
#define cublasDnrm2_v2_64 cublasDnrm2_64
#define cublasSasum_v2 cublasSasum
#define cublasSasum_v2_64 cublasSasum_64
#define cublasDasum_v2 cublasDasum
#define cublasDasum_v2_64 cublasDasum_64
