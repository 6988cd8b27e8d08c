// SPDX-License-Identifier: Apache-2.0
// PTX instructions on bits: logic, shifts, bit fields, counts, selection.
#pragma once

#include "rung_cuda/ptx_types.h"

namespace rung::ptx {

template <class T>
using Bits = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned>;

template <class T>
inline T bit_and(T a, T b) {
  return static_cast<T>(a & b);
}
template <class T>
inline T bit_or(T a, T b) {
  return static_cast<T>(a | b);
}
template <class T>
inline T bit_xor(T a, T b) {
  return static_cast<T>(a ^ b);
}
template <class T>
inline T bit_not(T a) {
  if constexpr (std::is_same_v<T, bool>)
    return !a;
  else
    return static_cast<T>(~a);
}
template <class T>
inline T is_zero(T a) {
  return a == 0;
}
template <class T>
inline T shl(T a, unsigned b) {
  return b >= 8 * sizeof(T) ? T(0) : static_cast<T>(static_cast<Bits<T>>(a) << b);
}
template <class T>
inline T shr(T a, unsigned b) {
  const unsigned most = 8 * sizeof(T) - 1;
  return b > most ? (a < 0 ? static_cast<T>(-1) : T(0)) : static_cast<T>(a >> b);
}
template <class T>
inline T funnel_left(T a, T b, unsigned c) {
  return __funnelshift_l(a, b, c);
}
template <class T>
inline T funnel_right(T a, T b, unsigned c) {
  return __funnelshift_r(a, b, c);
}
template <class T>
inline T funnel_left_clamped(T a, T b, unsigned c) {
  return __funnelshift_lc(a, b, c);
}
template <class T>
inline T funnel_right_clamped(T a, T b, unsigned c) {
  return __funnelshift_rc(a, b, c);
}
/// Computes lop3: each result bit is the bit of `table` at the index formed by bits a, b and c, a
/// being the most significant.
template <class T>
inline T lop3(T a, T b, T c, unsigned table) {
  T result = 0;
  for (unsigned i = 0; i < 8; ++i) {
    if ((table >> i & 1) == 0) continue;
    result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
  }
  return result;
}
template <class T>
inline T prmt(T a, T b, T selector) {
  return __byte_perm(a, b, selector);
}
template <class T>
inline T bfe(T a, unsigned position, unsigned length) {
  const unsigned width = 8 * sizeof(T);
  position &= 0xff;
  length &= 0xff;
  if (length == 0) return 0;
  if (position >= width) return std::is_signed_v<T> && a < 0 ? static_cast<T>(-1) : T(0);
  const unsigned kept = length < width - position ? length : width - position;
  return static_cast<T>(static_cast<T>(static_cast<Bits<T>>(a) << (width - position - kept)) >>
                        (width - kept));
}
template <class T>
inline T bfi(T a, T b, unsigned position, unsigned length) {
  const unsigned width = 8 * sizeof(T);
  if (position >= width || length == 0) return b;
  const T ones = length >= width ? static_cast<T>(~T(0)) : static_cast<T>((T(1) << length) - 1);
  const T mask = static_cast<T>(ones << position);
  return static_cast<T>((b & ~mask) | (a << position & mask));
}
template <class T>
inline unsigned bfind(T a) {
  if (std::is_signed_v<T> && a < 0) a = static_cast<T>(~a);
  return a == 0 ? ~0u : 63u - static_cast<unsigned>(__clzll(static_cast<long long>(a)));
}
template <class T>
inline unsigned popc(T a) {
  return static_cast<unsigned>(__popcll(static_cast<Bits<T>>(a)));
}
template <class T>
inline unsigned clz(T a) {
  return sizeof(T) == 8 ? static_cast<unsigned>(__clzll(static_cast<long long>(a)))
                        : static_cast<unsigned>(__clz(static_cast<int>(a)));
}
template <class T>
inline T brev(T a) {
  return sizeof(T) == 8 ? static_cast<T>(__brevll(a))
                        : static_cast<T>(__brev(static_cast<unsigned>(a)));
}
template <class T>
inline T fns(unsigned mask, unsigned base, unsigned n) {
  return static_cast<T>(__fns(mask, base, static_cast<int>(n)));
}
template <class T>
inline T selp(T a, T b, bool predicate) {
  return predicate ? a : b;
}
template <class T, class C>
inline T slct(T a, T b, C c) {
  return c >= 0 ? a : b;
}

}  // namespace rung::ptx
