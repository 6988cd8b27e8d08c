// SPDX-License-Identifier: Apache-2.0
// What inline PTX becomes (rung/emulate/ptx_table.cpp): one function template an instruction, whose
// parameter is the instruction's type. Only programs that hold asm statements include this.
#pragma once

#include "cuda_runtime.h"
#include "rung_cuda/ptx_arithmetic.h"
#include "rung_cuda/ptx_hopper.h"
#include "rung_cuda/ptx_memory.h"
#include "rung_cuda/ptx_types.h"
