// SPDX-License-Identifier: Apache-2.0
// The interface of before 2010, which has no handle.
#error "cublas.h is the legacy interface of cuBLAS, without a handle: rung has that of cublas_v2.h"
