// SPDX-License-Identifier: Apache-2.0
//
// Compiles the including file once for each SIMD target: see simd.hpp. No #pragma once here: both
// headers guard themselves and have to be seen again in every pass.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
