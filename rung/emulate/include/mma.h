// SPDX-License-Identifier: Apache-2.0
// nvcuda::wmma: fragments of half, bfloat16, TF32, 8-bit integers and doubles, in CUDA's shapes.
#pragma once

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "rung_cuda/fragments.h"
