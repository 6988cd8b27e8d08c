// SPDX-License-Identifier: Apache-2.0
// Properties of gemm with 8-bit operands: exact products of whole numbers over random shapes,
// layouts, strides and factors of blocks; long sums; what the contract refuses.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "rung/core/integer.hpp"
#include "rung/ops/gemm/test/gemm_test.hpp"
#include "rung/simt/record.hpp"

namespace rung::gemm_bytes_test {
namespace {

/// A batch of matrices of any type whose rows lie `pitch` elements apart, `skip` elements from an
/// aligned address. What is between the rows is NaN, or 99.
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

/// value(): of each element.
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

std::string describe(const Case& c) {
  return std::string(to_string(c.a)) + " x " + std::string(to_string(c.b)) + " to " +
         std::string(to_string(c.out)) + " " + std::to_string(c.m) + "x" + std::to_string(c.n) +
         "x" + std::to_string(c.k) + " batch " + std::to_string(c.batch) + (c.ta ? ",ta" : "") +
         (c.tb ? ",tb" : "") + " padding " + std::to_string(c.padding) + " skip " +
         std::to_string(c.skip) + (c.scaled ? ",scaled" : "") + (c.residual ? ",residual" : "");
}

/// Runs a case by each of `rungs` that takes it, and compares all bits of C.
void run_case(Context& context, const Case& test, std::mt19937& engine,
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
  // Decoded once: what follows reads each element many times.
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
    try {
      gemm(context, a.ref(), b.ref(), c.ref(), options, {rung});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported) << error.what();
      continue;
    }
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

/// Of integers, or of 8-bit floats in any pair.
Case random_case(std::mt19937& engine, bool integers, int most) {
  const auto pick = [&](auto... values) {
    const std::common_type_t<decltype(values)...> all[] = {values...};
    return all[engine() % (sizeof(all) / sizeof(all[0]))];
  };
  // Half of the shapes are multiples of 16, which TMA can take.
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

TEST(GemmBytes, ExactProductsOnACpu) {
  Context context = Context::on(Backend::cpu);
  std::mt19937 engine(3);
  std::map<std::string, int> taken;
  for (int round = 0; round < 60; ++round) {
    run_case(context, random_case(engine, round % 3 == 0, 300), engine, taken, {"bytes"});
  }
  EXPECT_EQ(taken["bytes"], 60);
}

/// C of few rows or columns, k beyond what is copied at a time, every layout.
TEST(GemmBytes, ExactDotProductsOnACpu) {
  std::mt19937 engine(4);
  std::map<std::string, int> taken;
  for (int round = 0; round < 120; ++round) {
    Context context = Context::cpu(1 + round % 3);
    Case test = random_case(engine, round % 4 != 0, 300);
    const auto few = static_cast<std::int64_t>(1 + engine() % 16);
    (round % 2 == 0 ? test.m : test.n) = few;
    if (round % 5 == 0) test.m = test.n = 1;
    test.k = 1 + static_cast<std::int64_t>(engine() % (round % 3 == 0 ? 1500 : 100));
    run_case(context, test, engine, taken, {"byte_dots", "bytes"});
  }
  EXPECT_EQ(taken["byte_dots"], 90);
  EXPECT_EQ(taken["bytes"], 120);
}

TEST(GemmBytes, DotProductsOfAnyStrides) {
  Context context = Context::cpu(1);
  std::mt19937 engine(12);
  constexpr std::int64_t rows = 5, k = 700;
  std::vector<std::int8_t> a(rows * k * 3), b(rows * k * 3);
  for (std::int8_t& value : a) value = static_cast<std::int8_t>(engine());
  for (std::int8_t& value : b) value = static_cast<std::int8_t>(engine());
  const std::pair<Extents, Extents> layouts[] = {
      {{2, 10}, {10, 2}}, {{2100, -3}, {-3, 2100}}, {{0, 1}, {1, 0}}, {{3 * k, 0}, {0, 3 * k}}};
  for (const auto& [of_a, of_b] : layouts) {
    const std::int8_t* const first_a = a.data() + (of_a[1] < 0 ? 3 * (k - 1) : 0);
    const std::int8_t* const first_b = b.data() + (of_b[0] < 0 ? 3 * (k - 1) : 0);
    for (const std::int64_t n : {1, 2, 5}) {
      std::vector<std::int32_t> c(rows * n);
      gemm(context, ConstTensorRef(first_a, DType::i8, Extents{rows, k}, of_a),
           ConstTensorRef(first_b, DType::i8, Extents{k, n}, of_b),
           TensorRef(c.data(), DType::i32, Extents{rows, n}), {}, {"byte_dots"});
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
          std::int32_t expected = 0;
          for (std::int64_t p = 0; p < k; ++p) {
            expected += first_a[i * of_a[0] + p * of_a[1]] * first_b[p * of_b[0] + j * of_b[1]];
          }
          ASSERT_EQ(c[static_cast<std::size_t>(i * n + j)], expected) << i << ", " << j;
        }
      }
    }
  }
}

TEST(GemmBytes, ExactProductsOfSmallFloatsOnAGpu) {
  Context context = Context::on(Backend::simt);
  std::mt19937 engine(5);
  std::map<std::string, int> taken;
  for (int round = 0; round < 30; ++round) {
    run_case(context, random_case(engine, false, 200), engine, taken, {"naive_bytes", "fp8_wgmma"});
  }
  EXPECT_EQ(taken["naive_bytes"], 30);
  EXPECT_EQ(taken["fp8_wgmma"], 30);
}

TEST(GemmBytes, ExactProductsOfIntegersOnAGpu) {
  Context context = Context::on(Backend::simt);
  std::mt19937 engine(6);
  std::map<std::string, int> taken;
  for (int round = 0; round < 20; ++round) {
    run_case(context, random_case(engine, true, 200), engine, taken, {"naive_bytes", "int8_wgmma"});
  }
  EXPECT_EQ(taken["naive_bytes"], 20);
  EXPECT_EQ(taken["int8_wgmma"], 20);
}

/// As many tiles as SMs leave the model one size of tiles that takes a single wave.
TEST(GemmBytes, ExactWithTilesOfEverySize) {
  Context context = Context::on(Backend::simt);
  std::mt19937 engine(10);
  std::map<std::string, int> taken;
  const std::int64_t sms = context.info().sms;
  for (const auto& [m, n] :
       {std::pair<std::int64_t, std::int64_t>{130, 128}, {100, 200}, {16, 128}, {16, 64}}) {
    const Case test{
        DType::e4m3, DType::e4m3, DType::bf16, sms, m, n,        144,   false,
        true,        0,           0,           1,   0, m <= 100, false, Activation::none};
    run_case(context, test, engine, taken, {"fp8_wgmma"});
  }
  for (const std::int64_t n : {64, 128, 256}) {
    const Case test{DType::i8, DType::i8, DType::i32, sms, 16, n,     144,   false,
                    true,      0,         0,          1,   0,  false, false, Activation::none};
    run_case(context, test, engine, taken, {"int8_wgmma"});
  }
  EXPECT_EQ(taken["fp8_wgmma"], 4);
  EXPECT_EQ(taken["int8_wgmma"], 3);
}

/// More tiles of 128 x 128 than SMs, so that the model takes clusters: two tiles of 128 x 256, one
/// below the other, by blocks that fetch halves of B for each other. k goes once around the ring of
/// stages, so that they are released in both. The record tells that this kernel ran.
TEST(GemmBytes, ExactInClustersThatShareB) {
  Context context = Context::on(Backend::simt);
  std::mt19937 engine(11);
  std::map<std::string, int> taken;
  const std::int64_t batch = context.info().sms / 4 + 1;
  const Case test{DType::i8, DType::i8, DType::i32, batch, 130, 256,   528,   false,
                  true,      0,         0,          1,     0,   false, false, Activation::none};
  simt::record::begin();
  run_case(context, test, engine, taken, {"int8_wgmma"});
  const simt::record::Report report = simt::record::end();
#if !defined(__SANITIZE_ADDRESS__)  // under it kernels have no hooks
  EXPECT_TRUE(report.findings.empty()) << to_text(report.findings.front());
#endif
  ASSERT_EQ(report.kernels.size(), 1U);
  EXPECT_NE(report.kernels[0].name.find("<256, 2>"), std::string::npos) << report.kernels[0].name;
  EXPECT_EQ(taken["int8_wgmma"], 1);
}

/// However many blocks of 128 k has: slices of it need not be equal, and the last may be missing.
TEST(GemmBytes, ExactForAnyNumberOfSlices) {
  Context context = Context::on(Backend::simt);
  std::mt19937 engine(9);
  std::map<std::string, int> taken;
  for (const std::int64_t blocks : {3, 9, 17, 35, 67}) {
    const Case test{
        DType::e4m3, DType::e5m2, DType::f32, 2, 16,   12,   128 * blocks - 16, false, true,
        0,           0,           1,          1, true, true, Activation::relu};
    run_case(context, test, engine, taken, {"fp8_wgmma"});
  }
  EXPECT_EQ(taken["fp8_wgmma"], 5);
}

/// Beside 448 squared tensor cores lose ones; in the blocks of k behind it nothing is lost, because
/// their sums are added in f32.
TEST(GemmBytes, SumsOfBlocksArePromoted) {
  Context context = Context::on(Backend::simt);
  constexpr std::int64_t k = 4 * gemm_scale_block;
  std::vector<e4m3> values(static_cast<std::size_t>(k), e4m3(1.0F));
  std::fill_n(values.begin(), gemm_scale_block, e4m3(0.0F));
  values.front() = e4m3(448.0F);
  float c[130 * 4];
  gemm(context, ConstTensorRef(values.data(), DType::e4m3, Extents{130, k}, Extents{0, 1}),
       ConstTensorRef(values.data(), DType::e4m3, Extents{k, 4}, Extents{1, 0}),
       TensorRef(c, DType::f32, Extents{130, 4}), {}, {"fp8_wgmma"});
  for (const float value : c) ASSERT_EQ(value, 448.0F * 448.0F + 3 * gemm_scale_block);
}

/// Sums of i8 wrap, as the tensor cores' do: C is right modulo 2^32.
TEST(GemmBytes, IntegersWrap) {
  const std::vector<std::int8_t> a(200 * 40, -128);
  const std::int32_t expected =
      static_cast<std::int32_t>(static_cast<std::uint32_t>(std::int64_t{200} * 16384 * 2000000));
  for (const Backend backend : {Backend::cpu, Backend::simt}) {
    Context context = Context::on(backend);
    const std::vector<const char*> rungs =
        backend == Backend::cpu ? std::vector{"bytes"} : std::vector{"naive_bytes", "int8_wgmma"};
    for (const char* rung : rungs) {
      std::vector<std::int32_t> c(40 * 40);
      gemm(context, ConstTensorRef(a.data(), DType::i8, Extents{40, 200}),
           ConstTensorRef(a.data(), DType::i8, Extents{200, 40}),
           TensorRef(c.data(), DType::i32, Extents{40, 40}), {.alpha = 2000000}, {rung});
      for (const std::int32_t value : c) ASSERT_EQ(value, expected) << rung;
    }
  }
}

TEST(GemmBytes, DotProductsWrap) {
  Context context = Context::cpu(1);
  const std::vector<std::int8_t> a(200000, -128);
  std::int32_t c = 0;
  gemm(context, ConstTensorRef(a.data(), DType::i8, Extents{1, 200000}),
       ConstTensorRef(a.data(), DType::i8, Extents{200000, 1}),
       TensorRef(&c, DType::i32, Extents{1, 1}), {.alpha = 3}, {"byte_dots"});
  EXPECT_EQ(
      c, static_cast<std::int32_t>(static_cast<std::uint32_t>(std::int64_t{200000} * 16384 * 3)));
}

/// Two operations per pair of bytes that are read: their panel of B was a column of a table.
TEST(GemmBytes, DotProductsAreChosenForNarrowResults) {
  Context context = Context::cpu(1);
  std::vector<std::int8_t> bytes(1 << 20);
  std::vector<std::int32_t> c(1024);
  for (const auto& [m, n, k] : {std::tuple<std::int64_t, std::int64_t, std::int64_t>{1, 1, 1000},
                                {1, 1, 1000000},
                                {1000, 1, 1000},
                                {1, 1000, 1000},
                                {3, 2, 5000}}) {
    for (const bool turned : {false, true}) {
      const Extents down{1, m}, along{k, 1};
      const Gemm::Call call{
          .a = ConstTensorRef(bytes.data(), DType::i8, Extents{m, k}, turned ? down : along),
          .b = ConstTensorRef(bytes.data(), DType::i8, Extents{k, n}),
          .c = TensorRef(c.data(), DType::i32, Extents{m, n})};
      EXPECT_EQ(choose<Gemm>(bind<Gemm>(call), context).info.name, "byte_dots")
          << m << "x" << n << "x" << k << (turned ? ",ta" : "");
    }
  }
}

/// Never read: only the address and the layout count.
TensorRef somewhere(DType type, std::int64_t rows, std::int64_t columns) {
  return {reinterpret_cast<void*>(1 << 20), type, Extents{rows, columns}};
}

std::string_view chosen(Backend backend, const ConstTensorRef& a, const ConstTensorRef& b,
                        const TensorRef& c) {
  const Context context = Context::on(backend);
  Gemm::Args args{{.a = a, .b = b, .c = c, .transpose_b = true}};
  Gemm::bind(args);
  return choose<Gemm>(args, context).info.name;
}

TEST(GemmBytes, ThePublicCallTakesTensorCores) {
  for (const std::int64_t n : {512, 4096}) {
    const TensorRef x = somewhere(DType::e4m3, n, n);
    const TensorRef i = somewhere(DType::i8, n, n);
    EXPECT_EQ(chosen(Backend::simt, x, somewhere(DType::e5m2, n, n), somewhere(DType::bf16, n, n)),
              "fp8_wgmma");
    EXPECT_EQ(chosen(Backend::simt, i, i, somewhere(DType::i32, n, n)), "int8_wgmma");
    EXPECT_EQ(chosen(Backend::cpu, x, x, somewhere(DType::f16, n, n)), "bytes");
  }
}

}  // namespace
}  // namespace rung::gemm_bytes_test
