// SPDX-License-Identifier: Apache-2.0
//
// Compiles the including file once for each SIMD target: see simd.hpp. No #pragma once here: the
// headers guard themselves, and Highway's have to be seen again in every pass.
#include "rung/cpu/simd.hpp"

#include <hwy/foreach_target.h>

#include <hwy/highway.h>
