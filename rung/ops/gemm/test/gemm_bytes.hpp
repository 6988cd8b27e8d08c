// SPDX-License-Identifier: Apache-2.0
// Random products of 8-bit operands with exactly known results.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "rung/core/integer.hpp"
#include "rung/core/tensor.hpp"
#include "rung/ops/gemm/test/gemm_test.hpp"

namespace rung::gemm_bytes_test {

/// Batch of matrices of any type whose rows are `pitch` elements apart, `skip` elements from an
/// aligned address. The gaps between rows hold NaN, or 99.
struct Elements {
  DType dtype = DType::f32;
  std::int64_t batch = 1, rows = 0, columns = 0, pitch = 0, skip = 0;
  std::vector<std::uint64_t> memory = {};

  [[nodiscard]] std::size_t place(std::int64_t matrix, std::int64_t row,
                                  std::int64_t column) const {
    return static_cast<std::size_t>(skip + (matrix * rows + row) * pitch + column) * size_of(dtype);
  }
  [[nodiscard]] double get(std::int64_t matrix, std::int64_t row, std::int64_t column) const {
    return load_as_double(
        dtype, reinterpret_cast<const std::byte*>(memory.data()) + place(matrix, row, column));
  }
  void set(std::int64_t matrix, std::int64_t row, std::int64_t column, double value) {
    store_from_double(
        dtype, reinterpret_cast<std::byte*>(memory.data()) + place(matrix, row, column), value);
  }
  [[nodiscard]] TensorRef ref() {
    return {reinterpret_cast<std::byte*>(memory.data()) +
                static_cast<std::size_t>(skip) * size_of(dtype),
            dtype, Extents{batch, rows, columns}, Extents{rows * pitch, pitch, 1}};
  }
};

/// Returns matrices whose elements are successive results of value().
template <class Value>
Elements elements(DType dtype, std::int64_t batch, std::int64_t rows, std::int64_t columns,
                  std::int64_t padding, std::int64_t skip, const Value& value) {
  Elements made{dtype, batch, rows, columns, columns + padding, skip};
  made.memory.resize(
      static_cast<std::size_t>(batch * rows * made.pitch + skip) * size_of(dtype) / 8 + 2);
  for (std::int64_t i = 0; i < batch; ++i) {
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < made.pitch; ++column) {
        const double between = is_floating(dtype) ? NAN : 99;
        made.set(i, row, column, column < columns ? value() : between);
      }
    }
  }
  return made;
}

struct Case {
  DType a, b, out;
  std::int64_t batch, m, n, k;
  bool ta, tb;
  std::int64_t padding, skip;
  double alpha, beta;
  bool scaled, residual;
  Activation activation;
};

inline std::string describe(const Case& c) {
  return std::string(to_string(c.a)) + " x " + std::string(to_string(c.b)) + " to " +
         std::string(to_string(c.out)) + " " + std::to_string(c.m) + "x" + std::to_string(c.n) +
         "x" + std::to_string(c.k) + " batch " + std::to_string(c.batch) + (c.ta ? ",ta" : "") +
         (c.tb ? ",tb" : "") + " padding " + std::to_string(c.padding) + " skip " +
         std::to_string(c.skip) + (c.scaled ? ",scaled" : "") + (c.residual ? ",residual" : "");
}

