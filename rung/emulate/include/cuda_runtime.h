// SPDX-License-Identifier: Apache-2.0
// CUDA's main header for programs run by `rung emulate` on the simulated GPU. Written from the
// documentation of CUDA's interface; docs/emulate.md lists the coverage.
#pragma once

// Headers that nvcc includes implicitly.
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <new>
#include <utility>

#if __cplusplus < 202002L && !defined(__cpp_concepts)
// A C++ source that the host compiler compiles in an older standard: the runtime API alone.
#define RUNG_HOST_RUNTIME
#include "rung_cuda/host_runtime.h"
#else
#include "rung_cuda/atomics.h"
#include "rung_cuda/builtin.h"
#include "rung_cuda/builtin_atomics.h"
#include "rung_cuda/convert.h"
#include "rung_cuda/data_types.h"
#include "rung_cuda/integers.h"
#include "rung_cuda/launch.h"
#include "rung_cuda/legacy.h"
#include "rung_cuda/memory.h"
#include "rung_cuda/numbers.h"
#include "rung_cuda/runtime_templates.h"
#include "rung_cuda/texture_references.h"
#include "rung_cuda/vector_types.h"
#include "rung_cuda/warp.h"
#include "rung_cuda/words.h"
#endif

// Include guards of NVIDIA's headers, for programs that test them.
#define __CUDA_RUNTIME_H__
#define __CUDA_RUNTIME_API_H__
#define __DRIVER_TYPES_H__
#define __HOST_DEFINES_H__
#define __VECTOR_TYPES_H__
#define __VECTOR_FUNCTIONS_H__
