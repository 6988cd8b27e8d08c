// SPDX-License-Identifier: Apache-2.0
// Wrappers of PTX instructions: one function each, inline assembly under nvcc, a functional body in
// the simulator. A kernel includes the headers it uses, or this one for all of compute capability
// 8.0 and newer.
//
// Instructions of compute capability 9.0 are in ptx/mbarrier.hpp, ptx/bulk_copy.hpp,
// ptx/tensor_copy.hpp, ptx/cluster.hpp and ptx/hopper.hpp, which *.sm90a.cu files include one by
// one.
#pragma once

#include "rung/device/ptx/async_copy.hpp"
#include "rung/device/ptx/double_multiply.hpp"
#include "rung/device/ptx/matrix.hpp"
#include "rung/device/ptx/memory.hpp"
#include "rung/device/ptx/thread.hpp"
