// SPDX-License-Identifier: Apache-2.0
// For kernel files that take long to compile: the build compiles such a file once for each element
// type that it names, at the same time on several processors. The file writes
//
//     #include "rung/cpu/split.hpp"  // types: float double f16 bf16
//
// and its kernels for RUNG_SPLIT_TYPE alone. What must exist once (the rung that registers itself)
// stands under `#if RUNG_SPLIT_ONCE`. A file that is compiled by itself, by an editor or a linter,
// is the part for float. See rung_split() in cmake/split.cmake.
#pragma once

#ifndef RUNG_SPLIT_TYPE
#define RUNG_SPLIT_TYPE float
#define RUNG_SPLIT_ONCE 1
#endif
