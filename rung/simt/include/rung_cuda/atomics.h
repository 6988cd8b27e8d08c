// SPDX-License-Identifier: Apache-2.0
// Atomic functions at every width, with their _block and _system forms: one implementation, since
// all memory here is as coherent as the widest scope asks for.
#pragma once

#include "rung/simt/atomics.hpp"
#include "rung_cuda/vector_types.h"

namespace rung::cuda {

using simt::count_atomic;

template <class T, class Change>
inline T atomic_change(T* address, Change change) {
  T old = __atomic_load_n(address, __ATOMIC_RELAXED);
  T next;
  do {
    next = change(old);
  } while (
      !__atomic_compare_exchange_n(address, &old, next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  count_atomic(next != old);
  return old;
}
/// The same for types that are no integers: through their bits.
template <class Bits, class T, class Change>
inline T atomic_change_bits(T* address, Change change) {
  auto* bits = reinterpret_cast<Bits*>(address);
  Bits old = __atomic_load_n(bits, __ATOMIC_RELAXED);
  for (;;) {
    T value;
    __builtin_memcpy(&value, &old, sizeof(T));
    const T changed = change(value);
    Bits next;
    __builtin_memcpy(&next, &changed, sizeof(T));
    if (__atomic_compare_exchange_n(bits, &old, next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      count_atomic(next != old);
      return value;
    }
  }
}
template <class T>
inline T atomic_add(T* address, T value) {
  const T old = __atomic_fetch_add(address, value, __ATOMIC_RELAXED);
  count_atomic(value != T{});
  return old;
}
template <class T>
inline T atomic_exchange(T* address, T value) {
  const T old = __atomic_exchange_n(address, value, __ATOMIC_RELAXED);
  count_atomic(value != old);
  return old;
}
template <class T>
inline T atomic_compare(T* address, T expected, T desired) {
  const T before = expected;
  const bool swapped = __atomic_compare_exchange_n(address, &expected, desired, false,
                                                   __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  count_atomic(swapped && desired != before);
  return expected;
}

}  // namespace rung::cuda

// One function of one type in its three scopes.
#define RUNG_ATOMIC(name, type, body)                                              \
  inline type name(type* address, type value) { return rung::cuda::body; }         \
  inline type name##_block(type* address, type value) { return rung::cuda::body; } \
  inline type name##_system(type* address, type value) { return rung::cuda::body; }
#define RUNG_ATOMIC_INTEGERS(name, body)      \
  RUNG_ATOMIC(name, int, body)                \
  RUNG_ATOMIC(name, unsigned int, body)       \
  RUNG_ATOMIC(name, long long, body)          \
  RUNG_ATOMIC(name, unsigned long long, body) \
  RUNG_ATOMIC(name, unsigned long, body)      \
  RUNG_ATOMIC(name, long, body)

RUNG_ATOMIC_INTEGERS(atomicAdd, atomic_add(address, value))
RUNG_ATOMIC(atomicAdd, float,
            atomic_change_bits<unsigned>(address, [=](float x) { return x + value; }))
RUNG_ATOMIC(atomicAdd, double,
            atomic_change_bits<unsigned long long>(address, [=](double x) { return x + value; }))
RUNG_ATOMIC(atomicSub, int, atomic_add(address, -value))
RUNG_ATOMIC(atomicSub, unsigned int, atomic_add(address, -value))
RUNG_ATOMIC_INTEGERS(atomicMin,
                     atomic_change(address, [=](auto x) { return value < x ? value : x; }))
RUNG_ATOMIC_INTEGERS(atomicMax,
                     atomic_change(address, [=](auto x) { return value > x ? value : x; }))
RUNG_ATOMIC_INTEGERS(atomicAnd, atomic_change(address, [=](auto x) { return x & value; }))
RUNG_ATOMIC_INTEGERS(atomicOr, atomic_change(address, [=](auto x) { return x | value; }))
RUNG_ATOMIC_INTEGERS(atomicXor, atomic_change(address, [=](auto x) { return x ^ value; }))
RUNG_ATOMIC_INTEGERS(atomicExch, atomic_exchange(address, value))
RUNG_ATOMIC(atomicExch, float, atomic_change_bits<unsigned>(address, [=](float) { return value; }))
RUNG_ATOMIC(atomicExch, double,
            atomic_change_bits<unsigned long long>(address, [=](double) { return value; }))
// Counting up to `value` and round, and down from it.
RUNG_ATOMIC(atomicInc, unsigned int,
            atomic_change(address, [=](unsigned x) { return x >= value ? 0u : x + 1; }))
RUNG_ATOMIC(atomicDec, unsigned int,
            atomic_change(address, [=](unsigned x) { return x == 0 || x > value ? value : x - 1; }))
#undef RUNG_ATOMIC_INTEGERS
#undef RUNG_ATOMIC

#define RUNG_COMPARE(type)                                                   \
  inline type atomicCAS(type* address, type expected, type desired) {        \
    return rung::cuda::atomic_compare(address, expected, desired);           \
  }                                                                          \
  inline type atomicCAS_block(type* address, type expected, type desired) {  \
    return rung::cuda::atomic_compare(address, expected, desired);           \
  }                                                                          \
  inline type atomicCAS_system(type* address, type expected, type desired) { \
    return rung::cuda::atomic_compare(address, expected, desired);           \
  }
RUNG_COMPARE(int)
RUNG_COMPARE(unsigned int)
RUNG_COMPARE(long long)
RUNG_COMPARE(unsigned long long)
RUNG_COMPARE(unsigned long)
RUNG_COMPARE(unsigned short)
#undef RUNG_COMPARE

// Vectors are added element by element, each atomically, as the chip documents it.
inline float2 atomicAdd(float2* address, float2 value) {
  return {atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y)};
}
inline float4 atomicAdd(float4* address, float4 value) {
  return {atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y),
          atomicAdd(&address->z, value.z), atomicAdd(&address->w, value.w)};
}
