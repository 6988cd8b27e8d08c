// SPDX-License-Identifier: Apache-2.0
// Conversions against references that share no code with them: the compiler's _Float16, and for
// every small format a list of all its values, decoded by the definition and searched for the
// nearest.
#include "rung/core/dtype.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "expect_error.hpp"

namespace rung {
namespace {

using test::expect_error;

/// A small floating-point format, by its definition.
struct Format {
  int exponent_bits;
  int mantissa_bits;
  bool finite;  // no infinities; only all ones is NaN

  [[nodiscard]] int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  [[nodiscard]] std::uint32_t sign_bit() const { return 1u << (exponent_bits + mantissa_bits); }

  [[nodiscard]] double decode(std::uint32_t bits) const {
    const int all_ones = (1 << exponent_bits) - 1;
    const int exponent = static_cast<int>(bits >> mantissa_bits) & all_ones;
    const int mantissa = static_cast<int>(bits) & ((1 << mantissa_bits) - 1);
    const double sign = (bits & sign_bit()) != 0 ? -1.0 : 1.0;
    if (exponent == all_ones && !finite) {
      return mantissa == 0 ? sign * INFINITY : std::numeric_limits<double>::quiet_NaN();
    }
    if (exponent == all_ones && mantissa == (1 << mantissa_bits) - 1) {
      return std::numeric_limits<double>::quiet_NaN();
    }
    const double fraction = std::ldexp(mantissa, -mantissa_bits);
    return exponent == 0 ? sign * std::ldexp(fraction, 1 - bias())
                         : sign * std::ldexp(1.0 + fraction, exponent - bias());
  }

  /// Returns all values >= 0 that are numbers, ascending; the position is the encoding.
  [[nodiscard]] std::vector<double> values() const {
    std::vector<double> all;
    for (std::uint32_t bits = 0; bits < sign_bit(); ++bits) {
      if (std::isfinite(decode(bits))) all.push_back(decode(bits));
    }
    return all;
  }
};

/// Encoder to the nearest value, ties to even; beyond the largest as if one more binade existed.
class Nearest {
 public:
  explicit Nearest(const Format& format) : format_(format), values_(format.values()) {
    const std::size_t count = values_.size();
    past_ = 2 * values_[count - 1] - values_[count - 2];
  }
  [[nodiscard]] std::uint32_t operator()(double value) const {
    const std::uint32_t sign = std::signbit(value) ? format_.sign_bit() : 0;
    const double magnitude = std::fabs(value);
    const auto above = std::lower_bound(values_.begin(), values_.end(), magnitude);
    const auto high = static_cast<std::uint32_t>(above - values_.begin());
    const double high_value = above == values_.end() ? past_ : *above;
    if (high_value == magnitude || high == 0) return sign | high;
    if (magnitude >= past_) return sign | static_cast<std::uint32_t>(values_.size());
    const double middle = (values_[high - 1] + high_value) / 2;  // exact in double
    const bool up = magnitude > middle || (magnitude == middle && high % 2 == 0);
    return sign | (up ? high : high - 1);
  }
  [[nodiscard]] const std::vector<double>& values() const { return values_; }
  [[nodiscard]] double past() const { return past_; }

 private:
  Format format_;
  std::vector<double> values_;
  double past_ = 0;
};

/// Returns floats at which rounding may fail: each value, each midpoint, and their neighbors.
std::vector<float> critical_floats(const Nearest& nearest) {
  std::vector<float> floats;
  const auto add = [&](double value) {
    const auto middle = static_cast<float>(value);
    for (const float x : {middle, std::nextafter(middle, INFINITY), std::nextafter(middle, 0.0f)}) {
      floats.push_back(x);
      floats.push_back(-x);
    }
  };
  for (std::size_t i = 0; i < nearest.values().size(); ++i) {
    const double next = i + 1 < nearest.values().size() ? nearest.values()[i + 1] : nearest.past();
    add(nearest.values()[i]);
    add((nearest.values()[i] + next) / 2);
  }
  add(nearest.past());
  add(std::numeric_limits<float>::max());
  add(std::numeric_limits<float>::denorm_min());
  return floats;
}

template <class T>
void check_format(const Format& format) {
  for (std::uint32_t bits = 0; bits < 2 * format.sign_bit(); ++bits) {
    const auto widened = static_cast<float>(T::from_bits(static_cast<decltype(T::bits)>(bits)));
    const double expected = format.decode(bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(widened)) << bits;
      ASSERT_TRUE(std::isnan(static_cast<float>(T(widened)))) << bits;
    } else {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(widened),
                std::bit_cast<std::uint32_t>(static_cast<float>(expected)))
          << bits;
      ASSERT_EQ(T(widened).bits, bits);
    }
  }
  const Nearest nearest(format);
  const auto check = [&](float value) {
    ASSERT_EQ(T(value).bits, nearest(value)) << std::hexfloat << value;
  };
  for (const float value : critical_floats(nearest)) check(value);
  std::mt19937 random(1);
  for (int i = 0; i < 200000; ++i) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (!std::isnan(value)) check(value);
  }
  check(INFINITY);
  check(-INFINITY);
  const float nan = std::bit_cast<float>(0x7f800001u);  // its payload is only in the low bits
  EXPECT_TRUE(std::isnan(static_cast<float>(T(nan))));
}

