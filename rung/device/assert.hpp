// SPDX-License-Identifier: Apache-2.0
// assert() for kernels: in the simulator a failed assertion throws an Error from the launch and
// does not abort the process. Like <cassert>, it has no include guard. Include it last: a later
// <cassert> redefines assert().
#include <cassert>

#if !defined(__CUDACC__) && !defined(NDEBUG)
#undef assert
#define assert(condition) \
  (static_cast<bool>(condition) ? void(0) : rung::simt::fail("assertion failed: " #condition))
#endif
