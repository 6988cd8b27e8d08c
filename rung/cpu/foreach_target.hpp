// SPDX-License-Identifier: Apache-2.0
//
// Compiles the including file once for each SIMD target: see simd.hpp. No #pragma once here: the
// headers guard themselves, and Highway's have to be seen again in every pass.
#include "rung/cpu/simd.hpp"

#include <hwy/foreach_target.h>

#include <hwy/highway.h>

// The fallback (SCALAR with g++ before 12.3, else EMU128, where each vector is a loop) has to be
// right rather than fast (simd.hpp): it is compiled at -O1. What follows `#if HWY_ONCE` is not.
#if (HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SCALAR) && HWY_COMPILER_GCC_ACTUAL
#undef HWY_BEFORE_NAMESPACE
#undef HWY_AFTER_NAMESPACE
#define HWY_BEFORE_NAMESPACE() \
  HWY_PRAGMA(GCC push_options) HWY_PRAGMA(GCC optimize "O1") static_assert(true)
#define HWY_AFTER_NAMESPACE() HWY_PRAGMA(GCC pop_options) static_assert(true)
#endif
