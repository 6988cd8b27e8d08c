// SPDX-License-Identifier: Apache-2.0
// Defines what affine.cu declares, without a common header.
__constant__ int offset = 3;
__device__ int twice(int x) { return 2 * x; }
