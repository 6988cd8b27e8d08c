// SPDX-License-Identifier: Apache-2.0
// Atomics and fences: the hardware's, told to the recorder.
#include "rung/simt/atomics.hpp"

#include <atomic>

#include "rung/simt/record/operations.hpp"

namespace rung::simt {
namespace {

constexpr int relaxed = 0;

void count_atomic(bool changed) {
  memory_changed |= changed;
  if (--atomics_left <= 0) yield();
}

/// Replaces the cell by change(cell); the old value.
template <class T, class Change>
T replace(std::atomic_ref<T> cell, Change change) {
  T old = cell.load(std::memory_order_relaxed);
  while (!cell.compare_exchange_weak(old, change(old), std::memory_order_relaxed)) {
  }
  count_atomic(change(old) != old);
  return old;
}

template <class T>
T update(std::atomic_ref<T> cell, AtomicKind kind, T operand) {
  if (kind == AtomicKind::add) {
    const T old = cell.fetch_add(operand, std::memory_order_relaxed);
    count_atomic(operand != T{});
    return old;
  }
  if (kind == AtomicKind::exchange) {
    const T old = cell.exchange(operand, std::memory_order_relaxed);
    count_atomic(operand != old);
    return old;
  }
  return replace(cell, [=](T old) -> T {
    if constexpr (std::is_integral_v<T>) {
      switch (kind) {
        case AtomicKind::min:
          return operand < old ? operand : old;
        case AtomicKind::max:
          return operand > old ? operand : old;
        case AtomicKind::bit_and:
          return old & operand;
        case AtomicKind::bit_or:
          return old | operand;
        case AtomicKind::bit_xor:
          return old ^ operand;
        case AtomicKind::increment:
          return old >= operand ? T{0} : static_cast<T>(old + 1);
        case AtomicKind::decrement:
          return old == 0 || old > operand ? operand : static_cast<T>(old - 1);
        default:
          break;
      }
    }
    return old;
  });
}

}  // namespace

template <class T>
T atomic_update(T* address, AtomicKind kind, T operand, Place place) {
  record::note_atomic(address, sizeof(T), record::Access::atomic, relaxed, place);
  return update(std::atomic_ref<T>(*address), kind, operand);
}

template <class T>
T atomic_compare_exchange(T* address, T expected, T desired, Place place) {
  record::note_atomic(address, sizeof(T), record::Access::atomic, relaxed, place);
  const T before = expected;
  const bool swapped = std::atomic_ref<T>(*address).compare_exchange_strong(
      expected, desired, std::memory_order_relaxed);
  count_atomic(swapped && desired != before);
  return expected;
}

void fence(FenceScope scope) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  record::fence(scope == FenceScope::device);
}

template int atomic_update(int*, AtomicKind, int, Place);
template unsigned atomic_update(unsigned*, AtomicKind, unsigned, Place);
template long long atomic_update(long long*, AtomicKind, long long, Place);
template unsigned long long atomic_update(unsigned long long*, AtomicKind, unsigned long long,
                                          Place);
template float atomic_update(float*, AtomicKind, float, Place);
template double atomic_update(double*, AtomicKind, double, Place);
template int atomic_compare_exchange(int*, int, int, Place);
template unsigned atomic_compare_exchange(unsigned*, unsigned, unsigned, Place);
template unsigned long long atomic_compare_exchange(unsigned long long*, unsigned long long,
                                                    unsigned long long, Place);
template unsigned short atomic_compare_exchange(unsigned short*, unsigned short, unsigned short,
                                                Place);

}  // namespace rung::simt
