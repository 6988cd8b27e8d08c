// SPDX-License-Identifier: Apache-2.0
// assert() for kernels: in the simulator a failed assertion throws an Error from the launch and
// does not abort the process. It has no include guard, as <cassert>: include it last, since a later
// <cassert> redefines assert().
#include <cassert>

#if !defined(__CUDACC__) && !defined(NDEBUG)
#undef assert
#define assert(condition) \
  (static_cast<bool>(condition) ? void(0) : rung::simt::fail("assertion failed: " #condition))
#endif
