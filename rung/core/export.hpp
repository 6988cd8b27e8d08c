// SPDX-License-Identifier: Apache-2.0
// The two annotations of the code base: what leaves librung.so, and what a GPU may also call.
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
