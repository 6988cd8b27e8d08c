// SPDX-License-Identifier: Apache-2.0
// cuda::atomic and cuda::atomic_ref, also declared in cuda::std.
#pragma once

#include <type_traits>

#include "cuda_runtime.h"

namespace cuda {

enum thread_scope {
  thread_scope_system,
  thread_scope_device,
  thread_scope_block,
  thread_scope_thread
};

namespace std {
using namespace ::std;
enum memory_order {
  memory_order_relaxed = __ATOMIC_RELAXED,
  memory_order_consume = __ATOMIC_CONSUME,
  memory_order_acquire = __ATOMIC_ACQUIRE,
  memory_order_release = __ATOMIC_RELEASE,
  memory_order_acq_rel = __ATOMIC_ACQ_REL,
  memory_order_seq_cst = __ATOMIC_SEQ_CST
};
}  // namespace std
using std::memory_order;
using std::memory_order_acq_rel;
using std::memory_order_acquire;
using std::memory_order_consume;
using std::memory_order_relaxed;
using std::memory_order_release;
using std::memory_order_seq_cst;

/// Returns the simulator's memory order for a load or store of memory order `order`.
constexpr rung::simt::MemoryOrder rung_order(std::memory_order order) {
  return order == memory_order_relaxed ? rung::simt::MemoryOrder::relaxed
                                       : rung::simt::MemoryOrder::ordered;
}
constexpr rung::simt::AtomicScope rung_scope(thread_scope scope) {
  return scope == thread_scope_system || scope == thread_scope_device
             ? rung::simt::AtomicScope::device
             : rung::simt::AtomicScope::block;
}

/// Atomic operations on the address that the derived class `Self` provides.
template <class T, class Self, thread_scope scope>
class rung_atomic_operations {
  using Order = std::memory_order;
  using Bits = ::std::conditional_t<
      sizeof(T) == 8, unsigned long long,
      ::std::conditional_t<sizeof(T) == 4, unsigned,
                           ::std::conditional_t<sizeof(T) == 2, unsigned short, unsigned char>>>;

 public:
  bool is_lock_free() const { return true; }
  T load(Order order = memory_order_seq_cst, RungPlace place = RungPlace::current()) const {
    if (!rung::cuda::in_kernel()) return *address();
    return rung::simt::ordered_load(address(), rung_order(order), "atomic load", place,
                                    rung_scope(scope));
  }
  void store(T value, Order order = memory_order_seq_cst,
             RungPlace place = RungPlace::current()) const {
    rung::simt::ordered_store(address(), value, rung_order(order), "atomic store", place,
                              rung_scope(scope));
  }
  operator T() const { return load(); }
  T operator=(T value) const {
    store(value);
    return value;
  }
  T exchange(T value, Order order = memory_order_seq_cst,
             RungPlace place = RungPlace::current()) const {
    return change([=](T) { return value; }, order, place);
  }
  bool compare_exchange_strong(T& expected, T desired, Order order = memory_order_seq_cst,
                               Order = memory_order_seq_cst,
                               RungPlace place = RungPlace::current()) const {
    const T before = expected;
    expected = change([=](T x) { return x == before ? desired : x; }, order, place);
    return expected == before;
  }
  bool compare_exchange_weak(T& expected, T desired, Order order = memory_order_seq_cst,
                             Order otherwise = memory_order_seq_cst,
                             RungPlace place = RungPlace::current()) const {
    return compare_exchange_strong(expected, desired, order, otherwise, place);
  }
  template <class Operand>
  T fetch_add(Operand value, Order order = memory_order_seq_cst,
              RungPlace place = RungPlace::current()) const {
    return change([=](T x) { return static_cast<T>(x + value); }, order, place);
  }
  template <class Operand>
  T fetch_sub(Operand value, Order order = memory_order_seq_cst,
              RungPlace place = RungPlace::current()) const {
    return change([=](T x) { return static_cast<T>(x - value); }, order, place);
  }
  T fetch_and(T value, Order order = memory_order_seq_cst,
              RungPlace place = RungPlace::current()) const {
    return change([=](T x) { return x & value; }, order, place);
  }
  T fetch_or(T value, Order order = memory_order_seq_cst,
             RungPlace place = RungPlace::current()) const {
    return change([=](T x) { return x | value; }, order, place);
  }
  T fetch_xor(T value, Order order = memory_order_seq_cst,
              RungPlace place = RungPlace::current()) const {
    return change([=](T x) { return x ^ value; }, order, place);
  }
  T fetch_min(T value, Order order = memory_order_seq_cst,
              RungPlace place = RungPlace::current()) const {
    return change([=](T x) { return value < x ? value : x; }, order, place);
  }
  T fetch_max(T value, Order order = memory_order_seq_cst,
              RungPlace place = RungPlace::current()) const {
    return change([=](T x) { return x < value ? value : x; }, order, place);
  }
  T operator++() const { return static_cast<T>(fetch_add(1) + 1); }
  T operator++(int) const { return fetch_add(1); }
  T operator--() const { return static_cast<T>(fetch_sub(1) - 1); }
  T operator--(int) const { return fetch_sub(1); }
  template <class Operand>
  T operator+=(Operand value) const {
    return static_cast<T>(fetch_add(value) + value);
  }
  template <class Operand>
  T operator-=(Operand value) const {
    return static_cast<T>(fetch_sub(value) - value);
  }
  T operator|=(T value) const { return static_cast<T>(fetch_or(value) | value); }
  T operator&=(T value) const { return static_cast<T>(fetch_and(value) & value); }
  T operator^=(T value) const { return static_cast<T>(fetch_xor(value) ^ value); }
  /// Blocks until the value differs from `old`.
  void wait(T old, Order order = memory_order_seq_cst,
            RungPlace place = RungPlace::current()) const {
    while (load(order, place) == old) {
    }
  }
  void notify_one() const {}
  void notify_all() const {}

 private:
  T* address() const { return static_cast<const Self*>(this)->rung_address(); }
  template <class Change>
  T change(Change f, Order order, RungPlace place) const {
    return rung::cuda::atomic_change_bits<Bits>(address(), f, place, rung_scope(scope), order);
  }
};

template <class T, thread_scope scope = thread_scope_system>
class atomic : public rung_atomic_operations<T, atomic<T, scope>, scope> {
 public:
  atomic() = default;
  constexpr atomic(T value) : value_(value) {}
  atomic(const atomic&) = delete;
  using rung_atomic_operations<T, atomic<T, scope>, scope>::operator=;
  T* rung_address() const { return &value_; }

 private:
  alignas(sizeof(T)) mutable T value_;
};
template <class T, thread_scope scope = thread_scope_system>
class atomic_ref : public rung_atomic_operations<T, atomic_ref<T, scope>, scope> {
 public:
  explicit atomic_ref(T& value) : address_(&value) {}
  using rung_atomic_operations<T, atomic_ref<T, scope>, scope>::operator=;
  T* rung_address() const { return address_; }

 private:
  T* address_;
};

/// Performs a fence. Has no effect if `order` is relaxed.
inline void atomic_thread_fence(std::memory_order order, thread_scope scope = thread_scope_system) {
  if (order == memory_order_relaxed || scope == thread_scope_thread) return;
  if (scope == thread_scope_block) {
    __threadfence_block();
  } else {
    __threadfence();
  }
}

namespace std {
template <class T>
using atomic = cuda::atomic<T>;
template <class T>
using atomic_ref = cuda::atomic_ref<T>;
using atomic_int = atomic<int>;
using atomic_uint = atomic<unsigned>;
}  // namespace std

}  // namespace cuda
