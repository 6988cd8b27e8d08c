// SPDX-License-Identifier: Apache-2.0
// For kernel files, .cpp and .cu, that take long to compile: the build compiles such a file once
// per element type that it names, in parallel. The file writes
//
//     #include "rung/cpu/split.hpp"  // types: float double f16 bf16
//
// and its kernels for RUNG_SPLIT_TYPE alone. A list between commas, without blanks, is one part:
// `e4m3,e5m2` are the two arguments of a template. What must exist once (the rung that registers
// itself) stands under `#if RUNG_SPLIT_ONCE`. A file that is compiled by itself, by an editor or a
// linter, is the part for float, unless it defines another RUNG_SPLIT_TYPE before this header. See
// rung_split() in cmake/split.cmake.
#pragma once

#ifndef RUNG_SPLIT_TYPE
#define RUNG_SPLIT_TYPE float
#endif
#ifndef RUNG_SPLIT_ONCE
#define RUNG_SPLIT_ONCE 1
#endif
