// SPDX-License-Identifier: Apache-2.0
// Atomic functions of every width, with their _block and _system variants. All scopes share one
// implementation, since simulated memory is coherent at system scope; checks report scopes that are
// too narrow.
#pragma once

#include "rung/simt/atomics.hpp"
#include "rung_cuda/vector_types.h"

namespace rung::cuda {

using simt::AtomicKind;
using simt::AtomicScope;
using simt::Place;

/// Type with which the simulator updates a T, such as long long for long.
template <class T>
struct AtomicAs {
  using Type = T;
};
template <>
struct AtomicAs<long> {
  using Type = long long;
};
template <>
struct AtomicAs<unsigned long> {
  using Type = unsigned long long;
};

template <class T>
inline T atomic_do(AtomicKind kind, T* address, T value, Place place, AtomicScope scope) {
  using As = typename AtomicAs<T>::Type;
  return static_cast<T>(simt::atomic_update(reinterpret_cast<As*>(address), kind,
                                            static_cast<As>(value), place, scope));
}
/// Compares and exchanges the bits of the value, as an unsigned integer of the same size.
template <class Bits, class T>
inline T atomic_compare(T* address, T expected, T desired, Place place,
                        AtomicScope scope = AtomicScope::device, int order = simt::unstated_order) {
  Bits before, after;
  __builtin_memcpy(&before, &expected, sizeof(T));
  __builtin_memcpy(&after, &desired, sizeof(T));
  before = simt::atomic_compare_exchange(reinterpret_cast<Bits*>(address), before, after, place,
                                         scope, order);
  T old;
  __builtin_memcpy(static_cast<void*>(&old), &before, sizeof(T));
  return old;
}
/// Replaces the value by change(value) in a compare-and-swap loop. Returns the old value.
template <class Bits, class T, class Change>
inline T atomic_change_bits(T* address, Change change, Place place = Place::current(),
                            AtomicScope scope = AtomicScope::device,
                            int order = simt::unstated_order) {
  auto* bits = reinterpret_cast<Bits*>(address);
  Bits old = __atomic_load_n(bits, __ATOMIC_RELAXED);
  for (;;) {
    T value;
    __builtin_memcpy(static_cast<void*>(&value), &old, sizeof(T));
    const T changed = change(value);
    Bits next;
    __builtin_memcpy(&next, &changed, sizeof(T));
    const Bits seen =
        simt::atomic_compare_exchange(bits, old, next, place, scope, order, /*guess=*/false);
    if (seen == old) return value;
    old = seen;
  }
}

}  // namespace rung::cuda

// Defines a function for one type in all three scopes.
#define RUNG_ATOMIC_SCOPED(name, type, kind, operand, scope)                            \
  inline type name(type* address, type value,                                           \
                   rung::cuda::Place place = rung::cuda::Place::current()) {            \
    return rung::cuda::atomic_do(rung::cuda::AtomicKind::kind, address, operand, place, \
                                 rung::cuda::AtomicScope::scope);                       \
  }
#define RUNG_ATOMIC(name, type, kind, operand)                 \
  RUNG_ATOMIC_SCOPED(name, type, kind, operand, device)        \
  RUNG_ATOMIC_SCOPED(name##_block, type, kind, operand, block) \
  RUNG_ATOMIC_SCOPED(name##_system, type, kind, operand, device)
#define RUNG_ATOMIC_INTEGERS(name, kind)        \
  RUNG_ATOMIC(name, int, kind, value)           \
  RUNG_ATOMIC(name, unsigned int, kind, value)  \
  RUNG_ATOMIC(name, long, kind, value)          \
  RUNG_ATOMIC(name, unsigned long, kind, value) \
  RUNG_ATOMIC(name, long long, kind, value)     \
  RUNG_ATOMIC(name, unsigned long long, kind, value)
RUNG_ATOMIC_INTEGERS(atomicAdd, add)
RUNG_ATOMIC_INTEGERS(atomicMin, min)
RUNG_ATOMIC_INTEGERS(atomicMax, max)
RUNG_ATOMIC_INTEGERS(atomicAnd, bit_and)
RUNG_ATOMIC_INTEGERS(atomicOr, bit_or)
RUNG_ATOMIC_INTEGERS(atomicXor, bit_xor)
RUNG_ATOMIC_INTEGERS(atomicExch, exchange)
RUNG_ATOMIC(atomicAdd, float, add, value)
RUNG_ATOMIC(atomicAdd, double, add, value)
RUNG_ATOMIC(atomicExch, float, exchange, value)
RUNG_ATOMIC(atomicExch, double, exchange, value)
RUNG_ATOMIC(atomicSub, int, add, -value)
RUNG_ATOMIC(atomicSub, unsigned int, add, -value)
// Increment and decrement, which wrap at the limit `value`.
RUNG_ATOMIC(atomicInc, unsigned int, increment, value)
RUNG_ATOMIC(atomicDec, unsigned int, decrement, value)
#undef RUNG_ATOMIC_INTEGERS
#undef RUNG_ATOMIC
#undef RUNG_ATOMIC_SCOPED

#define RUNG_COMPARE_SCOPED(name, type, bits, scope)                           \
  inline type name(type* address, type expected, type desired,                 \
                   rung::cuda::Place place = rung::cuda::Place::current()) {   \
    return rung::cuda::atomic_compare<bits>(address, expected, desired, place, \
                                            rung::cuda::AtomicScope::scope);   \
  }
#define RUNG_COMPARE(type, bits)                          \
  RUNG_COMPARE_SCOPED(atomicCAS, type, bits, device)      \
  RUNG_COMPARE_SCOPED(atomicCAS_block, type, bits, block) \
  RUNG_COMPARE_SCOPED(atomicCAS_system, type, bits, device)
RUNG_COMPARE(int, unsigned)
RUNG_COMPARE(unsigned int, unsigned)
RUNG_COMPARE(long long, unsigned long long)
RUNG_COMPARE(unsigned long long, unsigned long long)
RUNG_COMPARE(unsigned long, unsigned long long)
RUNG_COMPARE(unsigned short, unsigned short)
#undef RUNG_COMPARE
#undef RUNG_COMPARE_SCOPED

// Vectors are added element by element, each atomically, as documented for GPUs.
inline float2 atomicAdd(float2* address, float2 value,
                        rung::cuda::Place place = rung::cuda::Place::current()) {
  return {atomicAdd(&address->x, value.x, place), atomicAdd(&address->y, value.y, place)};
}
inline float4 atomicAdd(float4* address, float4 value,
                        rung::cuda::Place place = rung::cuda::Place::current()) {
  return {atomicAdd(&address->x, value.x, place), atomicAdd(&address->y, value.y, place),
          atomicAdd(&address->z, value.z, place), atomicAdd(&address->w, value.w, place)};
}
