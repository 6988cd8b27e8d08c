// SPDX-License-Identifier: Apache-2.0
// nvcuda::wmma: fragments of half, bfloat16, tf32, 8-bit integers and doubles in the shapes that
// exist.
#pragma once

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "rung_cuda/fragments.h"
