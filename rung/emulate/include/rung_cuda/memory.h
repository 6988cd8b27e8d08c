// SPDX-License-Identifier: Apache-2.0
// Loads and stores with cache hints, which have no effect; address spaces; clocks.
#pragma once

#include "rung/simt/ordered_memory.hpp"
#include "rung_cuda/builtin.h"

#define RUNG_LOAD(name)             \
  template <class T>                \
  inline T name(const T* address) { \
    return *address;                \
  }
RUNG_LOAD(__ldg)
RUNG_LOAD(__ldcg)
RUNG_LOAD(__ldca)
RUNG_LOAD(__ldcs)
RUNG_LOAD(__ldlu)
RUNG_LOAD(__ldcv)
#undef RUNG_LOAD
#define RUNG_STORE(name)                                        \
  template <class T>                                            \
  inline void name(T* address, std::type_identity_t<T> value) { \
    *address = value;                                           \
  }
RUNG_STORE(__stwb)
RUNG_STORE(__stcg)
RUNG_STORE(__stcs)
RUNG_STORE(__stwt)
#undef RUNG_STORE

// The recorder's hooks, with the signatures that g++ requires.
extern "C" {
void __tsan_read_range(void* address, long bytes);
void __tsan_write_range(void* address, long bytes);
}

/// Versions of memcpy, memmove and memset that record accesses, since the compiler emits no hooks
/// for these functions. Copies of 1, 2, 4, 8 or 16 bytes become loads and stores, which have hooks.
/// A thread's own variables are excluded: they can stay in registers unless their address is taken.
namespace rung::cuda::hooked {
#define RUNG_HOOKED inline __attribute__((always_inline))
RUNG_HOOKED void note_read(const void* address, size_t bytes) {
  if (__builtin_object_size(address, 0) != ~size_t{0}) return;
  __tsan_read_range(const_cast<void*>(address), static_cast<long>(bytes));
}
RUNG_HOOKED void note_write(void* address, size_t bytes) {
  if (__builtin_object_size(address, 0) != ~size_t{0}) return;
  __tsan_write_range(address, static_cast<long>(bytes));
}
RUNG_HOOKED void note_copy(void* to, const void* from, size_t bytes) {
  if (__builtin_constant_p(bytes) && bytes <= 16 && (bytes & (bytes - 1)) == 0) return;
  note_read(from, bytes);
  note_write(to, bytes);
}
RUNG_HOOKED void* memcpy(void* to, const void* from, size_t bytes) {
  note_copy(to, from, bytes);
  return __builtin_memcpy(to, from, bytes);
}
RUNG_HOOKED void* memmove(void* to, const void* from, size_t bytes) {
  note_copy(to, from, bytes);
  return __builtin_memmove(to, from, bytes);
}
RUNG_HOOKED void* memset(void* to, int value, size_t bytes) {
  note_write(to, bytes);
  return __builtin_memset(to, value, bytes);
}
#undef RUNG_HOOKED
}  // namespace rung::cuda::hooked

namespace rung::cuda {
/// Returns true for addresses in the dynamic or static shared memory of the calling thread's block.
bool in_shared(const void* address);
bool in_kernel();
unsigned dynamic_shared_bytes();

/// Registers a __constant__ variable, which kernels may only read.
struct ConstantVariable {
  ConstantVariable(const volatile void* begin, size_t bytes, const char* name,
                   const char* file = __builtin_FILE());
};
}  // namespace rung::cuda

// Shared-window addresses are offsets from the base of the block's shared memory.
inline size_t __cvta_generic_to_shared(const void* address) {
  return static_cast<size_t>(static_cast<const char*>(address) - rung::cuda::shared_base);
}
inline void* __cvta_shared_to_generic(size_t address) { return rung::cuda::shared_base + address; }
inline size_t __cvta_generic_to_global(const void* address) {
  return reinterpret_cast<size_t>(address);
}
inline void* __cvta_global_to_generic(size_t address) { return reinterpret_cast<void*>(address); }
inline size_t __cvta_generic_to_constant(const void* address) {
  return reinterpret_cast<size_t>(address);
}
inline unsigned __isShared(const void* address) { return rung::cuda::in_shared(address); }
inline unsigned __isGlobal(const void* address) { return !rung::cuda::in_shared(address); }
inline unsigned __isConstant(const void*) { return 0; }
inline unsigned __isLocal(const void*) { return 0; }

#define __builtin_assume(condition) ((condition) ? (void)0 : __builtin_unreachable())
#define __builtin_assume_aligned_to(pointer, bytes) __builtin_assume_aligned(pointer, bytes)
#define __nv_associate_access_property(pointer, property) (pointer)

namespace rung::cuda {
/// Returns this machine's clock in cycles or nanoseconds; strictly increasing.
unsigned long long cycles();
unsigned long long nanoseconds();
}  // namespace rung::cuda
inline long long clock64() { return static_cast<long long>(rung::cuda::cycles()); }
inline unsigned long long globaltimer() { return rung::cuda::nanoseconds(); }
