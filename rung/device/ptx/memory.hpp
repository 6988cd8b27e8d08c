// SPDX-License-Identifier: Apache-2.0
// Acquire, release and relaxed accesses of global memory, for communication between blocks:
// decoupled look-back, grid barriers by flags, producers and consumers.
//
//   data[i] = x;                                          // any plain writes
//   ptx::store_release(&flag, 1u);                        // releases this thread's writes
//   while (ptx::load_acquire(&flag) != 1u) ptx::nanosleep(20);   // acquires them in another block
//
// A thread that releases the writes of its block does so after __syncthreads(). The scope is the
// device. T is any trivially copyable type of 4 or 8 bytes; relaxed accesses support 16 bytes, too,
// which are atomic (.b128): 16 bytes can hold a value and its flag.
//
// In the simulator, a load that returns the same value again yields to other threads, and to blocks
// that have not started: kernels must poll by these functions, never by plain or volatile loads. A
// wait that no thread can end is reported as a deadlock.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rung/device/device.hpp"

#if !defined(__CUDACC__)
#include "rung/simt/ordered_memory.hpp"
#endif

namespace rung::inline RUNG_TARGET::ptx {

/// True for types of 4, 8 or 16 bytes, at most `Most`, that one atomic access can load or store.
template <class T, int Most>
inline constexpr bool is_ordered_word =
    std::is_trivially_copyable_v<T> && (sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16) &&
    sizeof(T) <= Most;
/// True for the types that the additions below support.
template <class T>
inline constexpr bool is_ordered_number =
    std::is_same_v<T, int> || std::is_same_v<T, unsigned> || std::is_same_v<T, float> ||
    std::is_same_v<T, unsigned long long> || std::is_same_v<T, double>;

#if defined(__CUDACC__)

namespace ptx_detail {

template <class To, class From>
__device__ __forceinline__ To same_bits(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof(To));
  return to;
}

}  // namespace ptx_detail

/// Loads with acquire semantics.
template <class T>
__device__ __forceinline__ T load_acquire(const T* from) {
  static_assert(is_ordered_word<T, 8>);
  if constexpr (sizeof(T) == 4) {
    std::uint32_t bits;
    asm volatile("ld.acquire.gpu.global.b32 %0, [%1];"
                 : "=r"(bits)
                 : "l"(__cvta_generic_to_global(from))
                 : "memory");
    return ptx_detail::same_bits<T>(bits);
  } else {
    std::uint64_t bits;
    asm volatile("ld.acquire.gpu.global.b64 %0, [%1];"
                 : "=l"(bits)
                 : "l"(__cvta_generic_to_global(from))
                 : "memory");
    return ptx_detail::same_bits<T>(bits);
  }
}

/// Loads with relaxed semantics: eventually returns stores of other blocks, but orders nothing.
/// 16-byte loads are atomic; they must be aligned to 16 bytes.
template <class T>
__device__ __forceinline__ T load_relaxed(const T* from) {
  static_assert(is_ordered_word<T, 16>);
  if constexpr (sizeof(T) == 4) {
    std::uint32_t bits;
    asm volatile("ld.relaxed.gpu.global.b32 %0, [%1];"
                 : "=r"(bits)
                 : "l"(__cvta_generic_to_global(from))
                 : "memory");
    return ptx_detail::same_bits<T>(bits);
  } else if constexpr (sizeof(T) == 8) {
    std::uint64_t bits;
    asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];"
                 : "=l"(bits)
                 : "l"(__cvta_generic_to_global(from))
                 : "memory");
    return ptx_detail::same_bits<T>(bits);
  } else {
    ulonglong2 bits;
    asm volatile(
        "{\n .reg .b128 whole;\n ld.relaxed.gpu.global.b128 whole, [%2];\n"
        " mov.b128 {%0, %1}, whole;\n}"
        : "=l"(bits.x), "=l"(bits.y)
        : "l"(__cvta_generic_to_global(from))
        : "memory");
    return ptx_detail::same_bits<T>(bits);
  }
}

/// Stores with release semantics: this thread's earlier accesses, and all that it has acquired,
/// happen before the store.
template <class T>
__device__ __forceinline__ void store_release(T* to, std::type_identity_t<T> value) {
  static_assert(is_ordered_word<T, 8>);
  if constexpr (sizeof(T) == 4) {
    asm volatile("st.release.gpu.global.b32 [%0], %1;" ::"l"(__cvta_generic_to_global(to)),
                 "r"(ptx_detail::same_bits<std::uint32_t>(value))
                 : "memory");
  } else {
    asm volatile("st.release.gpu.global.b64 [%0], %1;" ::"l"(__cvta_generic_to_global(to)),
                 "l"(ptx_detail::same_bits<std::uint64_t>(value))
                 : "memory");
  }
}