TEST(DType, F16RoundsToNearestEven) { check_format<f16>({5, 10, false}); }
TEST(DType, Bf16RoundsToNearestEven) { check_format<bf16>({8, 7, false}); }
TEST(DType, E5m2RoundsToNearestEven) { check_format<e5m2>({5, 2, false}); }
TEST(DType, E4m3RoundsToNearestEven) { check_format<e4m3>({4, 3, true}); }

TEST(DType, KnownValues) {
  EXPECT_EQ(f16(1.0f).bits, 0x3c00);
  EXPECT_EQ(f16(65519.0f).bits, 0x7bff);
  EXPECT_EQ(f16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(bf16(1.0f).bits, 0x3f80);
  EXPECT_EQ(e4m3(448.0f).bits, 0x7e);
  EXPECT_EQ(e4m3(464.0f).bits, 0x7e);  // a tie, and 0x7e is even
  EXPECT_EQ(e4m3(465.0f).bits, 0x7f);  // no infinity: NaN
  EXPECT_EQ(e5m2(57344.0f).bits, 0x7b);
  EXPECT_EQ(e5m2(61440.0f).bits, 0x7c);
}

#if defined(__FLT16_MAX__)
TEST(DType, F16AgreesWithTheCompiler) {
  std::mt19937 random(2);
  for (int i = 0; i < 4000000; ++i) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isnan(value)) continue;
    const auto expected = std::bit_cast<std::uint16_t>(static_cast<_Float16>(value));
    ASSERT_EQ(f16(value).bits, expected) << std::hexfloat << value;
  }
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto expected =
        static_cast<float>(std::bit_cast<_Float16>(static_cast<std::uint16_t>(bits)));
    const auto widened = static_cast<float>(f16::from_bits(static_cast<std::uint16_t>(bits)));
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(widened));
    } else {
      ASSERT_EQ(widened, expected) << bits;
    }
  }
}
#endif

/// Returns doubles just off a tie: rounding through float first would make them ties.
template <class T>
void check_single_rounding(DType dtype, const Format& format) {
  const Nearest nearest(format);
  const std::vector<double>& values = nearest.values();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double next = i + 1 < values.size() ? values[i + 1] : nearest.past();
    const double middle = (values[i] + next) / 2;
    for (const double value : {middle, std::nextafter(middle, INFINITY),
                               std::nextafter(middle, 0.0), -std::nextafter(middle, INFINITY)}) {
      T stored;
      store_from_double(dtype, &stored, value);
      ASSERT_EQ(stored.bits, nearest(value)) << std::hexfloat << value;
      if (std::isfinite(format.decode(stored.bits))) {
        ASSERT_EQ(load_as_double(dtype, &stored), format.decode(stored.bits));
      }
    }
  }
  T stored;
  store_from_double(dtype, &stored, 1e300);
  EXPECT_EQ(stored.bits, nearest(1e300));
  store_from_double(dtype, &stored, -1e-300);
  EXPECT_EQ(stored.bits, nearest(-1e-300));
}

TEST(DType, StoringADoubleRoundsOnce) {
  check_single_rounding<f16>(DType::f16, {5, 10, false});
  check_single_rounding<bf16>(DType::bf16, {8, 7, false});
  check_single_rounding<e5m2>(DType::e5m2, {5, 2, false});
  check_single_rounding<e4m3>(DType::e4m3, {4, 3, true});
}

template <class T>
T stored(double value) {
  // Misaligned by one byte, as elements of files and padded tensors may be.
  unsigned char bytes[sizeof(T) + 1];
  store_from_double(dtype_of<T>, bytes + 1, value);
  T result;
  std::memcpy(&result, bytes + 1, sizeof result);
  return result;
}

