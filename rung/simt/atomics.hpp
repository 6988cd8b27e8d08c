// SPDX-License-Identifier: Apache-2.0
// Atomics and fences of the simulated GPU. Blocks may run on several OS threads, so these are real
// atomics; relaxed, as on the chip. Each counts against a budget after which the thread lets
// others run, so that a thread that spins on an atomic cannot starve the one it waits for.
#pragma once

#include <atomic>
#include <concepts>
#include <type_traits>

#include "rung/core/export.hpp"
#include "rung/simt/sync.hpp"

namespace rung::simt {

inline constexpr int atomics_before_yield = 256;
extern RUNG_API constinit thread_local int atomics_left __attribute__((tls_model("initial-exec")));

/// Whether something that others may wait for has changed since a thread gave way.
extern RUNG_API constinit thread_local bool memory_changed
    __attribute__((tls_model("initial-exec")));

inline void count_atomic(bool changed) {
  memory_changed |= changed;
  if (--atomics_left <= 0) yield();
}

template <class T, class... Us>
concept AnyOf = (std::same_as<T, Us> || ...);
template <class T>
concept AtomicInteger = AnyOf<T, int, unsigned, long long, unsigned long long>;
template <class T>
concept AtomicNumber = AtomicInteger<T> || AnyOf<T, float, double>;

/// Replaces *address by change(*address); the old value.
template <class T, class Change>
T atomic_update(T* address, Change change) {
  std::atomic_ref<T> cell(*address);
  T old = cell.load(std::memory_order_relaxed);
  while (!cell.compare_exchange_weak(old, change(old), std::memory_order_relaxed)) {
  }
  count_atomic(change(old) != old);
  return old;
}

namespace dialect {

template <AtomicNumber T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  const T old = std::atomic_ref<T>(*address).fetch_add(value, std::memory_order_relaxed);
  count_atomic(value != T{});
  return old;
}
template <AnyOf<int, unsigned> T>
T atomicSub(T* address, std::type_identity_t<T> value) {
  const T old = std::atomic_ref<T>(*address).fetch_sub(value, std::memory_order_relaxed);
  count_atomic(value != T{});
  return old;
}
template <AtomicInteger T>
T atomicMin(T* address, std::type_identity_t<T> value) {
  return atomic_update(address, [=](T old) { return value < old ? value : old; });
}
template <AtomicInteger T>
T atomicMax(T* address, std::type_identity_t<T> value) {
  return atomic_update(address, [=](T old) { return value > old ? value : old; });
}
template <AnyOf<int, unsigned, unsigned long long, float> T>
T atomicExch(T* address, std::type_identity_t<T> value) {
  const T old = std::atomic_ref<T>(*address).exchange(value, std::memory_order_relaxed);
  count_atomic(value != old);
  return old;
}
template <AnyOf<int, unsigned, unsigned long long, unsigned short> T>
T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> desired) {
  const T before = expected;
  const bool swapped = std::atomic_ref<T>(*address).compare_exchange_strong(
      expected, desired, std::memory_order_relaxed);
  count_atomic(swapped && desired != before);
  return expected;
}
template <AtomicInteger T>
T atomicAnd(T* address, std::type_identity_t<T> value) {
  const T old = std::atomic_ref<T>(*address).fetch_and(value, std::memory_order_relaxed);
  count_atomic((old & value) != old);
  return old;
}
template <AtomicInteger T>
T atomicOr(T* address, std::type_identity_t<T> value) {
  const T old = std::atomic_ref<T>(*address).fetch_or(value, std::memory_order_relaxed);
  count_atomic((old | value) != old);
  return old;
}
template <AtomicInteger T>
T atomicXor(T* address, std::type_identity_t<T> value) {
  const T old = std::atomic_ref<T>(*address).fetch_xor(value, std::memory_order_relaxed);
  count_atomic(value != T{});
  return old;
}
/// Counts up and wraps to 0 after `last`.
inline unsigned atomicInc(unsigned* address, unsigned last) {
  return atomic_update(address, [=](unsigned old) { return old >= last ? 0u : old + 1; });
}
/// Counts down and wraps to `last` after 0, and from anything above it.
inline unsigned atomicDec(unsigned* address, unsigned last) {
  return atomic_update(address,
                       [=](unsigned old) { return old == 0 || old > last ? last : old - 1; });
}

inline void __threadfence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline void __threadfence_block() { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline void __threadfence_system() { std::atomic_thread_fence(std::memory_order_seq_cst); }

}  // namespace dialect
}  // namespace rung::simt
