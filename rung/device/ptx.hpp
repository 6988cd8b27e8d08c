// SPDX-License-Identifier: Apache-2.0
// PTX features by name: one function each, inline assembly under nvcc, a functional body in the
// simulator. A kernel includes the part it uses, or this for all.
//
// Features of one generation go to a file of their own: what is here runs on compute capability 8.0
// and newer. Of 9.0 are ptx_mbarrier.hpp, ptx_bulk_copy.hpp, ptx_tensor_copy.hpp, ptx_cluster.hpp
// and ptx_hopper.hpp, which *.sm90a.cu files include one by one.
#pragma once

#include "rung/device/ptx_async_copy.hpp"
#include "rung/device/ptx_double_multiply.hpp"
#include "rung/device/ptx_matrix.hpp"
#include "rung/device/ptx_memory.hpp"
#include "rung/device/ptx_thread.hpp"
