// SPDX-License-Identifier: Apache-2.0
// Pipeline primitives: __pipeline_memcpy_async, commits and waits.
#pragma once

#include "cuda_runtime.h"
#include "rung/simt/async_copy.hpp"

inline void __pipeline_memcpy_async(void* to, const void* from, size_t bytes, size_t zeros = 0,
                                    RungPlace place = RungPlace::current()) {
  rung::simt::async_copy(to, from, static_cast<int>(bytes), static_cast<int>(bytes - zeros), place);
}
inline void __pipeline_commit() { rung::simt::async_commit(); }
inline void __pipeline_wait_prior(size_t pending) {
  rung::simt::async_wait_group(static_cast<int>(pending));
}
