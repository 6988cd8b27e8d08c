// SPDX-License-Identifier: Apache-2.0
// Atomic operations of instrumented files, which g++ compiles to calls: records and performs them.
// Part of hooks.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rung/simt/record/host_watch.hpp"
#include "rung/simt/record/operations.hpp"

namespace rung::simt::record {

/// Records and performs an __atomic_* operation. `order`: 0 to 5, encoded as std::memory_order.
template <class T, class Operation>
inline T hooked_atomic(volatile T* p, Access access, int order, const void* site,
                       Operation operation) {
  AtomicOrder in_order;
  if (tracer.last != nullptr) {
    before_atomic(const_cast<T*>(p), sizeof(T), access, order,
                  reinterpret_cast<std::uintptr_t>(site), false, &in_order);
  } else {
    watch_host(reinterpret_cast<std::uintptr_t>(p), sizeof(T), HostAccess::atomic, site);
  }
  return operation();
}

}  // namespace rung::simt::record

#define RUNG_ATOMIC_HOOK extern "C" __attribute__((visibility("hidden"), used))
#define RUNG_HOOKED(access, expression)                                                  \
  return rung::simt::record::hooked_atomic(p, rung::simt::record::Access::access, order, \
                                           __builtin_return_address(0),                  \
                                           [&] { return expression; })

#define RUNG_ATOMIC_HOOKS(bits, T)                                                                 \
  RUNG_ATOMIC_HOOK T __tsan_atomic##bits##_load(const volatile T* source, int order) {             \
    auto* p = const_cast<volatile T*>(source);                                                     \
    RUNG_HOOKED(volatile_read, __atomic_load_n(p, __ATOMIC_SEQ_CST));                              \
  }                                                                                                \
  RUNG_ATOMIC_HOOK void __tsan_atomic##bits##_store(volatile T* p, T value, int order) {           \
    rung::simt::record::hooked_atomic(p, rung::simt::record::Access::volatile_write, order,        \
                                      __builtin_return_address(0), [&] {                           \
                                        __atomic_store_n(p, value, __ATOMIC_SEQ_CST);              \
                                        return value;                                              \
                                      });                                                          \
  }                                                                                                \
  RUNG_ATOMIC_HOOK T __tsan_atomic##bits##_exchange(volatile T* p, T value, int order) {           \
    RUNG_HOOKED(atomic, __atomic_exchange_n(p, value, __ATOMIC_SEQ_CST));                          \
  }                                                                                                \
  RUNG_ATOMIC_HOOK T __tsan_atomic##bits##_fetch_add(volatile T* p, T value, int order) {          \
    RUNG_HOOKED(atomic, __atomic_fetch_add(p, value, __ATOMIC_SEQ_CST));                           \
  }                                                                                                \
  RUNG_ATOMIC_HOOK T __tsan_atomic##bits##_fetch_sub(volatile T* p, T value, int order) {          \
    RUNG_HOOKED(atomic, __atomic_fetch_sub(p, value, __ATOMIC_SEQ_CST));                           \
  }                                                                                                \
  RUNG_ATOMIC_HOOK T __tsan_atomic##bits##_fetch_and(volatile T* p, T value, int order) {          \
    RUNG_HOOKED(atomic, __atomic_fetch_and(p, value, __ATOMIC_SEQ_CST));                           \
  }                                                                                                \
  RUNG_ATOMIC_HOOK T __tsan_atomic##bits##_fetch_or(volatile T* p, T value, int order) {           \
    RUNG_HOOKED(atomic, __atomic_fetch_or(p, value, __ATOMIC_SEQ_CST));                            \
  }                                                                                                \
  RUNG_ATOMIC_HOOK T __tsan_atomic##bits##_fetch_xor(volatile T* p, T value, int order) {          \
    RUNG_HOOKED(atomic, __atomic_fetch_xor(p, value, __ATOMIC_SEQ_CST));                           \
  }                                                                                                \
  RUNG_ATOMIC_HOOK T __tsan_atomic##bits##_fetch_nand(volatile T* p, T value, int order) {         \
    RUNG_HOOKED(atomic, __atomic_fetch_nand(p, value, __ATOMIC_SEQ_CST));                          \
  }                                                                                                \
  RUNG_ATOMIC_HOOK bool __tsan_atomic##bits##_compare_exchange_strong(volatile T* p, T* expected,  \
                                                                      T desired, int order, int) { \
    rung::simt::record::AtomicOrder in_order;                                                      \
    if (rung::simt::record::tracer.last != nullptr) {                                              \
      rung::simt::record::before_atomic(                                                           \
          const_cast<T*>(p), sizeof(T), rung::simt::record::Access::atomic, order,                 \
          reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)), true, &in_order);         \
    } else {                                                                                       \
      rung::simt::record::watch_host(reinterpret_cast<std::uintptr_t>(p), sizeof(T),               \
                                     rung::simt::record::HostAccess::atomic,                       \
                                     __builtin_return_address(0));                                 \
    }                                                                                              \
    return __atomic_compare_exchange_n(p, expected, desired, false, __ATOMIC_SEQ_CST,              \
                                       __ATOMIC_SEQ_CST);                                          \
  }                                                                                                \
  RUNG_ATOMIC_HOOK bool __tsan_atomic##bits##_compare_exchange_weak(                               \
      volatile T* p, T* expected, T desired, int order, int otherwise) {                           \
    return __tsan_atomic##bits##_compare_exchange_strong(p, expected, desired, order, otherwise);  \
  }                                                                                                \
  RUNG_ATOMIC_HOOK T __tsan_atomic##bits##_compare_exchange_val(volatile T* p, T expected,         \
                                                                T desired, int order, int) {       \
    RUNG_HOOKED(atomic, (__atomic_compare_exchange_n(p, &expected, desired, false,                 \
                                                     __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST),          \
                         expected));                                                               \
  }

RUNG_ATOMIC_HOOKS(8, std::uint8_t)
RUNG_ATOMIC_HOOKS(16, std::uint16_t)
RUNG_ATOMIC_HOOKS(32, std::uint32_t)
RUNG_ATOMIC_HOOKS(64, std::uint64_t)

RUNG_ATOMIC_HOOK void __tsan_atomic_thread_fence(int) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  rung::simt::record::fence(true);
}
RUNG_ATOMIC_HOOK void __tsan_atomic_signal_fence(int) {}
