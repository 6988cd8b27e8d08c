// SPDX-License-Identifier: Apache-2.0
// Integer intrinsics: bits, high words of products, dot products, packed 8-bit and 16-bit
// operations.
#pragma once

#include <stdint.h>

#include <type_traits>

#include "rung_cuda/vector_types.h"

constexpr int __popc(unsigned x) { return __builtin_popcount(x); }
constexpr int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
constexpr int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
constexpr int __clzll(long long x) {
  return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x));
}
constexpr int __ffs(int x) { return __builtin_ffs(x); }
constexpr int __ffsll(long long x) { return __builtin_ffsll(x); }
constexpr unsigned long long __brevll(unsigned long long x) {
  unsigned long long reversed = 0;
  for (int bit = 0; bit < 64; ++bit) reversed |= (x >> bit & 1) << (63 - bit);
  return reversed;
}
constexpr unsigned __brev(unsigned x) { return static_cast<unsigned>(__brevll(x) >> 32); }
/// Returns the position of the n-th set bit, counted from bit `base` upward (n < 0: downward); ~0
/// if there is none.
constexpr unsigned __fns(unsigned mask, unsigned base, int n) {
  if (n == 0) return mask >> base & 1 ? base : ~0u;
  for (int at = static_cast<int>(base), step = n > 0 ? 1 : -1; at >= 0 && at < 32; at += step) {
    if ((mask >> at & 1) == 0) continue;
    n -= step;
    if (n == 0) return static_cast<unsigned>(at);
  }
  return ~0u;
}
constexpr unsigned __umulhi(unsigned x, unsigned y) {
  return static_cast<unsigned>(static_cast<uint64_t>(x) * y >> 32);
}
constexpr int __mulhi(int x, int y) { return static_cast<int>(static_cast<int64_t>(x) * y >> 32); }
constexpr unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(x) * y >> 64);
}
constexpr long long __mul64hi(long long x, long long y) {
  return static_cast<long long>(static_cast<__int128>(x) * y >> 64);
}
constexpr int __mul24(int x, int y) {
  const auto part = [](int v) { return static_cast<int>(static_cast<unsigned>(v) << 8) >> 8; };
  return static_cast<int>(static_cast<unsigned>(part(x)) * static_cast<unsigned>(part(y)));
}
constexpr unsigned __umul24(unsigned x, unsigned y) { return (x & 0xffffff) * (y & 0xffffff); }
constexpr int mul24(int x, int y) { return __mul24(x, y); }
constexpr unsigned umul24(unsigned x, unsigned y) { return __umul24(x, y); }
constexpr unsigned umulhi(unsigned x, unsigned y) { return __umulhi(x, y); }
constexpr int mulhi(int x, int y) { return __mulhi(x, y); }
constexpr int __hadd(int x, int y) { return static_cast<int>((static_cast<int64_t>(x) + y) >> 1); }
constexpr int __rhadd(int x, int y) {
  return static_cast<int>((static_cast<int64_t>(x) + y + 1) >> 1);
}
constexpr unsigned __uhadd(unsigned x, unsigned y) {
  return static_cast<unsigned>((static_cast<uint64_t>(x) + y) >> 1);
}
constexpr unsigned __urhadd(unsigned x, unsigned y) {
  return static_cast<unsigned>((static_cast<uint64_t>(x) + y + 1) >> 1);
}
constexpr unsigned __usad(unsigned x, unsigned y, unsigned z) {
  return z + (x > y ? x - y : y - x);
}
constexpr unsigned __sad(int x, int y, unsigned z) {
  return z + (x > y ? static_cast<unsigned>(x) - static_cast<unsigned>(y)
                    : static_cast<unsigned>(y) - static_cast<unsigned>(x));
}
// Shifts of the pair high:low. The count wraps at 32; in variants with _lc and _rc it saturates at
// 32.
constexpr unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>(((static_cast<uint64_t>(high) << 32 | low) << (shift & 31)) >> 32);
}
constexpr unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<uint64_t>(high) << 32 | low) >> (shift & 31));
}
constexpr unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? low : __funnelshift_l(low, high, shift);
}
constexpr unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? high : __funnelshift_r(low, high, shift);
}
/// Selects four bytes of y:x by the nibbles of the selector; if bit 3 of a nibble is set, the
/// byte's sign bit is replicated.
constexpr unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const uint64_t bytes = static_cast<uint64_t>(y) << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned pick = selector >> (4 * i) & 0xf;
    unsigned byte = static_cast<unsigned>(bytes >> (8 * (pick & 7))) & 0xff;
    if ((pick & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    result |= byte << (8 * i);
  }
  return result;
}

namespace rung::cuda {
/// Returns field `i` of a word divided into fields of the size of T.
template <class T>
constexpr T field(unsigned word, int i) {
  return static_cast<T>(word >> (8 * sizeof(T) * static_cast<unsigned>(i)));
}
template <class T, class Operation>
constexpr unsigned by_fields(unsigned x, unsigned y, Operation f) {
  unsigned result = 0;
  for (int i = 0; i < static_cast<int>(4 / sizeof(T)); ++i) {
    using Bits = std::make_unsigned_t<T>;
    const unsigned one = static_cast<Bits>(f(field<T>(x, i), field<T>(y, i)));
    result |= one << (8 * sizeof(T) * static_cast<unsigned>(i));
  }
  return result;
}
template <class T>
constexpr int saturated(int x) {
  constexpr int low = static_cast<int>(std::is_signed_v<T> ? -(1 << (8 * sizeof(T) - 1)) : 0);
  constexpr int high = (1 << (8 * sizeof(T) - (std::is_signed_v<T> ? 1 : 0))) - 1;
  return x < low ? low : x > high ? high : x;
}
}  // namespace rung::cuda

