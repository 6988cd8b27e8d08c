// SPDX-License-Identifier: Apache-2.0
//
// foreach_target.hpp for a file of many kernels: compiles the fallback, in which each vector is a
// loop, at -O1. It has to be right rather than fast (simd.hpp), and took half of the compile time:
// 37 of 75 s for norm's row pipeline, 10 s at -O1 (g++ 12). What follows `#if HWY_ONCE` is compiled
// so, too: it should be no more than dispatch.
#include "rung/cpu/foreach_target.hpp"

#if HWY_TARGET == HWY_EMU128 && defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O1")
#endif
