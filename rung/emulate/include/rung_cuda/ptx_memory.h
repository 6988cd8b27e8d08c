// SPDX-License-Identifier: Apache-2.0
// PTX instructions on memory and on warps.
#pragma once

#include "rung/simt/async_copy.hpp"
#include "rung/simt/matrix.hpp"
#include "rung/simt/ordered_memory.hpp"
#include "rung_cuda/groups.h"
#include "rung_cuda/ptx_types.h"

namespace rung::ptx {

using simt::Place;

template <class T>
inline char* pointer(T address) {
  if constexpr (std::is_pointer_v<T>) {
    return const_cast<char*>(reinterpret_cast<const char*>(address));
  } else {
    return reinterpret_cast<char*>(static_cast<unsigned long long>(address));
  }
}
/// Layout of .shared addresses: an offset in the block's shared memory. In addresses of another
/// block of the cluster (mapa), the upper bits contain the block's rank plus one.
inline constexpr unsigned rank_shift = 24, offset_mask = (1u << rank_shift) - 1;
template <class T>
inline char* shared_pointer(T address) {
  const auto number = static_cast<unsigned>(get<unsigned long long>(address));
  char* const own = cuda::shared_base + (number & offset_mask);
  if (__builtin_expect(number > offset_mask, 0)) {
    const int rank = static_cast<int>(number >> rank_shift) - 1;
    return static_cast<char*>(cuda::cluster_address(own, rank, Place::current()));
  }
  return own;
}

template <class T, int N>
struct Vector {
  T at[N];
};
template <class T, int N>
inline Vector<T, N> load(const char* from) {
  return *reinterpret_cast<const Vector<T, N>*>(from);
}
template <class T, int N>
inline Vector<T, N> load_ordered(const char* from, Place place, simt::MemoryOrder order,
                                 simt::AtomicScope scope) {
  Vector<T, N> v;
  if constexpr (sizeof(T) >= 4 || N == 1) {
    for (int i = 0; i < N; ++i) {
      v.at[i] = simt::ordered_load(reinterpret_cast<const T*>(from) + i, order, "ld", place, scope);
    }
  } else {
    v = load<T, N>(from);
  }
  return v;
}
template <class T, class... V>
inline void store(char* to, const V&... values) {
  *reinterpret_cast<Vector<T, sizeof...(V)>*>(to) = {values...};
}
template <class T, class... V>
inline void store_ordered(Place place, simt::MemoryOrder order, simt::AtomicScope scope, char* to,
                          const V&... values) {
  T* next = reinterpret_cast<T*>(to);
  (simt::ordered_store(next++, T(values), order, "st", place, scope), ...);
}

#define RUNG_ATOM(name, expression)                                                                \
  template <class T>                                                                               \
  inline T atom_##name(char* address, T value, Place place, simt::AtomicScope scope, int order) {  \
    using Raw = std::conditional_t<sizeof(T) == 8, unsigned long long,                             \
                                   std::conditional_t<sizeof(T) == 4, unsigned, unsigned short>>;  \
    return cuda::atomic_change_bits<Raw>(                                                          \
        reinterpret_cast<T*>(address), [=](T x) -> T { return expression; }, place, scope, order); \
  }
RUNG_ATOM(add, ptx::add<T>(x, value))
RUNG_ATOM(min, ptx::min<T>(x, value))
RUNG_ATOM(max, ptx::max<T>(x, value))
RUNG_ATOM(and, static_cast<T>(x& value))
RUNG_ATOM(or, static_cast<T>(x | value))
RUNG_ATOM(xor, static_cast<T>(x ^ value))
RUNG_ATOM(exch, ((void)x, value))
RUNG_ATOM(inc, x >= value ? T(0) : static_cast<T>(x + 1))
RUNG_ATOM(dec, x == 0 || x > value ? value : static_cast<T>(x - 1))
#undef RUNG_ATOM
template <class T>
inline T atom_cas(char* address, T expected, T desired, Place place, simt::AtomicScope scope,
                  int order) {
  using Raw = std::conditional_t<sizeof(T) == 8, unsigned long long,
                                 std::conditional_t<sizeof(T) == 4, unsigned, unsigned short>>;
  return cuda::atomic_compare<Raw>(reinterpret_cast<T*>(address), expected, desired, place, scope,
                                   order);
}

