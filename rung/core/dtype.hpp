// SPDX-License-Identifier: Apache-2.0
// Element types: names, sizes, conversions, and visit(), which maps a run-time DType to a template
// argument. The small floats are plain structs of their bits; arithmetic is done in float.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "rung/core/error.hpp"
#include "rung/core/export.hpp"

struct __half;         // NOLINT(bugprone-reserved-identifier,readability-identifier-naming): CUDA's
struct __nv_bfloat16;  // NOLINT(bugprone-reserved-identifier,readability-identifier-naming)

namespace rung {

enum class DType : std::uint8_t { f32, f64, f16, bf16, e4m3, e5m2, i8, u8, i32, i64, u16 };
/// Returns false for values outside the enumeration.
constexpr bool is_dtype(DType dtype) noexcept { return dtype <= DType::u16; }

namespace detail {

/// Rounds a float to `Exponent` + `Mantissa` bits, to nearest even, with subnormals; overflow
/// gives infinity, or NaN for a `Finite` format (e4m3: no infinity, S.1111.111 is the only NaN).
template <int Exponent, int Mantissa, bool Finite>
RUNG_HD constexpr std::uint32_t round_bits(float value) {
  constexpr int bias = (1 << (Exponent - 1)) - 1;
  constexpr std::uint32_t all_ones = ((1u << Exponent) - 1) << Mantissa;
  constexpr std::uint32_t nan =
      Finite ? all_ones | ((1u << Mantissa) - 1) : all_ones | (1u << (Mantissa - 1));
  constexpr std::uint32_t infinity = Finite ? nan : all_ones;
  const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, value);
  const std::uint32_t sign = (bits >> 31) << (Exponent + Mantissa);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | nan;
  const int exponent = static_cast<int>(magnitude >> 23) - 127;
  // Significand with its hidden bit; the shift aligns it to the target's last place.
  const std::uint64_t significand =
      (magnitude & 0x7fffffu) | (magnitude >> 23 != 0 ? 0x800000u : 0u);
  const bool subnormal = exponent < 1 - bias;
  int shift = 23 - Mantissa + (subnormal ? 1 - bias - exponent : 0);
  if (magnitude >> 23 == 0) shift = 23 - Mantissa + (1 - bias) + 126;
  if (shift > 40) return sign;
  const std::uint64_t half = std::uint64_t{1} << (shift - 1);
  const std::uint64_t odd = (significand >> shift) & 1;
  std::uint64_t result = (significand + half - 1 + odd) >> shift;
  if (!subnormal && magnitude >> 23 != 0) {
    result += static_cast<std::uint64_t>(exponent + bias - 1) << Mantissa;
  }
  const std::uint64_t limit = Finite ? nan : all_ones;
  return sign | (result >= limit ? infinity : static_cast<std::uint32_t>(result));
}

/// Converts the bits of a small float to float. Exact: float represents every value of these
/// formats.
template <int Exponent, int Mantissa, bool Finite>
RUNG_HD constexpr float widen_bits(std::uint32_t bits) {
  constexpr int bias = (1 << (Exponent - 1)) - 1;
  constexpr std::uint32_t all_ones = (1u << Exponent) - 1;
  const std::uint32_t sign = (bits >> (Exponent + Mantissa)) << 31;
  const std::uint32_t exponent = (bits >> Mantissa) & all_ones;
  const std::uint32_t mantissa = bits & ((1u << Mantissa) - 1);
  if (exponent == all_ones && (!Finite || mantissa == (1u << Mantissa) - 1)) {
    return __builtin_bit_cast(float, sign | 0x7f800000u | (mantissa << (23 - Mantissa)));
  }
  if (exponent == 0) {
    if (mantissa == 0) return __builtin_bit_cast(float, sign);
    std::uint32_t shifted = mantissa;
    int leading = 0;
    for (; (shifted & (1u << Mantissa)) == 0; ++leading) shifted <<= 1;
    const std::uint32_t place = static_cast<std::uint32_t>(127 - bias + 1 - leading);
    return __builtin_bit_cast(
        float, sign | (place << 23) | ((shifted & ((1u << Mantissa) - 1)) << (23 - Mantissa)));
  }
  return __builtin_bit_cast(float,
                            sign | ((exponent + 127 - bias) << 23) | (mantissa << (23 - Mantissa)));
}

/// Floating-point number of 8 or 16 bits: storage and conversions.
template <class Storage, int Exponent, int Mantissa, bool Finite = false>
struct SmallFloat {
  Storage bits;

  SmallFloat() = default;
  RUNG_HD constexpr explicit SmallFloat(float value)
      : bits(static_cast<Storage>(round_bits<Exponent, Mantissa, Finite>(value))) {}
  static RUNG_HD constexpr SmallFloat from_bits(Storage raw) {
    SmallFloat value;
    value.bits = raw;
    return value;
  }
  RUNG_HD constexpr explicit operator float() const {
    return widen_bits<Exponent, Mantissa, Finite>(bits);
  }
};

}  // namespace detail

