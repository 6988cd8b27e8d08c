// SPDX-License-Identifier: Apache-2.0
// Conversions between float and the 16-bit formats, in all rounding modes.
#pragma once

#include "rung_cuda/convert.h"
#include "rung_cuda/numbers.h"

namespace rung::cuda {

/// Returns true if the magnitude is rounded up. `rest`: discarded bits; `half`: half a unit in the
/// last place.
inline bool rounds_up(Rounding rounding, bool negative, unsigned kept, unsigned rest,
                      unsigned half) {
  switch (rounding) {
    case rn:
      return rest > half || (rest == half && (kept & 1) != 0);
    case ru:
      return rest != 0 && !negative;
    case rd:
      return rest != 0 && negative;
    case rz:
      break;
  }
  return false;
}

inline unsigned short to_half_bits(float value, Rounding rounding) {
  const unsigned bits = __builtin_bit_cast(unsigned, value);
  const unsigned sign = bits >> 16 & 0x8000u;
  const unsigned magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7fff;  // canonical NaN of GPUs
  if (magnitude == 0x7f800000u) return static_cast<unsigned short>(sign | 0x7c00u);
  const int exponent = static_cast<int>(magnitude >> 23) - 127;
  // Below 2^-14 the result is subnormal: its exponent is fixed, and the leading one is explicit.
  const int shift = exponent < -14 ? 13 + (-14 - exponent) : 13;
  const unsigned mantissa =
      magnitude < 0x00800000u ? magnitude << 1 : (magnitude & 0x7fffffu) | 0x800000u;
  unsigned kept = 0, rest = 0, half = 1;
  if (shift <= 24) {
    kept = mantissa >> shift;
    rest = mantissa & ((1u << shift) - 1);
    half = 1u << (shift - 1);
  } else {
    rest = mantissa != 0 ? 1 : 0;
    half = 2;
  }
  unsigned result =
      exponent < -14 ? kept : kept - 0x400u + (static_cast<unsigned>(exponent + 15) << 10);
  if (rounds_up(rounding, sign != 0, result, rest, half)) ++result;
  if (exponent > 15) result = 0x7c00u + (rest != 0);
  if (result >= 0x7c00u) {
    // Overflow gives the largest finite number if the mode rounds this sign toward zero, else
    // infinity.
    const bool stays =
        rounding == rz || (rounding == ru && sign != 0) || (rounding == rd && sign == 0);
    result = stays ? 0x7bffu : 0x7c00u;
  }
  return static_cast<unsigned short>(sign | result);
}

inline float from_half_bits(unsigned short bits) {
  const unsigned sign = static_cast<unsigned>(bits & 0x8000u) << 16;
  const unsigned magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) {
    return __builtin_bit_cast(float, sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  }
  if (magnitude >= 0x400u) {
    return __builtin_bit_cast(float, sign | ((magnitude << 13) + (112u << 23)));
  }
  const float small = static_cast<float>(magnitude) * 5.9604644775390625e-8f;  // 2^-24
  return __builtin_bit_cast(float, sign | __builtin_bit_cast(unsigned, small));
}

inline unsigned short to_bfloat_bits(float value, Rounding rounding) {
  const unsigned bits = __builtin_bit_cast(unsigned, value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  unsigned kept = bits >> 16;
  const bool up = rounds_up(rounding, (bits & 0x80000000u) != 0, kept, bits & 0xffffu, 0x8000u);
  return static_cast<unsigned short>(up ? kept + 1 : kept);
}
inline float from_bfloat_bits(unsigned short bits) {
  return __builtin_bit_cast(float, static_cast<unsigned>(bits) << 16);
}

}  // namespace rung::cuda
