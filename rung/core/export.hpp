// SPDX-License-Identifier: Apache-2.0
// Annotations: RUNG_API exports a symbol from librung.so, RUNG_HD compiles a function for host and
// device, RUNG_ALWAYS_INLINE forces inlining.
#pragma once

#include "rung/core/language.hpp"

#if defined(__GNUC__)
#define RUNG_API __attribute__((visibility("default")))
#define RUNG_ALWAYS_INLINE __attribute__((always_inline))
#else
#define RUNG_API
#define RUNG_ALWAYS_INLINE
#endif

#if defined(__CUDACC__)
#define RUNG_HD __host__ __device__
#else
#define RUNG_HD
#endif