#define RUNG_DOT(type, field_type)                                                           \
  constexpr type __dp4a(type x, type y, type sum) {                                          \
    for (int i = 0; i < 4; ++i) {                                                            \
      sum += static_cast<type>(rung::cuda::field<field_type>(static_cast<unsigned>(x), i)) * \
             static_cast<type>(rung::cuda::field<field_type>(static_cast<unsigned>(y), i));  \
    }                                                                                        \
    return sum;                                                                              \
  }
RUNG_DOT(int, int8_t)
RUNG_DOT(unsigned, uint8_t)
#undef RUNG_DOT
inline int __dp4a(char4 x, char4 y, int sum) {
  return sum + x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w;
}
inline unsigned __dp4a(uchar4 x, uchar4 y, unsigned sum) {
  return sum + static_cast<unsigned>(x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w);
}
constexpr int __dp2a_lo(int x, int y, int sum) {
  using namespace rung::cuda;
  const auto b = static_cast<unsigned>(y);
  return sum + field<int16_t>(static_cast<unsigned>(x), 0) * field<int8_t>(b, 0) +
         field<int16_t>(static_cast<unsigned>(x), 1) * field<int8_t>(b, 1);
}
constexpr int __dp2a_hi(int x, int y, int sum) {
  return __dp2a_lo(x, static_cast<int>(static_cast<unsigned>(y) >> 16), sum);
}

// Packed operations: name2 on two 16-bit fields, name4 on four bytes.
#define RUNG_PACKED(name, sign, expression)                                         \
  constexpr unsigned __v##name##2(unsigned x, unsigned y) {                         \
    using T = sign##int16_t;                                                        \
    return rung::cuda::by_fields<T>(x, y, [](int a, int b) { return expression; }); \
  }                                                                                 \
  constexpr unsigned __v##name##4(unsigned x, unsigned y) {                         \
    using T = sign##int8_t;                                                         \
    return rung::cuda::by_fields<T>(x, y, [](int a, int b) { return expression; }); \
  }
RUNG_PACKED(add, u, a + b)
RUNG_PACKED(sub, u, a - b)
RUNG_PACKED(addss, , rung::cuda::saturated<T>(a + b))
RUNG_PACKED(addus, u, rung::cuda::saturated<T>(a + b))
RUNG_PACKED(subss, , rung::cuda::saturated<T>(a - b))
RUNG_PACKED(subus, u, rung::cuda::saturated<T>(a - b))
RUNG_PACKED(absdiffs, , a > b ? a - b : b - a)
RUNG_PACKED(absdiffu, u, a > b ? a - b : b - a)
RUNG_PACKED(avgs, , (a + b + (a + b >= 0)) >> 1)
RUNG_PACKED(avgu, u, (a + b + 1) >> 1)
RUNG_PACKED(mins, , a < b ? a : b)
RUNG_PACKED(minu, u, a < b ? a : b)
RUNG_PACKED(maxs, , a > b ? a : b)
RUNG_PACKED(maxu, u, a > b ? a : b)
RUNG_PACKED(cmpeq, u, a == b ? -1 : 0)
RUNG_PACKED(cmpne, u, a != b ? -1 : 0)
RUNG_PACKED(cmpgts, , a > b ? -1 : 0)
RUNG_PACKED(cmpgtu, u, a > b ? -1 : 0)
RUNG_PACKED(cmpges, , a >= b ? -1 : 0)
RUNG_PACKED(cmpgeu, u, a >= b ? -1 : 0)
RUNG_PACKED(cmplts, , a < b ? -1 : 0)
RUNG_PACKED(cmpltu, u, a < b ? -1 : 0)
RUNG_PACKED(cmples, , a <= b ? -1 : 0)
RUNG_PACKED(cmpleu, u, a <= b ? -1 : 0)
RUNG_PACKED(seteq, u, a == b)
RUNG_PACKED(setne, u, a != b)
RUNG_PACKED(setgts, , a > b)
RUNG_PACKED(setgtu, u, a > b)
#undef RUNG_PACKED
constexpr unsigned __vabs2(unsigned x) {
  return rung::cuda::by_fields<int16_t>(x, x, [](int a, int) { return a < 0 ? -a : a; });
}
constexpr unsigned __vabs4(unsigned x) {
  return rung::cuda::by_fields<int8_t>(x, x, [](int a, int) { return a < 0 ? -a : a; });
}
constexpr unsigned __vneg2(unsigned x) { return __vsub2(0, x); }
constexpr unsigned __vneg4(unsigned x) { return __vsub4(0, x); }
constexpr unsigned __vsadu4(unsigned x, unsigned y) {
  const unsigned d = __vabsdiffu4(x, y);
  return (d & 0xff) + (d >> 8 & 0xff) + (d >> 16 & 0xff) + (d >> 24);
}
constexpr unsigned __vsads4(unsigned x, unsigned y) {
  const unsigned d = __vabsdiffs4(x, y);
  return (d & 0xff) + (d >> 8 & 0xff) + (d >> 16 & 0xff) + (d >> 24);
}
