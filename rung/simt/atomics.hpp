// SPDX-License-Identifier: Apache-2.0
// Atomics and fences of the simulated GPU. Blocks may run on several OS threads, so the
// implementation uses the host's atomic instructions with relaxed order, as a GPU does. Each atomic
// counts against a budget; a thread that exhausts it yields, so that a thread that spins on an
// atomic cannot starve the thread it waits for.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "rung/core/export.hpp"
#include "rung/simt/sync.hpp"

namespace rung::simt {

inline constexpr int atomics_before_yield = 256;
extern RUNG_API constinit thread_local int atomics_left __attribute__((tls_model("initial-exec")));

/// True if pollable memory (atomic, ordered or volatile) has changed since a thread last yielded.
extern RUNG_API constinit thread_local bool memory_changed
    __attribute__((tls_model("initial-exec")));

template <class T, class... Us>
concept AnyOf = (std::same_as<T, Us> || ...);
template <class T>
concept AtomicInteger = AnyOf<T, int, unsigned, long long, unsigned long long>;
template <class T>
concept AtomicNumber = AtomicInteger<T> || AnyOf<T, float, double>;

enum class AtomicKind : std::uint8_t {
  add,
  min,
  max,
  exchange,
  bit_and,
  bit_or,
  bit_xor,
  increment,  // wraps to 0 after the operand
  decrement   // wraps to the operand after 0 and from any value above the operand
};

/// Set of threads with respect to which an access is atomic.
enum class AtomicScope : std::uint8_t { block, device };

/// Memory order of an atomic access, encoded as in std::memory_order from 0 (relaxed) to 5. Legacy
/// CUDA atomics and volatile accesses state none: their writes release only after a fence, and
/// their reads are assumed to acquire.
inline constexpr int unstated_order = -1;

/// Performs an atomic operation and returns the old value. Not inline: kernels are compiled with a
/// hook at each access, and the operation must count as one access.
template <class T>
RUNG_API T atomic_update(T* address, AtomicKind kind, T operand, Place place,
                         AtomicScope scope = AtomicScope::device);
/// Compares and exchanges; returns the old value. `guess`: the program may have read `expected` by
/// a plain load, which this comparison validates.
template <class T>
RUNG_API T atomic_compare_exchange(T* address, T expected, T desired, Place place,
                                   AtomicScope scope = AtomicScope::device,
                                   int order = unstated_order, bool guess = true);
enum class FenceScope : std::uint8_t { block, device };
RUNG_API void fence(FenceScope scope);

namespace dialect {

template <AtomicNumber T>
T atomicAdd(T* address, std::type_identity_t<T> value, Place place = Place::current()) {
  return atomic_update(address, AtomicKind::add, value, place);
}
template <AnyOf<int, unsigned> T>
T atomicSub(T* address, std::type_identity_t<T> value, Place place = Place::current()) {
  return atomic_update(address, AtomicKind::add, static_cast<T>(0u - static_cast<unsigned>(value)),
                       place);
}
template <AtomicInteger T>
T atomicMin(T* address, std::type_identity_t<T> value, Place place = Place::current()) {
  return atomic_update(address, AtomicKind::min, value, place);
}
template <AtomicInteger T>
T atomicMax(T* address, std::type_identity_t<T> value, Place place = Place::current()) {
  return atomic_update(address, AtomicKind::max, value, place);
}
template <AnyOf<int, unsigned, unsigned long long, float> T>
T atomicExch(T* address, std::type_identity_t<T> value, Place place = Place::current()) {
  return atomic_update(address, AtomicKind::exchange, value, place);
}
template <AnyOf<int, unsigned, unsigned long long, unsigned short> T>
T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> desired,
            Place place = Place::current()) {
  return atomic_compare_exchange(address, expected, desired, place);
}
template <AtomicInteger T>
T atomicAnd(T* address, std::type_identity_t<T> value, Place place = Place::current()) {
  return atomic_update(address, AtomicKind::bit_and, value, place);
}
template <AtomicInteger T>
T atomicOr(T* address, std::type_identity_t<T> value, Place place = Place::current()) {
  return atomic_update(address, AtomicKind::bit_or, value, place);
}
template <AtomicInteger T>
T atomicXor(T* address, std::type_identity_t<T> value, Place place = Place::current()) {
  return atomic_update(address, AtomicKind::bit_xor, value, place);
}
/// Increments and returns the old value; wraps to 0 after `last`.
inline unsigned atomicInc(unsigned* address, unsigned last, Place place = Place::current()) {
  return atomic_update(address, AtomicKind::increment, last, place);
}
/// Decrements and returns the old value; wraps to `last` after 0 and from any value above `last`.
inline unsigned atomicDec(unsigned* address, unsigned last, Place place = Place::current()) {
  return atomic_update(address, AtomicKind::decrement, last, place);
}

inline void __threadfence() { fence(FenceScope::device); }
inline void __threadfence_block() { fence(FenceScope::block); }
inline void __threadfence_system() { fence(FenceScope::device); }

}  // namespace dialect
}  // namespace rung::simt
