// SPDX-License-Identifier: Apache-2.0
// assert() for kernels: in the simulator a failed one ends the launch with an Error, not the
// process. Like <cassert> it may be included again, and must be where <cassert> came in after
// device.hpp.
#include <cassert>

#if !defined(__CUDACC__) && !defined(NDEBUG)
#undef assert
#define assert(condition) \
  (static_cast<bool>(condition) ? void(0) : rung::simt::fail("assertion failed: " #condition))
#endif
