// SPDX-License-Identifier: Apache-2.0
// PTX types, and access to registers of any C++ type as if they had PTX types.
#pragma once

#include <type_traits>

#include "rung_cuda/small_float_bits.h"

namespace rung::ptx {

struct f16 {
  unsigned short bits;
  f16() = default;
  f16(float x) : bits(cuda::to_half_bits(x, cuda::rn)) {}
  operator float() const { return cuda::from_half_bits(bits); }
};
struct bf16 {
  unsigned short bits;
  bf16() = default;
  bf16(float x) : bits(cuda::to_bfloat_bits(x, cuda::rn)) {}
  operator float() const { return cuda::from_bfloat_bits(bits); }
};
template <class T>
struct alignas(4) Two {
  T low, high;
};
using f16x2 = Two<f16>;
using bf16x2 = Two<bf16>;
struct tf32 {
  unsigned bits;
};
struct b128 {
  unsigned long long low, high;
};
struct e4m3x2 {
  unsigned short bits;
};
struct e5m2x2 {
  unsigned short bits;
};

template <class T>
inline constexpr bool is_pair = false;
template <class T>
inline constexpr bool is_pair<Two<T>> = true;
template <class T>
inline constexpr bool is_small = std::is_same_v<T, f16> || std::is_same_v<T, bf16>;

template <class T>
struct WideOf;
template <>
struct WideOf<unsigned short> {
  using Type = unsigned;
};
template <>
struct WideOf<short> {
  using Type = int;
};
template <>
struct WideOf<unsigned> {
  using Type = unsigned long long;
};
template <>
struct WideOf<int> {
  using Type = long long;
};
template <class T>
using Wide = typename WideOf<T>::Type;

/// Returns a register as a T. Converts between integer types; otherwise copies the bits, truncated
/// or extended with zeros.
template <class T, class U>
inline T get(const U& from) {
  if constexpr (std::is_same_v<T, bool>) {
    return from != 0;
  } else if constexpr (std::is_same_v<T, U>) {
    return from;
  } else if constexpr (std::is_arithmetic_v<T> && std::is_integral_v<U> &&
                       (std::is_integral_v<T> || sizeof(T) < sizeof(U))) {
    if constexpr (std::is_integral_v<T>) return static_cast<T>(from);
    return static_cast<T>(from);  // e.g. an integer literal for a float
  } else {
    T to{};
    __builtin_memcpy(static_cast<void*>(&to), &from, sizeof(T) < sizeof(U) ? sizeof(T) : sizeof(U));
    return to;
  }
}
/// Writes a value to a register of any type that is wide enough.
template <class D, class T>
inline void put(D&& to, const T& value) {
  using Plain = std::remove_cvref_t<D>;
  if constexpr (std::is_same_v<Plain, T>) {
    to = value;
  } else if constexpr (std::is_integral_v<Plain> && std::is_integral_v<T>) {
    to = static_cast<Plain>(value);
  } else {
    Plain bits{};
    __builtin_memcpy(static_cast<void*>(&bits), &value,
                     sizeof(T) < sizeof(Plain) ? sizeof(T) : sizeof(Plain));
    to = bits;
  }
}
/// Returns a destination for results to be discarded.
inline unsigned long long& sink() {
  static thread_local unsigned long long unwanted;
  return unwanted;
}

/// Returns the i-th of N equal parts of a register, lowest first.
template <int N, class T>
inline auto piece(T whole, int i) {
  constexpr int bits = 8 * sizeof(T) / N;
  const auto part = static_cast<unsigned long long>(whole) >> (bits * i);
  if constexpr (bits == 32) return static_cast<unsigned>(part);
  if constexpr (bits == 16) return static_cast<unsigned short>(part);
  if constexpr (bits == 8) return static_cast<unsigned char>(part);
}
template <class T, class... P>
inline T joined(const P&... parts) {
  constexpr int bits = 8 * sizeof(T) / sizeof...(P);
  unsigned long long whole = 0;
  int at = 0;
  const auto add = [&](unsigned long long part) {
    whole |= (bits == 64 ? part : part & ((1ull << (bits % 64)) - 1)) << at;
    at += bits;
  };
  (add(get<unsigned long long>(parts)), ...);
  return static_cast<T>(whole);
}

#define RUNG_SPECIAL(name, type, value) \
  inline type special_##name() { return static_cast<type>(value); }
RUNG_SPECIAL(laneid, unsigned, simt::lane_index())
RUNG_SPECIAL(warpid, unsigned,
             (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) / 32)
RUNG_SPECIAL(nwarpid, unsigned, 64)
RUNG_SPECIAL(smid, unsigned, blockIdx.x % 132)
RUNG_SPECIAL(nsmid, unsigned, 132)
RUNG_SPECIAL(gridid, unsigned long long, 1)
RUNG_SPECIAL(tid_x, unsigned, threadIdx.x)
RUNG_SPECIAL(tid_y, unsigned, threadIdx.y)
RUNG_SPECIAL(tid_z, unsigned, threadIdx.z)
RUNG_SPECIAL(ntid_x, unsigned, blockDim.x)
RUNG_SPECIAL(ntid_y, unsigned, blockDim.y)
RUNG_SPECIAL(ntid_z, unsigned, blockDim.z)
RUNG_SPECIAL(ctaid_x, unsigned, blockIdx.x)
RUNG_SPECIAL(ctaid_y, unsigned, blockIdx.y)
RUNG_SPECIAL(ctaid_z, unsigned, blockIdx.z)
RUNG_SPECIAL(nctaid_x, unsigned, gridDim.x)
RUNG_SPECIAL(nctaid_y, unsigned, gridDim.y)
RUNG_SPECIAL(nctaid_z, unsigned, gridDim.z)
RUNG_SPECIAL(lanemask_eq, unsigned, 1u << simt::lane_index())
RUNG_SPECIAL(lanemask_lt, unsigned, (1u << simt::lane_index()) - 1)
RUNG_SPECIAL(lanemask_le, unsigned, (2u << simt::lane_index()) - 1)
RUNG_SPECIAL(lanemask_gt, unsigned, ~((2u << simt::lane_index()) - 1))
RUNG_SPECIAL(lanemask_ge, unsigned, ~((1u << simt::lane_index()) - 1))
RUNG_SPECIAL(clock, unsigned, clock64())
RUNG_SPECIAL(clock64, unsigned long long, clock64())
RUNG_SPECIAL(clock_hi, unsigned, clock64() >> 32)
RUNG_SPECIAL(globaltimer, unsigned long long, globaltimer())
RUNG_SPECIAL(globaltimer_lo, unsigned, globaltimer())
RUNG_SPECIAL(globaltimer_hi, unsigned, globaltimer() >> 32)
RUNG_SPECIAL(dynamic_smem_size, unsigned, cuda::dynamic_shared_bytes())
#undef RUNG_SPECIAL

}  // namespace rung::ptx
