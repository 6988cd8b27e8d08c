// SPDX-License-Identifier: Apache-2.0
// For kernel files, .cpp and .cu, that take long to compile: the build compiles such a file once
// per listed element type, in parallel. The file has the line
//
//     #include "rung/cpu/split.hpp"  // types: float double f16 bf16
//
// and instantiates its kernels for RUNG_SPLIT_TYPE only. A comma-separated list without blanks is
// one part: `e4m3,e5m2` are the two arguments of a template. Definitions that must exist once (the
// rung's registration) are within `#if RUNG_SPLIT_ONCE`. A file compiled on its own, by an editor
// or a linter, is the part for float, unless it defines RUNG_SPLIT_TYPE before this header. See
// rung_split() in cmake/split.cmake.
#pragma once

#ifndef RUNG_SPLIT_TYPE
#define RUNG_SPLIT_TYPE float
#endif
#ifndef RUNG_SPLIT_ONCE
#define RUNG_SPLIT_ONCE 1
#endif
