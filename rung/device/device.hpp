// SPDX-License-Identifier: Apache-2.0
// The CUDA dialect of rung's kernels; every kernel source includes this header. Under nvcc it is
// the CUDA runtime; under g++ with -DRUNG_SIMT=1 the same names mean the simulated GPU.
//
// On top of CUDA C++ come launch() instead of <<<>>> (launch.hpp) and shared<Layout>() instead of
// __shared__ (shared.hpp). load.hpp, convert.hpp, ptx.hpp, wmma.hpp and grid.hpp are included by
// the kernels that use them.
#pragma once

#include <cstdint>

#include "rung/device/target.hpp"

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#else
#include "rung/simt/atomics.hpp"
#include "rung/simt/intrinsics.hpp"
#include "rung/simt/sync.hpp"
#include "rung/simt/types.hpp"
#include "rung/simt/words.hpp"
using namespace rung::simt::dialect;  // NOLINT: CUDA's words are global
#endif

#include "rung/device/assert.hpp"
#include "rung/device/launch.hpp"
#include "rung/device/shared.hpp"
