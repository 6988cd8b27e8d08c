// SPDX-License-Identifier: Apache-2.0
// Atomic functions of CUDA 12.8: for any type of 1 to 8 bytes, with memory order and scope.
#pragma once

#include <type_traits>

#include "rung/simt/ordered_memory.hpp"
#include "rung_cuda/atomics.h"

#define __NV_ATOMIC_RELAXED __ATOMIC_RELAXED
#define __NV_ATOMIC_CONSUME __ATOMIC_CONSUME
#define __NV_ATOMIC_ACQUIRE __ATOMIC_ACQUIRE
#define __NV_ATOMIC_RELEASE __ATOMIC_RELEASE
#define __NV_ATOMIC_ACQ_REL __ATOMIC_ACQ_REL
#define __NV_ATOMIC_SEQ_CST __ATOMIC_SEQ_CST
#define __NV_THREAD_SCOPE_THREAD 0
#define __NV_THREAD_SCOPE_BLOCK 1
#define __NV_THREAD_SCOPE_CLUSTER 2
#define __NV_THREAD_SCOPE_DEVICE 3
#define __NV_THREAD_SCOPE_SYSTEM 4

namespace rung::cuda {

template <std::size_t bytes>
using AtomicBits = std::conditional_t<
    bytes == 8, unsigned long long,
    std::conditional_t<bytes == 4, unsigned,
                       std::conditional_t<bytes == 2, unsigned short, unsigned char>>>;

/// Returns the simulator's memory order for `order`.
inline simt::MemoryOrder builtin_order(int order) {
  return order == __NV_ATOMIC_RELAXED ? simt::MemoryOrder::relaxed : simt::MemoryOrder::ordered;
}
inline simt::AtomicScope builtin_scope(int scope) {
  return scope <= __NV_THREAD_SCOPE_BLOCK ? simt::AtomicScope::block : simt::AtomicScope::device;
}
template <class T, class Change>
T builtin_change(T* address, int order, int scope, Place place, Change change) {
  return atomic_change_bits<AtomicBits<sizeof(T)>>(address, change, place, builtin_scope(scope),
                                                   order);
}

}  // namespace rung::cuda

template <class T>
T __nv_atomic_load_n(T* from, int order, int scope = __NV_THREAD_SCOPE_SYSTEM,
                     rung::cuda::Place place = rung::cuda::Place::current()) {
  return rung::simt::ordered_load(from, rung::cuda::builtin_order(order), "atomic load", place,
                                  rung::cuda::builtin_scope(scope));
}
template <class T>
void __nv_atomic_load(T* from, T* to, int order, int scope = __NV_THREAD_SCOPE_SYSTEM,
                      rung::cuda::Place place = rung::cuda::Place::current()) {
  *to = __nv_atomic_load_n(from, order, scope, place);
}
template <class T>
void __nv_atomic_store_n(T* to, std::type_identity_t<T> value, int order,
                         int scope = __NV_THREAD_SCOPE_SYSTEM,
                         rung::cuda::Place place = rung::cuda::Place::current()) {
  rung::simt::ordered_store(to, value, rung::cuda::builtin_order(order), "atomic store", place,
                            rung::cuda::builtin_scope(scope));
}
template <class T>
void __nv_atomic_store(T* to, T* value, int order, int scope = __NV_THREAD_SCOPE_SYSTEM,
                       rung::cuda::Place place = rung::cuda::Place::current()) {
  __nv_atomic_store_n(to, *value, order, scope, place);
}
template <class T>
T __nv_atomic_exchange_n(T* address, std::type_identity_t<T> value, int order,
                         int scope = __NV_THREAD_SCOPE_SYSTEM,
                         rung::cuda::Place place = rung::cuda::Place::current()) {
  return rung::cuda::builtin_change(address, order, scope, place, [=](T) { return value; });
}
template <class T>
void __nv_atomic_exchange(T* address, T* value, T* old, int order,
                          int scope = __NV_THREAD_SCOPE_SYSTEM,
                          rung::cuda::Place place = rung::cuda::Place::current()) {
  *old = __nv_atomic_exchange_n(address, *value, order, scope, place);
}
/// Compares and exchanges bits. The weak flag and the failure order have no effect.
template <class T>
bool __nv_atomic_compare_exchange_n(T* address, T* expected, std::type_identity_t<T> desired,
                                    bool /*weak*/, int order, int /*otherwise*/,
                                    int scope = __NV_THREAD_SCOPE_SYSTEM,
                                    rung::cuda::Place place = rung::cuda::Place::current()) {
  const T before = *expected;
  *expected = rung::cuda::atomic_compare<rung::cuda::AtomicBits<sizeof(T)>>(
      address, before, desired, place, rung::cuda::builtin_scope(scope), order);
  return __builtin_memcmp(expected, &before, sizeof(T)) == 0;
}
template <class T>
bool __nv_atomic_compare_exchange(T* address, T* expected, T* desired, bool weak, int order,
                                  int otherwise, int scope = __NV_THREAD_SCOPE_SYSTEM,
                                  rung::cuda::Place place = rung::cuda::Place::current()) {
  return __nv_atomic_compare_exchange_n(address, expected, *desired, weak, order, otherwise, scope,
                                        place);
}

// Defines one function: `expression` computes the new value from the old value x and the operand.
#define RUNG_BUILTIN_ATOMIC(name, expression)                                           \
  template <class T>                                                                    \
  T __nv_atomic_fetch_##name(T* address, std::type_identity_t<T> value, int order,      \
                             int scope = __NV_THREAD_SCOPE_SYSTEM,                      \
                             rung::cuda::Place place = rung::cuda::Place::current()) {  \
    return rung::cuda::builtin_change(address, order, scope, place,                     \
                                      [=](T x) { return static_cast<T>(expression); }); \
  }
RUNG_BUILTIN_ATOMIC(add, x + value)
RUNG_BUILTIN_ATOMIC(sub, x - value)
RUNG_BUILTIN_ATOMIC(and, x& value)
RUNG_BUILTIN_ATOMIC(or, x | value)
RUNG_BUILTIN_ATOMIC(xor, x ^ value)
RUNG_BUILTIN_ATOMIC(min, value < x ? value : x)
RUNG_BUILTIN_ATOMIC(max, x < value ? value : x)
#undef RUNG_BUILTIN_ATOMIC

inline void __nv_atomic_thread_fence(int order, int scope = __NV_THREAD_SCOPE_SYSTEM) {
  if (order == __NV_ATOMIC_RELAXED || scope == __NV_THREAD_SCOPE_THREAD) return;
  rung::simt::fence(scope == __NV_THREAD_SCOPE_BLOCK ? rung::simt::FenceScope::block
                                                     : rung::simt::FenceScope::device);
}
