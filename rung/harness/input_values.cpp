// SPDX-License-Identifier: Apache-2.0
// Values of Inputs by a counter-based generator: a value depends on stream and index only.
#include "rung/harness/input_values.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>

#include "rung/harness/random.hpp"

namespace rung::detail {
namespace {

constexpr int table_bits = 16;
constexpr std::size_t table_size = std::size_t{1} << table_bits;

/// Quantiles of the standard normal distribution at the midpoints of 65536 equal intervals: one
/// table lookup per value, where the Box-Muller transform costs a logarithm and a cosine.
struct NormalTable {
  std::array<double, table_size> f64;
  std::array<float, table_size> f32;

  NormalTable() {
    constexpr double two_pi = 6.283185307179586;
    double x = 0;
    for (std::size_t i = table_size / 2; i < table_size; ++i) {
      // Newton iteration on the probability of the upper tail, which is accurate even far from the
      // center. From the previous quantile, three steps reach full precision.
      const double tail = (static_cast<double>(table_size - i) - 0.5) / table_size;
      for (int step = 0; step < 3; ++step) {
        const double density = std::exp(-0.5 * x * x) / std::sqrt(two_pi);
        x += (0.5 * std::erfc(x * std::sqrt(0.5)) - tail) / density;
      }
      f64[i] = x;
      f64[table_size - 1 - i] = -x;
    }
    std::transform(f64.begin(), f64.end(), f32.begin(),
                   [](double value) { return static_cast<float>(value); });
  }
};

const NormalTable& normal_table() {
  static const std::unique_ptr<const NormalTable> table = std::make_unique<NormalTable>();
  return *table;
}

/// Draws 16-bit words, four per random number, and calls consumer(position, bits) for positions 0
/// to count - 1.
template <class Consumer>
void draw_words(std::uint64_t stream, std::int64_t first, std::int64_t count,
                const Consumer& consumer) {
  std::uint64_t bits = 0;
  std::int64_t position = 0;
  const auto index = [&] { return static_cast<std::uint64_t>(first + position); };
  const auto one = [&] {
    if (position == 0 || index() % 4 == 0)
      bits = random_bits(stream, index() / 4) >> (index() % 4 * 16);
    consumer(position++, bits & 0xffff);
    bits >>= 16;
  };
  while (position < count && index() % 4 != 0) one();
  for (; position + 4 <= count; position += 4) {
    bits = random_bits(stream, index() / 4);
    for (int word = 0; word < 4; ++word) consumer(position + word, (bits >> (16 * word)) & 0xffff);
  }
  while (position < count) one();
}

template <class T>
void normal(std::uint64_t stream, double scale, std::int64_t first, std::int64_t count, T* out) {
  const NormalTable& table = normal_table();
  if constexpr (std::is_same_v<T, double>) {
    draw_words(stream, first, count,
               [&](std::int64_t i, std::uint64_t word) { out[i] = table.f64[word] * scale; });
  } else if constexpr (!std::is_integral_v<T>) {
    const float factor = static_cast<float>(scale);
    draw_words(stream, first, count, [&](std::int64_t i, std::uint64_t word) {
      out[i] = static_cast<T>(table.f32[word] * factor);
    });
  } else {
    // Like quantized data of neural networks: normal, over the range of 8 bits.
    constexpr float spread = 32;
    constexpr float center = std::is_signed_v<T> ? 0 : 128;
    constexpr float low = std::is_signed_v<T> ? -127 : 0;
    draw_words(stream, first, count, [&](std::int64_t i, std::uint64_t word) {
      const float value = std::nearbyint(table.f32[word] * spread) + center;
      out[i] = static_cast<T>(std::clamp(value, low, low + 2 * 127.0f));
    });
  }
}

/// Fills `out` with integers from -4 to 4 (unsigned types: 0 to 8). They are exact in every type;
/// for floating types, a sum of 10^6 products of two of them is exact in f32.
template <class T>
void integers(std::uint64_t stream, std::int64_t first, std::int64_t count, T* out) {
  constexpr int low = std::is_unsigned_v<T> ? 0 : -4;
  draw_words(stream, first, count, [&](std::int64_t i, std::uint64_t word) {
    const int whole = static_cast<int>(word % 9) + low;
    if constexpr (std::is_integral_v<T>) {
      out[i] = static_cast<T>(whole);
    } else {
      out[i] = static_cast<T>(static_cast<float>(whole));
    }
  });
}

/// Exponent range of the adversarial values of a type. Products of two values, and sums of
/// thousands of products, stay finite; the smallest subnormal is 2^(1 - bias - mantissa).
struct Binades {
  int low;
  int high;
  int bias;
  int mantissa;
};
template <class T>
constexpr Binades binades = {-60, 30, 127, 23};
template <>
constexpr Binades binades<double> = {-200, 100, 1023, 52};
template <>
constexpr Binades binades<bf16> = {-60, 30, 127, 7};
template <>
constexpr Binades binades<f16> = {-14, 1, 15, 10};
template <>
constexpr Binades binades<e5m2> = {-14, 1, 15, 2};
template <>
constexpr Binades binades<e4m3> = {-6, 1, 7, 3};

template <class T>
T adversarial_float(std::uint64_t bits, double scale) {
  constexpr Binades range = binades<T>;
  const double sign = (bits & 1) != 0 ? -1.0 : 1.0;
  const std::uint64_t kind = (bits >> 1) & 15;
  double value = 0.0;
  if (kind == 1) {
    const std::uint64_t units = (bits >> 12) & ((std::uint64_t{1} << range.mantissa) - 1);
    value = std::ldexp(static_cast<double>(std::max<std::uint64_t>(units, 1)),
                       1 - range.bias - range.mantissa);
  } else if (kind != 0) {
    const int exponent =
        range.low + static_cast<int>((bits >> 5 & 0x7f) * (range.high - range.low + 1) / 128);
    value = std::ldexp(1.0 + static_cast<double>(bits >> 12) * 0x1p-52, exponent) * scale;
  }
  if constexpr (std::is_same_v<T, double>) {
    return sign * value;
  } else {
    return static_cast<T>(static_cast<float>(sign * value));
  }
}

template <class T>
T adversarial_integer(std::uint64_t bits) {
  if constexpr (sizeof(T) <= 2) {
    // A quarter of the values are extremes, at which 16-bit products and negations overflow.
    if ((bits & 7) == 0) return std::numeric_limits<T>::max();
    if ((bits & 7) == 1) return std::numeric_limits<T>::min();
    return static_cast<T>(bits >> 8);
  } else {
    const auto magnitude = static_cast<T>((bits >> 8) & ((1u << ((bits >> 1) % 21)) - 1));
    return (bits & 1) != 0 ? -magnitude : magnitude;
  }
}

template <class T>
void adversarial(std::uint64_t stream, double scale, std::int64_t first, std::int64_t count,
                 T* out) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t index = static_cast<std::uint64_t>(first + i);
    const std::uint64_t pair = random_bits(stream, index / 2);
    // One pair in four cancels: x, -x. Other pairs are independent.
    const bool cancels = pair >> 62 == 0;
    std::uint64_t bits = mix_bits(pair);
    if (index % 2 != 0) bits = cancels ? bits ^ 1 : mix_bits(~pair);
    if constexpr (std::is_integral_v<T>) {
      out[i] = adversarial_integer<T>(bits);
    } else {
      out[i] = adversarial_float<T>(bits, scale);
    }
  }
}

