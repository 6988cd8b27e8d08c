// SPDX-License-Identifier: Apache-2.0
// Included by C++ and CUDA sources.
#pragma once

#include <cuda_runtime.h>

__global__ void scale(float* values, float factor, int n);
cudaError_t launch_scale(float* values, float factor, int n, cudaStream_t stream);