/// Shuffles a value. `limit` holds the last lane (bits 0-4) and the segment mask (bits 8-12).
inline unsigned shuffle(unsigned mask, unsigned value, unsigned operand, unsigned limit,
                        simt::Shuffle kind, bool& in_range, Place place) {
  const int width = 32 - static_cast<int>(limit >> 8 & 31);
  const int lane = simt::lane_index(), first = lane & ~(width - 1), last = first + width - 1;
  const int by = static_cast<int>(operand & 31);
  int source = first + (by & (width - 1));
  if (kind == simt::Shuffle::up) source = lane - by;
  if (kind == simt::Shuffle::down) source = lane + by;
  if (kind == simt::Shuffle::exclusive_or) source = lane ^ by;
  in_range = source >= first && source <= last;
  return static_cast<unsigned>(
      simt::shuffle(mask, value, kind, static_cast<int>(operand), width, place));
}

inline void barrier_sync(unsigned id, Place place) {
  if (id == 0) {
    __syncthreads(place);
  } else {
    const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
    simt::named_barrier_sync(static_cast<int>(id), static_cast<int>((threads + 31) / 32 * 32),
                             place);
  }
}

// cp.async
template <class A, class B>
inline void async_copy(char* to, const char* from, A bytes, B valid, Place place) {
  simt::async_copy(to, from, static_cast<int>(bytes), static_cast<int>(valid), place);
}
inline void async_commit() { simt::async_commit(); }
template <class T>
inline void async_wait(T pending) {
  simt::async_wait_group(static_cast<int>(pending));
}
inline void async_wait_all() { simt::async_wait_all(); }

// ldmatrix and mma
template <bool transposed, class... R>
inline void load_matrix(Place place, const char* row, R&... registers) {
  unsigned to[sizeof...(R)];
  simt::load_matrix(to, sizeof...(R), transposed, row, place);
  int i = 0;
  (put(registers, to[i++]), ...);
}
template <bool transposed, class... R>
inline void store_matrix(Place place, char* row, const R&... registers) {
  const unsigned from[] = {get<unsigned>(registers)...};
  simt::store_matrix(row, from, sizeof...(R), transposed, place);
}
template <class T, class... Rest>
inline auto list(T first, Rest... rest) {
  return Vector<T, 1 + static_cast<int>(sizeof...(Rest))>{{first, rest...}};
}
template <class T>
constexpr simt::MatrixType matrix_type() {
  if constexpr (std::is_same_v<T, f16>) return simt::MatrixType::f16;
  if constexpr (std::is_same_v<T, bf16>) return simt::MatrixType::bf16;
  return simt::MatrixType::tf32;
}
/// Computes a product; operands of half the depth are padded with zeros.
template <class Sum, class A, class D, int NA, class TA, int NB, class TB, class C, int NC>
inline void multiply(const Vector<D, NC>& d, const Vector<TA, NA>& a, const Vector<TB, NB>& b,
                     const Vector<C, NC>& c, Place place) {
  unsigned left[4] = {}, right[2] = {};
  for (int i = 0; i < NA; ++i) left[i] = get<unsigned>(a.at[i]);
  for (int i = 0; i < NB; ++i) right[i] = get<unsigned>(b.at[i]);
  float sums[4];
  for (int i = 0; i < 4; ++i) {
    if constexpr (std::is_same_v<Sum, f16>) {
      const auto pair = get<f16x2>(c.at[i / 2]);
      sums[i] = i % 2 == 0 ? pair.low : pair.high;
    } else {
      sums[i] = get<float>(c.at[i]);
    }
  }
  simt::multiply_m16n8(sums, left, right, sums, matrix_type<A>(), place);
  for (int i = 0; i < NC; ++i) {
    if constexpr (std::is_same_v<Sum, f16>) {
      put(*d.at[i], f16x2{sums[2 * i], sums[2 * i + 1]});
    } else {
      put(*d.at[i], sums[i]);
    }
  }
}
template <class Sum, class A, class B, class D, class VA, class VB, class C>
inline void multiply_m16n8k16(const D& d, const VA& a, const VB& b, const C& c, Place place) {
  multiply<Sum, A>(d, a, b, c, place);
}
template <class Sum, class A, class B, class D, class VA, class VB, class C>
inline void multiply_m16n8k8(const D& d, const VA& a, const VB& b, const C& c, Place place) {
  multiply<Sum, A>(d, a, b, c, place);
}
template <class Sum, class A, class B, class D, class VA, class VB, class C>
inline void multiply_m16n8k4(const D& d, const VA& a, const VB& b, const C& c, Place place) {
  multiply<Sum, A>(d, a, b, c, place);
}

}  // namespace rung::ptx
