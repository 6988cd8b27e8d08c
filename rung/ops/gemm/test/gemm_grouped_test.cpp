// SPDX-License-Identifier: Apache-2.0
// Properties of gemm_grouped(): exact products of whole numbers in lists of any length, including
// empty products; rejected arguments.
#include <cmath>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "rung/ops/gemm/test/gemm_test.hpp"

namespace rung::gemm_grouped_test {
namespace {

using gemm_test::GemmOn;
using gemm_test::name_of_backend;

/// Matrix of whole numbers from -2 to 2, with rows `pitch` apart and NaN between them.
struct Whole {
  DType dtype;
  std::int64_t rows, columns, pitch;
  std::vector<std::uint64_t> memory;

  Whole(DType type, std::int64_t height, std::int64_t width, std::int64_t padding,
        std::mt19937& engine)
      : dtype(type), rows(height), columns(width), pitch(width + padding) {
    memory.resize(static_cast<std::size_t>(rows * pitch) * size_of(dtype) / 8 + 1);
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < pitch; ++column) {
        set(row, column, column < columns ? static_cast<int>(engine() % 5) - 2 : NAN);
      }
    }
  }
  [[nodiscard]] std::size_t place(std::int64_t row, std::int64_t column) const {
    return static_cast<std::size_t>(row * pitch + column) * size_of(dtype);
  }
  [[nodiscard]] double get(std::int64_t row, std::int64_t column) const {
    return load_as_double(dtype,
                          reinterpret_cast<const std::byte*>(memory.data()) + place(row, column));
  }
  void set(std::int64_t row, std::int64_t column, double value) {
    store_from_double(dtype, reinterpret_cast<std::byte*>(memory.data()) + place(row, column),
                      value);
  }
  [[nodiscard]] TensorRef ref() {
    return {static_cast<void*>(memory.data()), dtype, Extents{rows, columns}, Extents{pitch, 1}};
  }
};

/// Product with its tensors and the expected C.
struct Member {
  Whole a, b, c, bias, residual;
  bool has_bias, has_residual;
  std::vector<double> expected;
};

class GemmGroupedOn : public GemmOn {
 protected:
  Member make(DType type, DType out, std::int64_t m, std::int64_t n, std::int64_t k,
              const GemmOptions& options) {
    const bool ta = options.transpose_a;
    const bool tb = options.transpose_b;
    const auto padding = static_cast<std::int64_t>(engine() % 4);
    Member made{Whole(type, ta ? k : m, ta ? m : k, padding, engine),
                Whole(type, tb ? n : k, tb ? k : n, 0, engine),
                Whole(out, m, n, padding, engine),
                Whole(out, 1, n, 0, engine),
                Whole(out, m, n, 0, engine),
                engine() % 2 == 0,
                engine() % 3 == 0,
                {}};
    for (std::int64_t row = 0; row < m; ++row) {
      for (std::int64_t column = 0; column < n; ++column) {
        double sum = 0;
        for (std::int64_t p = 0; p < k; ++p) {
          sum += (ta ? made.a.get(p, row) : made.a.get(row, p)) *
                 (tb ? made.b.get(column, p) : made.b.get(p, column));
        }
        double value = options.alpha * sum;
        if (options.beta != 0) value += options.beta * made.c.get(row, column);
        if (made.has_bias) value += made.bias.get(0, column);
        if (options.activation == Activation::relu && value < 0) value = 0;
        if (made.has_residual) value += made.residual.get(row, column);
        std::uint64_t rounded = 0;
        store_from_double(out, &rounded, value);
        made.expected.push_back(load_as_double(out, &rounded));
      }
    }
    return made;
  }

  void run(std::deque<Member>& members, const GemmOptions& options, Pick pick = best) {
    std::vector<GemmProblem> list;
    for (Member& one : members) {
      GemmProblem problem{.a = one.a.ref(), .b = one.b.ref(), .c = one.c.ref()};
      if (one.has_bias) problem.bias = one.bias.ref();
      if (one.has_residual) problem.residual = one.residual.ref();
      list.push_back(problem);
    }
    gemm_grouped(context, list, options, pick);
    std::size_t number = 0;
    for (const Member& one : members) {
      int wrong = 0;
      std::size_t next = 0;
      for (std::int64_t row = 0; row < one.c.rows; ++row) {
        for (std::int64_t column = 0; column < one.c.columns; ++column) {
          if (one.c.get(row, column) != one.expected[next++]) ++wrong;
        }
        for (std::int64_t column = one.c.columns; column < one.c.pitch; ++column) {
          EXPECT_TRUE(std::isnan(one.c.get(row, column))) << "behind row " << row;
        }
      }
      EXPECT_EQ(wrong, 0) << "product " << number << ": " << to_string(one.a.dtype) << " "
                          << one.c.rows << "x" << one.c.columns;
      ++number;
    }
  }

  std::mt19937 engine{4};
};

