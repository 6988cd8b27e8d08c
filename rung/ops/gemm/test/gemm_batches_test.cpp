// SPDX-License-Identifier: Apache-2.0
// gemm's rungs for batches of small products, and for operands that are packed first, on the
// simulated GPU: exact products of whole numbers over random shapes, layouts and strides; choice of
// the rung.
#include "rung/ops/gemm/test/gemm_exact.hpp"

namespace rung {
namespace {

using namespace gemm_test;

/// Random values drawn from lists.
struct Draw {
  std::mt19937 engine;

  template <class... Values>
  auto pick(Values... values) {
    const std::common_type_t<Values...> all[] = {values...};
    return all[engine() % (sizeof(all) / sizeof(all[0]))];
  }
  std::int64_t up_to(int most) {
    return 1 + static_cast<std::int64_t>(engine() % static_cast<unsigned>(most));
  }
  bool coin() { return engine() % 2 == 0; }
};

TEST(GemmBatches, ExactProductsOfAnyShapeAndLayout) {
  Context context = Context::on(Backend::simt);
  Draw draw{std::mt19937(21)};
  constexpr const char* rungs[] = {"small_products"};
  std::map<std::string, int> taken;
  for (int round = 0; round < 120; ++round) {
    Case test{};
    test.type = draw.pick(DType::f32, DType::f32, DType::f64, DType::bf16, DType::f16);
    test.out = test.type == DType::f64 ? test.type : draw.pick(test.type, DType::f32);
    test.batch = draw.pick(std::int64_t{1}, draw.up_to(9), std::int64_t{70});
    test.m = draw.pick(std::int64_t{1}, draw.up_to(16), draw.up_to(40));
    test.n = draw.pick(std::int64_t{1}, draw.up_to(16), draw.up_to(70));
    test.k = draw.pick(std::int64_t{1}, draw.up_to(16), draw.up_to(64));
    test.ta = draw.coin();
    test.tb = draw.coin();
    // Half of the matrices have no gaps; addresses allow pieces of 16, 8, 4 and 2 bytes.
    test.padding = draw.pick(0, 0, 8, 3);
    test.skip = draw.pick(0, 0, 8, 1, 2, 4);
    test.alpha = draw.pick(1.0F, 0.5F, -2.0F);
    test.beta = draw.pick(0.0F, 0.0F, 1.0F);
    EXPECT_EQ(run_case(context, test, draw.engine, taken, rungs), 1) << describe(test);
  }
}

TEST(GemmBatches, ExactProductsOnTensorCores) {
  Context context = Context::on(Backend::simt);
  Draw draw{std::mt19937(24)};
  constexpr const char* rungs[] = {"small_tensor_products"};
  std::map<std::string, int> taken;
  for (int round = 0; round < 60; ++round) {
    Case test{};
    test.type = draw.pick(DType::bf16, DType::f16);
    test.out = draw.pick(test.type, test.type, DType::f32);
    test.batch = draw.pick(std::int64_t{1}, draw.up_to(9), std::int64_t{70});
    test.m = draw.pick(std::int64_t{1}, draw.up_to(16), draw.up_to(90));
    test.n = draw.pick(std::int64_t{1}, std::int64_t{32}, draw.up_to(16), draw.up_to(90));
    test.k = draw.pick(std::int64_t{1}, std::int64_t{16}, draw.up_to(16), draw.up_to(90));
    test.ta = draw.coin();
    test.tb = draw.coin();
    // Line addresses allow pieces of 16, 8, 4 and 2 bytes.
    test.padding = draw.pick(0, 0, 8, 4, 2, 3);
    test.skip = draw.pick(0, 0, 8, 1, 2, 4);
    test.alpha = draw.pick(1.0F, 0.5F, -2.0F);
    test.beta = draw.pick(0.0F, 0.0F, 1.0F);
    EXPECT_EQ(run_case(context, test, draw.engine, taken, rungs), 1) << describe(test);
  }
  // Three groups of products for some blocks: the third reuses the buffer of the first.
  const Case many{DType::bf16, DType::bf16, 6000, 3, 4, 5, false, true, 0, 0, 1, 0};
  EXPECT_EQ(run_case(context, many, draw.engine, taken, rungs), 1);
  const Case larger{DType::f16, DType::f16, 1, 128, 128, 400, false, false, 0, 0, 1, 0};
  EXPECT_EQ(run_case(context, larger, draw.engine, taken, rungs), 0);
}

/// C as large as a block can compute, and a k whose operands exceed a block's shared memory.
TEST(GemmBatches, ExactProductsOfLargeTilesAndOfLongK) {
  Context context = Context::on(Backend::simt);
  std::mt19937 engine(22);
  constexpr const char* rungs[] = {"small_products"};
  std::map<std::string, int> taken;
  const Case cases[] = {
      {DType::f32, DType::f32, 2, 128, 128, 45, false, true, 0, 0, 1, 1},
      {DType::bf16, DType::f32, 1, 113, 121, 83, true, false, 3, 1, 1, 0},
      {DType::f64, DType::f64, 2, 64, 63, 81, false, false, 1, 0, 1, 1},
      {DType::f32, DType::f32, 3, 17, 5, 4099, false, true, 0, 0, 1, 0},
      {DType::f16, DType::f16, 2, 1, 300, 129, true, false, 0, 1, 1, 0},
      {DType::f32, DType::f32, 2, 700, 1, 33, false, false, 1, 0, 1, 0},
  };
  for (const Case& test : cases) {
    EXPECT_EQ(run_case(context, test, engine, taken, rungs), 1) << describe(test);
  }
  const Case larger{DType::f32, DType::f32, 1, 129, 128, 4, false, false, 0, 0, 1, 0};
  EXPECT_EQ(run_case(context, larger, engine, taken, rungs), 0);
}

/// One matrix serves the whole batch; with alpha = 0 neither operand is read.
TEST(GemmBatches, SharesAnOperandAndSkipsBoth) {
  Context context = Context::on(Backend::simt);
  constexpr std::int64_t batch = 37;
  constexpr std::int64_t m = 5;
  constexpr std::int64_t n = 7;
  constexpr std::int64_t k = 6;
  std::vector<float> a(batch * m * k);
  std::vector<float> b(k * n);
  std::vector<float> c(batch * m * n, NAN);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 5) - 2;
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 7) - 3;
  const ConstTensorRef a_ref(a.data(), DType::f32, Extents{batch, m, k});
  const ConstTensorRef b_ref(b.data(), DType::f32, Extents{k, n});
  const TensorRef c_ref(c.data(), DType::f32, Extents{batch, m, n});
  gemm(context, a_ref, b_ref, c_ref, {}, {"small_products"});
  std::size_t at = 0;
  for (std::int64_t line = 0; line < batch * m; ++line) {
    for (std::int64_t column = 0; column < n; ++column) {
      float sum = 0;
      for (std::int64_t i = 0; i < k; ++i) {
        sum +=
            a[static_cast<std::size_t>(line * k + i)] * b[static_cast<std::size_t>(i * n + column)];
      }
      EXPECT_EQ(c[at++], sum) << line << ", " << column;
    }
  }
  std::fill(a.begin(), a.end(), NAN);
  gemm(context, a_ref, b_ref, c_ref, {.alpha = 0}, {"small_products"});
  for (const float value : c) EXPECT_EQ(value, 0);
}

