// SPDX-License-Identifier: Apache-2.0
// Exact products of whole numbers, shared by gemm's tests over random shapes, layouts and strides.
#pragma once

#include <cmath>
#include <cstring>
#include <map>
#include <span>

#include "rung/ops/gemm/test/gemm_test.hpp"

namespace rung::gemm_test {

/// Batch of matrices of whole numbers from -2 to 2, whose rows (or columns) are `pitch` elements
/// apart, `skip` elements from an aligned address.
struct Numbers {
  // Two per f32, four per f64; operator new aligns to 16 bytes.
  std::vector<std::uint16_t> memory;
  DType dtype = DType::f32;
  std::int64_t batch = 1, rows = 0, columns = 0, pitch = 0, skip = 0;

  [[nodiscard]] std::size_t at(std::int64_t matrix, std::int64_t row, std::int64_t column) const {
    return static_cast<std::size_t>(skip + (matrix * rows + row) * pitch + column);
  }
  [[nodiscard]] float get(std::size_t i) const {
    if (dtype == DType::bf16) return static_cast<float>(bf16::from_bits(memory[i]));
    if (dtype == DType::f16) return static_cast<float>(f16::from_bits(memory[i]));
    if (dtype == DType::f64) {
      double value = 0;
      std::memcpy(&value, &memory[4 * i], sizeof(value));
      return static_cast<float>(value);
    }
    float value = 0;
    std::memcpy(&value, &memory[2 * i], sizeof(value));
    return value;
  }
  void set(std::size_t i, float value) {
    if (dtype == DType::bf16) {
      memory[i] = bf16(value).bits;
    } else if (dtype == DType::f16) {
      memory[i] = f16(value).bits;
    } else if (dtype == DType::f64) {
      const double wide = value;
      std::memcpy(&memory[4 * i], &wide, sizeof(wide));
    } else {
      std::memcpy(&memory[2 * i], &value, sizeof(value));
    }
  }
  [[nodiscard]] TensorRef ref() {
    void* data = memory.data() + skip * static_cast<std::int64_t>(size_of(dtype) / 2);
    return {data, dtype, Extents{batch, rows, columns}, Extents{rows * pitch, pitch, 1}};
  }
};

inline Numbers numbers(std::mt19937& engine, DType dtype, std::int64_t batch, std::int64_t rows,
                       std::int64_t columns, std::int64_t pitch, std::int64_t skip) {
  Numbers made{{}, dtype, batch, rows, columns, pitch, skip};
  made.memory.resize(static_cast<std::size_t>(batch * rows * pitch + skip + 16) *
                     (size_of(dtype) / 2));
  for (std::int64_t i = 0; i < batch; ++i) {
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < pitch; ++column) {
        // The gaps between rows hold NaN.
        made.set(made.at(i, row, column),
                 column < columns ? static_cast<float>(static_cast<int>(engine() % 5) - 2) : NAN);
      }
    }
  }
  return made;
}

struct Case {
  DType type, out;
  std::int64_t batch, m, n, k;
  bool ta, tb;
  std::int64_t padding;  // between rows, in elements
  std::int64_t skip;     // before the first element
  float alpha, beta;
};

inline std::string describe(const Case& c) {
  return std::string(to_string(c.type)) + " to " + std::string(to_string(c.out)) + " " +
         std::to_string(c.m) + "x" + std::to_string(c.n) + "x" + std::to_string(c.k) + " batch " +
         std::to_string(c.batch) + (c.ta ? ",ta" : "") + (c.tb ? ",tb" : "") + " padding " +
         std::to_string(c.padding) + " skip " + std::to_string(c.skip) + " alpha " +
         std::to_string(c.alpha) + " beta " + std::to_string(c.beta);
}

/// Returns the exact C; its rows have the layout of `c`.
inline std::vector<float> product_of(const Case& test, const Numbers& a, const Numbers& b,
                                     const Numbers& c) {
  std::vector<float> expected;
  for (std::int64_t i = 0; i < test.batch; ++i) {
    for (std::int64_t row = 0; row < test.m; ++row) {
      for (std::int64_t column = 0; column < test.n; ++column) {
        float sum = 0;
        for (std::int64_t k = 0; k < test.k; ++k) {
          sum += a.get(test.ta ? a.at(i, k, row) : a.at(i, row, k)) *
                 b.get(test.tb ? b.at(i, column, k) : b.at(i, k, column));
        }
        float value = test.alpha * sum;
        if (test.beta != 0) value += test.beta * c.get(c.at(i, row, column));
        if (test.out == DType::bf16) value = static_cast<float>(bf16(value));
        if (test.out == DType::f16) value = static_cast<float>(f16(value));
        expected.push_back(value);
      }
    }
  }
  return expected;
}

/// Runs a case by each of `rungs` that supports it, and returns their number.
inline int run_case(Context& context, const Case& test, std::mt19937& engine,
                    std::map<std::string, int>& taken, std::span<const char* const> rungs,
                    Precision precision = Precision::full) {
  const auto stored = [&](bool turned, std::int64_t rows, std::int64_t columns) {
    const std::int64_t r = turned ? columns : rows;
    const std::int64_t c = turned ? rows : columns;
    return numbers(engine, test.type, test.batch, r, c, c + test.padding, test.skip);
  };
  Numbers a = stored(test.ta, test.m, test.k);
  Numbers b = stored(test.tb, test.k, test.n);
  const Numbers before =
      numbers(engine, test.out, test.batch, test.m, test.n, test.n + test.padding, test.skip);
  const std::vector<float> expected = product_of(test, a, b, before);
  int ran = 0;
  for (const char* rung : rungs) {
    Numbers c = before;
    GemmOptions options{
        .alpha = test.alpha, .beta = test.beta, .transpose_a = test.ta, .transpose_b = test.tb};
    if (test.type == DType::f32) options.precision = precision;
    try {
      gemm(context, a.ref(), b.ref(), c.ref(), options, {rung});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported) << error.what();
      continue;
    }
    ++taken[rung];
    ++ran;
    std::int64_t wrong = 0;
    std::size_t next = 0;
    for (std::int64_t i = 0; i < test.batch; ++i) {
      for (std::int64_t row = 0; row < test.m; ++row) {
        for (std::int64_t column = 0; column < test.n; ++column) {
          if (c.get(c.at(i, row, column)) != expected[next++]) ++wrong;
        }
        for (std::int64_t column = test.n; column < c.pitch; ++column) {
          EXPECT_TRUE(std::isnan(c.get(c.at(i, row, column))))
              << rung << " writes behind row " << row;
        }
      }
    }
    EXPECT_EQ(wrong, 0) << rung << ": " << describe(test);
  }
  return ran;
}

}  // namespace rung::gemm_test