template <class T>
__device__ __forceinline__ void store_relaxed(T* to, std::type_identity_t<T> value) {
  static_assert(is_ordered_word<T, 16>);
  if constexpr (sizeof(T) == 4) {
    asm volatile("st.relaxed.gpu.global.b32 [%0], %1;" ::"l"(__cvta_generic_to_global(to)),
                 "r"(ptx_detail::same_bits<std::uint32_t>(value))
                 : "memory");
  } else if constexpr (sizeof(T) == 8) {
    asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(__cvta_generic_to_global(to)),
                 "l"(ptx_detail::same_bits<std::uint64_t>(value))
                 : "memory");
  } else {
    const auto bits = ptx_detail::same_bits<ulonglong2>(value);
    asm volatile(
        "{\n .reg .b128 whole;\n mov.b128 whole, {%1, %2};\n"
        " st.relaxed.gpu.global.b128 [%0], whole;\n}" ::"l"(__cvta_generic_to_global(to)),
        "l"(bits.x), "l"(bits.y)
        : "memory");
  }
}

/// Adds `value` with release semantics, without returning the old value; for arrival counters.
__device__ __forceinline__ void reduce_add_release(unsigned* to, unsigned value) {
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(to)),
               "r"(value)
               : "memory");
}
__device__ __forceinline__ void reduce_add_release(unsigned long long* to,
                                                   unsigned long long value) {
  asm volatile("red.release.gpu.global.add.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(to)),
               "l"(value)
               : "memory");
}

/// Adds `value` with acquire and release semantics and returns the old value: the last block of a
/// grid that arrives sees the results of the other blocks.
__device__ __forceinline__ unsigned atomic_add_acquire_release(unsigned* to, unsigned value) {
  unsigned old;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;"
               : "=r"(old)
               : "l"(__cvta_generic_to_global(to)), "r"(value)
               : "memory");
  return old;
}
__device__ __forceinline__ unsigned long long atomic_add_acquire_release(unsigned long long* to,
                                                                         unsigned long long value) {
  unsigned long long old;
  asm volatile("atom.acq_rel.gpu.global.add.u64 %0, [%1], %2;"
               : "=l"(old)
               : "l"(__cvta_generic_to_global(to)), "l"(value)
               : "memory");
  return old;
}

/// Issues an acquire-release fence of device scope; cheaper than __threadfence(), which is
/// sequentially consistent.
__device__ __forceinline__ void fence_acquire_release() {
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
}

/// Suspends the thread for about `nanoseconds`; for polling loops.
__device__ __forceinline__ void nanosleep(unsigned nanoseconds) { __nanosleep(nanoseconds); }

#else

template <class T>
T load_acquire(const T* from, simt::Place place = simt::Place::current()) {
  static_assert(is_ordered_word<T, 8>);
  return simt::ordered_load(from, simt::MemoryOrder::ordered, "load_acquire", place);
}
template <class T>
T load_relaxed(const T* from, simt::Place place = simt::Place::current()) {
  static_assert(is_ordered_word<T, 16>);
  return simt::ordered_load(from, simt::MemoryOrder::relaxed, "load_relaxed", place);
}
template <class T>
void store_release(T* to, std::type_identity_t<T> value,
                   simt::Place place = simt::Place::current()) {
  static_assert(is_ordered_word<T, 8>);
  simt::ordered_store<T>(to, value, simt::MemoryOrder::ordered, "store_release", place);
}
template <class T>
void store_relaxed(T* to, std::type_identity_t<T> value,
                   simt::Place place = simt::Place::current()) {
  static_assert(is_ordered_word<T, 16>);
  simt::ordered_store<T>(to, value, simt::MemoryOrder::relaxed, "store_relaxed", place);
}
inline void reduce_add_release(unsigned* to, unsigned value,
                               simt::Place place = simt::Place::current()) {
  __threadfence();
  atomicAdd(to, value, place);
}
inline void reduce_add_release(unsigned long long* to, unsigned long long value,
                               simt::Place place = simt::Place::current()) {
  __threadfence();
  atomicAdd(to, value, place);
}
inline unsigned atomic_add_acquire_release(unsigned* to, unsigned value,
                                           simt::Place place = simt::Place::current()) {
  __threadfence();
  const unsigned old = atomicAdd(to, value, place);
  __threadfence();
  return old;
}
inline unsigned long long atomic_add_acquire_release(unsigned long long* to,
                                                     unsigned long long value,
                                                     simt::Place place = simt::Place::current()) {
  __threadfence();
  const unsigned long long old = atomicAdd(to, value, place);
  __threadfence();
  return old;
}
inline void fence_acquire_release() { __threadfence(); }
inline void nanosleep(unsigned nanoseconds) { __nanosleep(nanoseconds); }

#endif

}  // namespace rung::inline RUNG_TARGET::ptx