/// Runs a case by each of `rungs` that supports it, and compares all bits of C.
inline void run_case(Context& context, const Case& test, std::mt19937& engine,
                     std::map<std::string, int>& taken, std::initializer_list<const char*> rungs) {
  const auto whole = [&] { return static_cast<double>(static_cast<int>(engine() % 5) - 2); };
  const auto power = [&] {
    return std::ldexp(engine() % 2 == 0 ? 1 : -1, static_cast<int>(engine() % 3));
  };
  const auto stored = [&](DType dtype, bool turned, std::int64_t rows, std::int64_t columns) {
    return elements(dtype, test.batch, turned ? columns : rows, turned ? rows : columns,
                    test.padding, test.skip, whole);
  };
  Elements a = stored(test.a, test.ta, test.m, test.k);
  Elements b = stored(test.b, test.tb, test.k, test.n);
  const Elements before =
      elements(test.out, test.batch, test.m, test.n, test.padding, test.skip, whole);
  Elements residual = elements(test.out, test.batch, test.m, test.n, 1, 0, whole);
  const std::int64_t k_blocks = ceil_div(test.k, gemm_scale_block);
  Elements scale_a = elements(DType::f32, test.batch, test.m, k_blocks, 1, 0, power);
  Elements scale_b =
      elements(DType::f32, test.batch, k_blocks, ceil_div(test.n, gemm_scale_block), 0, 1, power);
  GemmOptions options{.alpha = test.alpha,
                      .beta = test.beta,
                      .transpose_a = test.ta,
                      .transpose_b = test.tb,
                      .activation = test.activation};
  if (test.residual) options.residual = residual.ref();
  if (test.scaled) options.scale_a = scale_a.ref();
  if (test.scaled) options.scale_b = scale_b.ref();
  // Decoded once, because the reference reads each element many times.
  const auto decoded = [](const Elements& from) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < from.batch; ++i) {
      for (std::int64_t row = 0; row < from.rows; ++row) {
        for (std::int64_t column = 0; column < from.columns; ++column) {
          values.push_back(from.get(i, row, column));
        }
      }
    }
    return values;
  };
  const std::vector<double> of_a = decoded(a);
  const std::vector<double> of_b = decoded(b);
  for (const char* rung : rungs) {
    Elements c = before;
    // A recorded kernel may write to memory of the device only.
    const Extents words{2 * static_cast<std::int64_t>(c.memory.size())};
    const TensorRef on_host(static_cast<void*>(c.memory.data()), DType::i32, words);
    const Tensor on_device(DType::i32, words, context.device());
    copy(on_host, on_device.ref());
    TensorRef result = c.ref();
    result.data = static_cast<std::byte*>(on_device.ref().data) + c.place(0, 0, 0);
    result.device = context.device();
    try {
      gemm(context, a.ref(), b.ref(), result, options, {rung});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported) << error.what();
      continue;
    }
    copy(on_device.ref(), on_host);
    ++taken[rung];
    int wrong = 0;
    for (std::int64_t i = 0; i < test.batch; ++i) {
      for (std::int64_t row = 0; row < test.m; ++row) {
        for (std::int64_t column = 0; column < test.n; ++column) {
          double sum = 0;
          double block_sum = 0;
          for (std::int64_t p = 0; p < test.k; ++p) {
            const std::int64_t at_a =
                test.ta ? (i * test.k + p) * test.m + row : (i * test.m + row) * test.k + p;
            const std::int64_t at_b =
                test.tb ? (i * test.n + column) * test.k + p : (i * test.k + p) * test.n + column;
            block_sum +=
                of_a[static_cast<std::size_t>(at_a)] * of_b[static_cast<std::size_t>(at_b)];
            if (p + 1 < test.k && (p + 1) % gemm_scale_block != 0) continue;
            const std::int64_t block = p / gemm_scale_block;
            if (test.scaled) {
              block_sum *=
                  scale_a.get(i, row, block) * scale_b.get(i, block, column / gemm_scale_block);
            }
            sum += block_sum;
            block_sum = 0;
          }
          double value = test.alpha * sum;
          if (test.beta != 0) value += test.beta * before.get(i, row, column);
          if (test.activation == Activation::relu && value < 0) value = 0;
          if (test.residual) value += residual.get(i, row, column);
          std::uint64_t rounded = 0;
          store_from_double(test.out, &rounded, value);
          if (c.get(i, row, column) != load_as_double(test.out, &rounded)) ++wrong;
        }
        for (std::int64_t column = test.n; column < c.pitch; ++column) {
          const double between = c.get(i, row, column);
          EXPECT_TRUE(std::isnan(between) || between == 99) << rung << " writes behind row " << row;
        }
      }
    }
    EXPECT_EQ(wrong, 0) << rung << ": " << describe(test);
  }
}

/// Returns a random case of integers, or of 8-bit floats in any pair.
inline Case random_case(std::mt19937& engine, bool integers, int most) {
  const auto pick = [&](auto... values) {
    const std::common_type_t<decltype(values)...> all[] = {values...};
    return all[engine() % (sizeof(all) / sizeof(all[0]))];
  };
  // Half of the shapes are multiples of 16, which TMA supports.
  const bool even = engine() % 2 == 0;
  const auto extent = [&](int longest) {
    const std::int64_t any =
        1 + static_cast<std::int64_t>(engine() % static_cast<unsigned>(longest));
    return even ? round_up(any, 16) : any;
  };
  Case test{};
  test.a = integers ? DType::i8 : pick(DType::e4m3, DType::e5m2);
  test.b = integers ? DType::i8 : pick(DType::e4m3, DType::e5m2);
  test.out = integers ? DType::i32 : pick(DType::f32, DType::f16, DType::bf16);
  test.batch = pick(1, 1, 1, 2, 3);
  test.m = extent(pick(most, 40));
  test.n = extent(pick(most, 40));
  test.k = extent(pick(most, 20, 2 * most));
  test.ta = engine() % 3 == 0;
  test.tb = engine() % 3 != 0;
  test.padding = pick(0, 16, even ? 32 : 3);
  test.skip = pick(0, 0, even ? 16 : 1);
  test.alpha = integers ? pick(1.0, 2.0, -3.0) : pick(1.0, 0.5, -2.0);
  test.beta = pick(0.0, 0.0, 1.0, -2.0);
  test.scaled = !integers && engine() % 2 == 0;
  test.residual = engine() % 3 == 0;
  test.activation = pick(Activation::none, Activation::none, Activation::relu);
  return test;
}

}  // namespace rung::gemm_bytes_test
