// SPDX-License-Identifier: Apache-2.0
// PTX features by name: one function each, inline assembly under nvcc, a functional body in the
// simulator. A kernel includes the part it uses, or this for all.
//
// Features of one generation go to a file of their own: what is here runs on compute capability 8.0
// and newer.
#pragma once

#include "rung/device/ptx_async_copy.hpp"
#include "rung/device/ptx_matrix.hpp"
#include "rung/device/ptx_thread.hpp"
