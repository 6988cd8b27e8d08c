// SPDX-License-Identifier: Apache-2.0
//
// Run-time dispatch among instruction sets from a single source. A file with vector code begins
// with
//
//   #include "rung/cpu/foreach_target.hpp"  // before other headers of Highway; includes this file
//   ...
//   HWY_BEFORE_NAMESPACE();
//   namespace rung { namespace HWY_NAMESPACE { ...vector code... } }
//   HWY_AFTER_NAMESPACE();
//   #if HWY_ONCE
//   ...the rest: HWY_EXPORT, HWY_DYNAMIC_DISPATCH...
//   #endif
//
// Three targets are built. AVX3 (Highway's AVX-512 F, CD, VL, DQ, BW) and AVX2 (with FMA and F16C)
// have the wide registers that kernels are designed for; older CPUs use the fallback, which must be
// correct, not fast. Each target costs compile time for every kernel, hence no SSE target.
#pragma once

#ifdef HWY_DISABLED_TARGETS
#error "include rung/cpu/simd.hpp before the headers of Highway"
#endif
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)

// Highway re-includes the file named by this macro once per target. __BASE_FILE__ is the file being
// compiled; a name written by hand in each file could be copied by mistake, which compiles without
// a warning and runs the other file's kernels. (With -ffile-prefix-map the name is relative to the
// source root, which is an include directory.)
#define HWY_TARGET_INCLUDE __BASE_FILE__

#include <hwy/detect_targets.h>