TEST(GemmBatches, ExactProductsOfPackedOperands) {
  Context context = Context::on(Backend::simt);
  Draw draw{std::mt19937(23)};
  constexpr const char* rungs[] = {"simt_packed"};
  std::map<std::string, int> taken;
  for (int round = 0; round < 40; ++round) {
    Case test{};
    test.type = test.out = DType::f32;
    test.batch = draw.pick(1, 1, 3);
    test.m = draw.pick(draw.up_to(150), std::int64_t{64}, std::int64_t{5});
    test.n = draw.pick(draw.up_to(150), std::int64_t{128}, std::int64_t{3});
    test.k = draw.pick(draw.up_to(70), std::int64_t{1}, std::int64_t{64});
    test.ta = draw.coin();
    test.tb = draw.coin();
    test.padding = draw.pick(0, 4, 3);
    test.skip = draw.pick(0, 0, 4, 1);
    test.alpha = draw.pick(1.0F, -2.0F);
    test.beta = draw.pick(0.0F, 1.0F);
    run_case(context, test, draw.engine, taken, rungs);
  }
  EXPECT_GE(taken["simt_packed"], 25);
}

std::string_view chosen_for_batch(DType type, std::int64_t batch, std::int64_t m, std::int64_t n,
                                  std::int64_t k) {
  const Context context = Context::on(Backend::simt);
  // Never read: only the address and the layout matter.
  const auto somewhere = [&](std::int64_t rows, std::int64_t columns) {
    return TensorRef(reinterpret_cast<void*>(std::uintptr_t{1} << 20), type,
                     Extents{batch, rows, columns});
  };
  const Gemm::Args args =
      bind<Gemm>({.a = somewhere(m, k), .b = somewhere(k, n), .c = somewhere(m, n)});
  return choose<Gemm>(args, context).info.name;
}

TEST(GemmBatches, ThePublicCallTakesThem) {
  for (const DType type : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    const std::string_view rung = chosen_for_batch(type, 4096, 23, 6, 63);
    EXPECT_TRUE(rung == "small_products" || rung == "small_tensor_products" || rung == "mma_f64")
        << rung;
    EXPECT_EQ(chosen_for_batch(type, 11687, 15, 8, 43), "small_products");
  }
  EXPECT_EQ(chosen_for_batch(DType::f32, 1, 4095, 4097, 4099), "simt_packed");
  EXPECT_EQ(chosen_for_batch(DType::f32, 1, 4096, 4096, 4096), "simt_top");
}

}  // namespace
}  // namespace rung
