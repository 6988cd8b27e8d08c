// SPDX-License-Identifier: Apache-2.0
//
// Run-time choice of the instruction set, written once. A file that holds vector code starts with
//
//   #include "rung/cpu/foreach_target.hpp"  // before anything of Highway; includes this file
//   ...
//   HWY_BEFORE_NAMESPACE();
//   namespace rung { namespace HWY_NAMESPACE { ...vector code... } }
//   HWY_AFTER_NAMESPACE();
//   #if HWY_ONCE
//   ...the rest: HWY_EXPORT, HWY_DYNAMIC_DISPATCH...
//   #endif
//
// Three targets are built. AVX3 (Highway's AVX-512 F, CD, VL, DQ, BW) and AVX2 (with FMA and F16C)
// have the wide registers that the kernels are shaped for; anything older takes the fallback, which
// has to be right rather than fast. Each target costs compile time for every kernel, hence no SSE.
#pragma once

#ifdef HWY_DISABLED_TARGETS
#error "include rung/cpu/simd.hpp before the headers of Highway"
#endif
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)

// Highway re-includes the file named here, once for each target. Naming it by hand in each file is
// a trap: a copied name compiles without a word and then runs the other file's kernels. The
// compiler knows which file it was asked for. (With -ffile-prefix-map the name becomes relative to
// the root of the sources, which is an include directory.)
#define HWY_TARGET_INCLUDE __BASE_FILE__

#include <hwy/detect_targets.h>