/// Poison, indexed by dtype: signaling NaNs (e4m3 has one NaN, 0x7f), 0xa5 for integers.
constexpr std::uint64_t poison[] = {
    0x7fa5a5a5, 0x7ff5a5a5a5a5a5a5, 0x7da5, 0x7fa5, 0x7f, 0x7d, 0xa5, 0xa5,
    0xa5a5a5a5, 0xa5a5a5a5a5a5a5a5, 0xa5a5};

template <class Word>
void fill_words(std::uint64_t word, std::uint64_t step, std::int64_t count, void* elements) {
  auto* words = static_cast<Word*>(elements);
  for (std::int64_t i = 0; i < count; ++i, word += step) words[i] = static_cast<Word>(word);
}

}  // namespace

void generate_values(DType dtype, Values values, std::uint64_t stream, double scale,
                     std::int64_t first, std::int64_t count, void* elements) {
  visit_any(dtype, [&]<class T>() {
    T* out = static_cast<T*>(elements);
    switch (values) {
      case Values::normal:
        return normal(stream, scale, first, count, out);
      case Values::integers:
        return integers(stream, first, count, out);
      case Values::adversarial:
        return adversarial(stream, scale, first, count, out);
    }
  });
}

void generate_made(DType dtype, const ValueMaker& maker, std::uint64_t stream, std::int64_t first,
                   std::int64_t count, void* elements) {
  auto* element = static_cast<std::byte*>(elements);
  for (std::int64_t i = 0; i < count; ++i, element += size_of(dtype)) {
    const std::uint64_t bits = random_bits(stream, static_cast<std::uint64_t>(first + i));
    const double uniform = static_cast<double>(bits >> 11) * 0x1p-53;
    store_from_double(dtype, element, maker(first + i, uniform));
  }
}

void generate_poison(DType dtype, std::int64_t first, std::int64_t count, void* elements) {
  // Written as integers: a floating-point register may quiet a signaling NaN.
  const std::uint64_t step = is_floating(dtype) ? 0 : 1;
  const std::uint64_t word =
      poison[static_cast<std::size_t>(dtype)] + step * static_cast<std::uint64_t>(first);
  switch (size_of(dtype)) {
    case 1:
      return fill_words<std::uint8_t>(word, step, count, elements);
    case 2:
      return fill_words<std::uint16_t>(word, step, count, elements);
    case 4:
      return fill_words<std::uint32_t>(word, step, count, elements);
    default:
      return fill_words<std::uint64_t>(word, step, count, elements);
  }
}

}  // namespace rung::detail