using f16 = detail::SmallFloat<std::uint16_t, 5, 10>;
using e4m3 = detail::SmallFloat<std::uint8_t, 4, 3, true>;
using e5m2 = detail::SmallFloat<std::uint8_t, 5, 2>;

/// bfloat16: the upper half of a float, so that widening is a shift.
struct bf16 {
  std::uint16_t bits;

  bf16() = default;
  RUNG_HD constexpr explicit bf16(float value) : bits(0) {
    const std::uint32_t raw = __builtin_bit_cast(std::uint32_t, value);
    const bool nan = (raw & 0x7fffffffu) > 0x7f800000u;
    bits = static_cast<std::uint16_t>(nan ? (raw >> 16) | 0x40u
                                          : (raw + 0x7fffu + ((raw >> 16) & 1u)) >> 16);
  }
  static RUNG_HD constexpr bf16 from_bits(std::uint16_t raw) {
    bf16 value{};
    value.bits = raw;
    return value;
  }
  RUNG_HD constexpr explicit operator float() const {
    return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16);
  }
};

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<f16> {
  static constexpr DType value = DType::f16;
};
template <>
struct DTypeOf<bf16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct DTypeOf<e4m3> {
  static constexpr DType value = DType::e4m3;
};
template <>
struct DTypeOf<e5m2> {
  static constexpr DType value = DType::e5m2;
};
template <>
struct DTypeOf<std::int8_t> {
  static constexpr DType value = DType::i8;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::u8;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<long> {
  static_assert(sizeof(long) == 8);
  static constexpr DType value = DType::i64;
};
template <>
struct DTypeOf<long long> {
  static constexpr DType value = DType::i64;
};
template <>
struct DTypeOf<std::uint16_t> {
  static constexpr DType value = DType::u16;
};
/// DTypes of CUDA's __half and __nv_bfloat16; cuda_fp16.h and cuda_bf16.h need not be included.
template <>
struct DTypeOf<__half> {
  static constexpr DType value = DType::f16;
};
template <>
struct DTypeOf<__nv_bfloat16> {
  static constexpr DType value = DType::bf16;
};
template <class T>
inline constexpr DType dtype_of = DTypeOf<std::remove_cv_t<T>>::value;

/// Type in which values of T are accumulated: float for the small floats, else T itself.
template <class T>
using Accumulator = std::conditional_t<(std::is_class_v<T>), float, T>;

constexpr std::size_t size_of(DType dtype) noexcept {
  constexpr std::uint8_t sizes[] = {4, 8, 2, 2, 1, 1, 1, 1, 4, 8, 2};
  return sizes[static_cast<std::size_t>(dtype)];
}
constexpr bool is_floating(DType dtype) noexcept { return dtype <= DType::e5m2; }

/// Returns the distance from 1 to the next larger value (the unit of error bounds); 0 for integers.
constexpr double epsilon(DType dtype) noexcept {
  constexpr double steps[] = {0x1p-23, 0x1p-52, 0x1p-10, 0x1p-7, 0x1p-3, 0x1p-2};
  return is_floating(dtype) ? steps[static_cast<std::size_t>(dtype)] : 0.0;
}

RUNG_API std::string_view to_string(DType dtype) noexcept;
/// Parses "f32", "bf16" ...; throws Error(invalid_argument) that lists the accepted names.
RUNG_API DType parse_dtype(std::string_view text);
/// Returns all names, "f32, f64, ...", for messages.
RUNG_API const std::string& dtype_names();

namespace detail {
[[noreturn]] RUNG_API void throw_dtype(DType given);
}

/// List of element types.
template <class... Ts>
struct DTypes {
  static constexpr bool contains(DType dtype) { return ((dtype_of<Ts> == dtype) || ...); }
};

/// Calls f.template operator()<T>() for the T of `dtype`; throws Error if no T in the list matches.
/// All instances must return the same type.
template <class First, class... Rest, class F>
decltype(auto) visit(DType dtype, F&& f) {
  if (dtype == dtype_of<First>) return f.template operator()<First>();
  if constexpr (sizeof...(Rest) > 0) {
    return visit<Rest...>(dtype, std::forward<F>(f));
  } else {
    detail::throw_dtype(dtype);
    return f.template operator()<First>();
  }
}

/// Calls visit() with every element type.
template <class F>
decltype(auto) visit_any(DType dtype, F&& f) {
  return visit<float, double, f16, bf16, e4m3, e5m2, std::int8_t, std::uint8_t, std::int32_t,
               std::int64_t, std::uint16_t>(dtype, std::forward<F>(f));
}

/// Converts one scalar of any type to or from double: for oracles, files and tests, not for
/// kernels. Storing rounds once, to nearest even; integer types saturate, and NaN becomes 0.
/// `element` may be unaligned.
RUNG_API double load_as_double(DType dtype, const void* element);
RUNG_API void store_from_double(DType dtype, void* element, double value);

}  // namespace rung