TEST(DType, StoringIntegersRoundsAndSaturates) {
  EXPECT_EQ(stored<std::int8_t>(2.5), 2);
  EXPECT_EQ(stored<std::int8_t>(3.5), 4);
  EXPECT_EQ(stored<std::int8_t>(-2.5), -2);
  EXPECT_EQ(stored<std::int8_t>(1000), 127);
  EXPECT_EQ(stored<std::int8_t>(-1000), -128);
  EXPECT_EQ(stored<std::uint8_t>(-1), 0);
  EXPECT_EQ(stored<std::uint8_t>(255.4), 255);
  EXPECT_EQ(stored<std::uint8_t>(256), 255);
  EXPECT_EQ(stored<std::int32_t>(2147483647.0), 2147483647);
  EXPECT_EQ(stored<std::int32_t>(1e10), 2147483647);
  EXPECT_EQ(stored<std::int32_t>(-1e10), -2147483647 - 1);
  EXPECT_EQ(stored<std::int64_t>(0x1p63), INT64_MAX);
  EXPECT_EQ(stored<std::int64_t>(-0x1p63), INT64_MIN);
  EXPECT_EQ(stored<std::int64_t>(9007199254740993.0), 9007199254740992);
  EXPECT_EQ(stored<std::int64_t>(INFINITY), INT64_MAX);
  EXPECT_EQ(stored<std::int32_t>(NAN), 0);
  EXPECT_EQ(stored<float>(0.1), 0.1f);
  EXPECT_EQ(stored<double>(0.1), 0.1);
}

TEST(DType, LoadsEveryType) {
  const std::int64_t large = -(std::int64_t{1} << 52) - 1;
  EXPECT_EQ(load_as_double(DType::i64, &large), -4503599627370497.0);
  const std::uint8_t byte = 200;
  EXPECT_EQ(load_as_double(DType::u8, &byte), 200.0);
  EXPECT_EQ(load_as_double(DType::i8, &byte), -56.0);
  const float third = 1.0f / 3;
  EXPECT_EQ(load_as_double(DType::f32, &third), static_cast<double>(third));
}

TEST(DType, NamesRoundTrip) {
  const std::size_t sizes[] = {4, 8, 2, 2, 1, 1, 1, 1, 4, 8, 2};
  for (int index = 0; index < 11; ++index) {
    const auto dtype = static_cast<DType>(index);
    EXPECT_EQ(parse_dtype(to_string(dtype)), dtype);
    EXPECT_EQ(size_of(dtype), sizes[index]);
    EXPECT_EQ(is_floating(dtype), index < 6);
  }
  EXPECT_EQ(to_string(DType::bf16), "bf16");
  for (const char* bad : {"", "f33", "F32", "f32 ", "float"}) {
    expect_error(ErrorCode::invalid_argument, {"'" + std::string(bad) + "'", "e4m3", "i64, u16"},
                 [&] { parse_dtype(bad); });
  }
}

TEST(DType, EpsilonIsTheStepAfterOne) {
  EXPECT_EQ(1.0 + epsilon(DType::f16), static_cast<float>(f16::from_bits(f16(1.0f).bits + 1)));
  EXPECT_EQ(1.0 + epsilon(DType::bf16), static_cast<float>(bf16::from_bits(bf16(1.0f).bits + 1)));
  EXPECT_EQ(1.0 + epsilon(DType::e4m3), static_cast<float>(e4m3::from_bits(e4m3(1.0f).bits + 1)));
  EXPECT_EQ(1.0 + epsilon(DType::e5m2), static_cast<float>(e5m2::from_bits(e5m2(1.0f).bits + 1)));
  EXPECT_EQ(epsilon(DType::f32), std::numeric_limits<float>::epsilon());
  EXPECT_EQ(epsilon(DType::f64), std::numeric_limits<double>::epsilon());
  EXPECT_EQ(epsilon(DType::i32), 0.0);
}

TEST(DType, VisitChoosesAmongItsList) {
  const auto size = [](DType dtype) {
    return visit<float, bf16>(dtype, []<class T>() { return sizeof(T); });
  };
  EXPECT_EQ(size(DType::f32), 4u);
  EXPECT_EQ(size(DType::bf16), 2u);
  expect_error(ErrorCode::unsupported, {"f64"}, [&] { size(DType::f64); });
  EXPECT_TRUE((DTypes<float, bf16>::contains(DType::bf16)));
  EXPECT_FALSE((DTypes<float, bf16>::contains(DType::f16)));
}

TEST(ErrorCode, HasNames) {
  EXPECT_STREQ(to_string(ErrorCode::io), "input/output error");
  EXPECT_STREQ(to_string(static_cast<ErrorCode>(99)), "unknown error");
}

}  // namespace
}  // namespace rung
