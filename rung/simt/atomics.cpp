// SPDX-License-Identifier: Apache-2.0
// Atomics and fences: performed by the host's atomics and reported to the recorder.
#include "rung/simt/atomics.hpp"

#include <atomic>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "rung/simt/record/operations.hpp"
#include "rung/simt/scheduler.hpp"

namespace rung::simt {
namespace {

record::Access access_of(AtomicScope scope) {
  return scope == AtomicScope::block ? record::Access::block_atomic : record::Access::atomic;
}

void count_atomic(bool changed, Place place) {
  memory_changed |= changed;
  if (--atomics_left > 0) return;
  Worker& here = running_worker("an atomic operation");
  here.current().operation = "a loop of atomic operations";
  here.current().place = place;
  yield();
}

/// Returns true if the address is in the running block's shared memory. All blocks of a cluster run
/// on one OS thread, so a plain operation can replace the several times slower locked instruction.
bool is_own_shared(const void* address) {
  if (this_worker == nullptr || !this_worker->busy()) return false;
  const Block& block = *this_worker->current().block;
  return static_cast<std::size_t>(static_cast<const std::byte*>(address) - block.shared) <
         block.shared_capacity;
}

template <class T>
struct Updated {
  T old;
  bool changed;
};

/// Replaces the value at the address by change(value).
template <class T, class Change>
Updated<T> replace(T* address, Change change) {
  T old;
  if (is_own_shared(address)) {
    old = *address;
    *address = change(old);
  } else {
    std::atomic_ref<T> cell(*address);
    old = cell.load(std::memory_order_relaxed);
    while (!cell.compare_exchange_weak(old, change(old), std::memory_order_relaxed)) {
    }
  }
  return {old, change(old) != old};
}

template <class T>
Updated<T> update(T* address, AtomicKind kind, T operand) {
  if (kind == AtomicKind::add) {
    T old;
    if (is_own_shared(address)) {
      old = *address;
      if constexpr (std::is_integral_v<T>) {  // integers wrap around
        using Bits = std::make_unsigned_t<T>;
        *address = static_cast<T>(static_cast<Bits>(old) + static_cast<Bits>(operand));
      } else {
        *address = old + operand;
      }
    } else {
      old = std::atomic_ref<T>(*address).fetch_add(operand, std::memory_order_relaxed);
    }
    return {old, operand != T{}};
  }
  if (kind == AtomicKind::exchange) {
    const T old = std::atomic_ref<T>(*address).exchange(operand, std::memory_order_relaxed);
    return {old, operand != old};
  }
  return replace(address, [=](T old) -> T {
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
T atomic_update(T* address, AtomicKind kind, T operand, Place place, AtomicScope scope) {
  Updated<T> result;
  {
    record::AtomicOrder in_order;
    record::note_atomic(address, sizeof(T), access_of(scope), unstated_order, place, false,
                        &in_order);
    if (record::tracer.last != nullptr) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, &operand, sizeof(T));
      record::note_operand(bits, sizeof(T), place);
    }
    result = update(address, kind, operand);
  }
  count_atomic(result.changed, place);
  return result.old;
}

template <class T>
T atomic_compare_exchange(T* address, T expected, T desired, Place place, AtomicScope scope,
                          int order, bool guess) {
  const T before = expected;
  bool swapped = false;
  {
    record::AtomicOrder in_order;
    record::note_atomic(address, sizeof(T), access_of(scope), order, place, guess, &in_order);
    swapped = std::atomic_ref<T>(*address).compare_exchange_strong(expected, desired,
                                                                   std::memory_order_relaxed);
  }
  count_atomic(swapped && desired != before, place);
  return expected;
}

void fence(FenceScope scope) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  record::fence(scope == FenceScope::device);
}

template int atomic_update(int*, AtomicKind, int, Place, AtomicScope);
template unsigned atomic_update(unsigned*, AtomicKind, unsigned, Place, AtomicScope);
template long long atomic_update(long long*, AtomicKind, long long, Place, AtomicScope);
template unsigned long long atomic_update(unsigned long long*, AtomicKind, unsigned long long,
                                          Place, AtomicScope);
template float atomic_update(float*, AtomicKind, float, Place, AtomicScope);
template double atomic_update(double*, AtomicKind, double, Place, AtomicScope);
template int atomic_compare_exchange(int*, int, int, Place, AtomicScope, int, bool);
template unsigned atomic_compare_exchange(unsigned*, unsigned, unsigned, Place, AtomicScope, int,
                                          bool);
template unsigned long long atomic_compare_exchange(unsigned long long*, unsigned long long,
                                                    unsigned long long, Place, AtomicScope, int,
                                                    bool);
template unsigned short atomic_compare_exchange(unsigned short*, unsigned short, unsigned short,
                                                Place, AtomicScope, int, bool);
template unsigned char atomic_compare_exchange(unsigned char*, unsigned char, unsigned char, Place,
                                               AtomicScope, int, bool);

}  // namespace rung::simt