TEST_P(GemmGroupedOn, ExactForProductsOfAnyShapeAndType) {
  const DType types[][2] = {{DType::f32, DType::f32},
                            {DType::bf16, DType::bf16},
                            {DType::f16, DType::f32},
                            {DType::f64, DType::f64},
                            {DType::e4m3, DType::bf16}};
  for (int round = 0; round < 8; ++round) {
    GemmOptions options{.alpha = round % 2 == 0 ? 1.0 : -0.5,
                        .beta = round % 3 == 0 ? 2.0 : 0.0,
                        .transpose_a = round % 4 == 1,
                        .transpose_b = round % 2 == 0,
                        .activation = round == 5 ? Activation::relu : Activation::none};
    std::deque<Member> members;
    for (int i = 0; i < 12; ++i) {
      const auto& [type, out] = types[engine() % 5];
      // About one product in four has no rows, no columns or no terms.
      const auto extent = [&](std::uint32_t most) {
        return static_cast<std::int64_t>(engine() % 12 == 0 ? 0 : 1 + engine() % most);
      };
      members.push_back(make(type, out, extent(150), extent(150), extent(90), options));
    }
    run(members, options);
  }
}

TEST_P(GemmGroupedOn, ExactForOneProductNoneAndHundreds) {
  for (const int count : {0, 1, 2, 199, 200, 201, 450}) {
    std::deque<Member> members;
    for (int i = 0; i < count; ++i) {
      members.push_back(make(DType::f32, DType::f32, 1 + static_cast<int>(engine() % 20),
                             static_cast<int>(engine() % 20), 7, {}));
    }
    run(members, {});
  }
}

TEST_P(GemmGroupedOn, RefusalsNameTheProduct) {
  std::vector<float> memory(4096, 1.0F);
  const auto at = [&](int offset, std::int64_t rows, std::int64_t columns) {
    return TensorRef(memory.data() + offset, DType::f32, Extents{rows, columns});
  };
  const GemmProblem good{.a = at(0, 8, 8), .b = at(64, 8, 8), .c = at(128, 8, 8)};
  const GemmProblem other{.a = at(0, 8, 8), .b = at(64, 8, 8), .c = at(320, 8, 8)};
  const auto refusal = [&](std::vector<GemmProblem> list, const GemmOptions& options = {}) {
    const std::vector<float> before(memory.begin(), memory.end());
    try {
      gemm_grouped(context, list, options);
    } catch (const Error& error) {
      EXPECT_EQ(memory, before) << "something was computed before the list was refused";
      return std::string(error.what());
    }
    return std::string();
  };
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_EQ(refusal({good, other}), "");
  GemmProblem bad = other;
  bad.b = at(64, 9, 8);
  EXPECT_TRUE(has(refusal({good, bad}), "product 1: gemm: a is 8x8, b is 9x8"));
  // Overlapping results, and a result that overlaps another product's operand, in either order.
  EXPECT_TRUE(has(refusal({good, other, good}), "c of product"));
  bad = other;
  bad.a = at(140, 8, 8);
  EXPECT_TRUE(has(refusal({good, bad}), "c of product 0 overlaps a tensor of product 1"));
  EXPECT_TRUE(has(refusal({bad, good}), "c of product 1 overlaps a tensor of product 0"));
  bad = other;
  bad.residual = at(100, 8, 8);
  EXPECT_TRUE(has(refusal({good, bad}), "overlaps"));
  GemmOptions options;
  options.bias = at(512, 1, 8);
  EXPECT_TRUE(has(refusal({good}, options), "options have a bias"));
}

TEST(GemmGrouped, ByNameAllShareLaunches) {
  Context context = Context::on(Backend::simt);
  const std::vector<float> a(300 * 300, 1.0F);
  std::vector<float> c(300 * 300);
  const ConstTensorRef x(a.data(), DType::f32, Extents{300, 300});
  const std::vector<GemmProblem> list{
      {.a = x, .b = x, .c = TensorRef(c.data(), DType::f32, Extents{300, 300})}};
  gemm_grouped(context, list, {}, {"grouped"});
  for (const float value : c) ASSERT_EQ(value, 300);
  // A list that the kernel does not support throws instead of running another kernel.
  const std::vector<std::int8_t> bytes(64);
  std::vector<std::int32_t> sums(64);
  const ConstTensorRef y(bytes.data(), DType::i8, Extents{8, 8});
  const std::vector<GemmProblem> integers{
      {.a = y, .b = y, .c = TensorRef(sums.data(), DType::i32, Extents{8, 8})}};
  EXPECT_THROW(gemm_grouped(context, integers, {}, {"grouped"}), Error);
  gemm_grouped(context, integers);
}

INSTANTIATE_TEST_SUITE_P(Backends, GemmGroupedOn, testing::Values(Backend::cpu, Backend::simt),
                         name_of_backend);

}  // namespace
}  // namespace rung::gemm_grouped_test
