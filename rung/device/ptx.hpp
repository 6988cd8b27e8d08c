// SPDX-License-Identifier: Apache-2.0
// PTX features by name: one function each, inline assembly under nvcc, a functional body in the
// simulator. A kernel includes the part it uses, or this for all.
//
// Features of one generation go to a file of their own: what is here runs on compute capability 8.0
// and newer. Of 9.0 are ptx/mbarrier.hpp, ptx/bulk_copy.hpp, ptx/tensor_copy.hpp, ptx/cluster.hpp
// and ptx/hopper.hpp, which *.sm90a.cu files include one by one.
#pragma once

#include "rung/device/ptx/async_copy.hpp"
#include "rung/device/ptx/double_multiply.hpp"
#include "rung/device/ptx/matrix.hpp"
#include "rung/device/ptx/memory.hpp"
#include "rung/device/ptx/thread.hpp"
