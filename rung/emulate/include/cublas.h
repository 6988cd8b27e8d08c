// SPDX-License-Identifier: Apache-2.0
// Rejects programs that use cuBLAS's legacy interface, which has no handle.
#error "cublas.h is the legacy interface of cuBLAS, without a handle: rung has that of cublas_v2.h"
