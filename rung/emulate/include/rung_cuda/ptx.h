// SPDX-License-Identifier: Apache-2.0
// Implementation of inline PTX (rung/emulate/ptx_table.cpp): one function template per instruction,
// parameterized by the instruction's type. Included only by programs with asm statements.
#pragma once

#include "cuda_runtime.h"
#include "rung_cuda/ptx_arithmetic.h"
#include "rung_cuda/ptx_hopper.h"
#include "rung_cuda/ptx_memory.h"
#include "rung_cuda/ptx_types.h"
