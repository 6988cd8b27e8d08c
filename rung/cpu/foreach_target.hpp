// SPDX-License-Identifier: Apache-2.0
//
// Compiles the including file once per SIMD target: see simd.hpp. No #pragma once: Highway's
// headers have guards that flip with each target and must be included again in every pass.
#include "rung/cpu/simd.hpp"

#include <hwy/foreach_target.h>

#include <hwy/highway.h>

// The fallback target (SCALAR with g++ before 12.3, else EMU128, where each vector operation is a
// loop) must be correct, not fast (simd.hpp): it is compiled at -O1. Code after `#if HWY_ONCE` is
// not.
#if (HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SCALAR) && HWY_COMPILER_GCC_ACTUAL
#undef HWY_BEFORE_NAMESPACE
#undef HWY_AFTER_NAMESPACE
#define HWY_BEFORE_NAMESPACE() \
  HWY_PRAGMA(GCC push_options) HWY_PRAGMA(GCC optimize "O1") static_assert(true)
#define HWY_AFTER_NAMESPACE() HWY_PRAGMA(GCC pop_options) static_assert(true)
#endif
