// SPDX-License-Identifier: Apache-2.0
// gemm's rungs for a C of few rows or columns, or for few terms, on the simulated GPU: exact
// products of whole numbers over random shapes, layouts and strides; choice of the rung.
#include "rung/ops/gemm/test/gemm_exact.hpp"
#include "tests/support/long_test.hpp"

namespace rung {
namespace {

using namespace gemm_test;

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
};

/// Runs random calls, each supported by at least one of the rungs, and returns the number of calls
/// per rung. `sizes` draws m, n and k, and adjusts other fields to what its rungs support.
template <class Sizes>
std::map<std::string, int> exact_products(unsigned seed, int rounds,
                                          std::span<const char* const> rungs, const Sizes& sizes) {
  Context context = Context::on(Backend::simt);
  Draw draw{std::mt19937(seed)};
  std::map<std::string, int> taken;
  for (int round = 0; round < rounds; ++round) {
    Case test{};
    test.type = draw.pick(DType::f32, DType::f32, DType::f64, DType::bf16, DType::f16);
    test.batch = draw.pick(1, 1, 1, 2, 3, 7);
    sizes(test, draw, round);
    test.out = test.type == DType::f64 ? test.type : draw.pick(test.type, DType::f32);
    test.ta = draw.pick(false, true);
    test.tb = draw.pick(false, true);
    test.padding = draw.pick(0, 0, 8, 3);
    test.skip = draw.pick(0, 0, 8, 1);
    test.alpha = draw.pick(1.0F, 0.5F, -2.0F);
    test.beta = draw.pick(0.0F, 0.0F, 1.0F);
    EXPECT_GE(run_case(context, test, draw.engine, taken, rungs), 1) << describe(test);
  }
  return taken;
}

TEST(GemmFewRows, ExactProductsOfAnyShapeAndLayout) {
  RUNG_LONG_TEST_IF_SANITIZED();
  constexpr const char* rungs[] = {"few_rows"};
  exact_products(11, 100, rungs, [](Case& test, Draw& draw, int) {
    test.m = 1 + draw.pick(draw.up_to(3), draw.up_to(15), draw.up_to(31), draw.up_to(63));
    test.n = 1 + draw.pick(draw.up_to(300), draw.up_to(16), std::int64_t{127});
    if (draw.pick(false, true)) std::swap(test.m, test.n);
    test.k = draw.pick(draw.up_to(700), draw.up_to(60), std::int64_t{256}, std::int64_t{1100});
  });
}

TEST(GemmFewRows, ExactProductsOfShortAndOfSlicedK) {
  constexpr const char* rungs[] = {"short_k", "sliced_k"};
  auto taken = exact_products(13, 50, rungs, [](Case& test, Draw& draw, int round) {
    const bool is_short = round % 2 == 0;
    if (!is_short) test.type = DType::f32;
    test.batch = draw.pick(1, 1, 2);
    test.m = draw.up_to(150);
    test.n = draw.pick(draw.up_to(300), std::int64_t{128});
    test.k = is_short ? draw.up_to(16) : draw.pick(draw.up_to(200), std::int64_t{256});
  });
  for (const char* rung : rungs) EXPECT_GE(taken[rung], 25) << rung;
}

/// C of one row or one column, in every layout: lines along and across k, aligned and unaligned.
TEST(GemmFewRows, ExactProductsWithAVector) {
  constexpr const char* rungs[] = {"gemv"};
  exact_products(15, 120, rungs, [](Case& test, Draw& draw, int) {
    test.m = 1;
    test.n = draw.pick(draw.up_to(300), draw.up_to(40), std::int64_t{1}, std::int64_t{128});
    if (draw.pick(false, true)) std::swap(test.m, test.n);
    // k of few steps, beyond a block's round of loads, and shared by several blocks.
    test.k = draw.pick(draw.up_to(700), draw.up_to(60), std::int64_t{256}, std::int64_t{2048},
                       draw.up_to(9000));
  });
}

/// A warp or several blocks per element of C.
TEST(GemmFewRows, ExactProductsByElement) {
  constexpr const char* rungs[] = {"dots"};
  exact_products(17, 80, rungs, [](Case& test, Draw& draw, int) {
    test.m = 1 + draw.pick(draw.up_to(5), draw.up_to(17));
    test.n = 1 + draw.pick(draw.up_to(5), draw.up_to(17));
    test.k = draw.pick(draw.up_to(700), draw.up_to(60), std::int64_t{2048}, draw.up_to(9000));
  });
}

/// Up to 64 rows or columns of 16-bit operands, with the long operand contiguous along either axis:
/// tiles of any number of rows, steps of k that do not fill a chunk, several matrices.
TEST(GemmFewRows, ExactProductsThatStreamTheLongOperand) {
  RUNG_LONG_TEST_IF_SANITIZED();
  constexpr const char* rungs[] = {"skinny_stream"};
  Context context = Context::on(Backend::simt);
  Draw draw{std::mt19937(19)};
  std::map<std::string, int> taken;
  for (int round = 0; round < 60; ++round) {
    Case test{};
    test.type = draw.pick(DType::bf16, DType::f16);
    test.out = draw.pick(test.type, DType::f32);
    test.batch = draw.pick(1, 1, 2, 5);
    test.m = draw.pick(draw.up_to(16), draw.up_to(32), draw.up_to(64), std::int64_t{1});
    test.n = draw.pick(draw.up_to(50), draw.up_to(20), std::int64_t{16}) * 8;
    test.k = draw.pick(draw.up_to(90), draw.up_to(9), std::int64_t{32}, std::int64_t{8}) * 8;
    test.padding = draw.pick(0, 8);
    test.skip = draw.pick(0, 8);
    test.tb = draw.pick(false, true);
    if (draw.pick(false, true)) {  // few columns: A is the long operand, in either layout
      std::swap(test.m, test.n);
      test.ta = draw.pick(false, true);
      test.tb = true;
    }
    test.alpha = draw.pick(1.0F, 0.5F, -2.0F);
    test.beta = draw.pick(0.0F, 0.0F, 1.0F);
    run_case(context, test, draw.engine, taken, rungs);
  }
  EXPECT_GE(taken["skinny_stream"], 55);
}

/// Up to 64 rows or columns of 16-bit operands whose lines begin at any address: rows and k that
/// fill no tile, slices of k in one and in two levels of groups, several matrices.
TEST(GemmFewRows, ExactProductsOfUnalignedLongRows) {
  RUNG_LONG_TEST_IF_SANITIZED();
  constexpr const char* rungs[] = {"skinny_unaligned"};
  Context context = Context::on(Backend::simt);
  Draw draw{std::mt19937(21)};
  std::map<std::string, int> taken;
  for (int round = 0; round < 80; ++round) {
    Case test{};
    test.type = draw.pick(DType::bf16, DType::f16);
    test.out = draw.pick(test.type, DType::f32);
    test.batch = draw.pick(1, 1, 2, 5);
    test.m = draw.pick(draw.up_to(8), draw.up_to(16), draw.up_to(32), draw.up_to(64));
    test.n = draw.pick(draw.up_to(300), draw.up_to(64), std::int64_t{129});
    test.k = draw.pick(draw.up_to(700), draw.up_to(40), draw.up_to(9), draw.up_to(9000));
    test.padding = draw.pick(0, 0, 1, 2, 3, 8);
    test.skip = draw.pick(0, 0, 8, 1);
    test.ta = draw.pick(false, true);
    test.tb = true;
    if (draw.pick(false, true)) {  // few columns: A is the long operand
      std::swap(test.m, test.n);
      test.tb = test.ta;
      test.ta = false;
    }
    test.alpha = draw.pick(1.0F, 0.5F, -2.0F);
    test.beta = draw.pick(0.0F, 0.0F, 1.0F);
    run_case(context, test, draw.engine, taken, rungs);
  }
  EXPECT_GE(taken["skinny_unaligned"], 75);
}

/// The last block resets its ticket: a second call of another shape uses the same ticket.
TEST(GemmFewRows, BlocksShareASumAgainAndAgain) {
  Context context = Context::on(Backend::simt);
  std::mt19937 engine(16);
  constexpr const char* rungs[] = {"gemv", "dots"};
  std::map<std::string, int> taken;
  for (const std::int64_t k : {20000, 33000, 20000, 65537}) {
    for (const std::int64_t m : {1, 2}) {
      for (const std::int64_t n : {1, 3, 8}) {
        for (const bool tb : {false, true}) {
          const Case test{DType::f32, DType::f32, 1, m, n, k, false, tb, 0, 0, 1, 1};
          EXPECT_GE(run_case(context, test, engine, taken, rungs), 1) << describe(test);
        }
      }
    }
  }
  EXPECT_EQ(taken["gemv"], 32);
  EXPECT_EQ(taken["dots"], 16);
}

/// A grid has at most 65535 batches: the remaining batches need another launch.
TEST(GemmFewRows, BatchesBeyondOneGrid) {
  RUNG_LONG_TEST();
  Context context = Context::on(Backend::simt);
  std::mt19937 engine(14);
  constexpr const char* rungs[] = {"few_rows"};
  std::map<std::string, int> taken;
  Case test{};
  test.type = test.out = DType::f16;
  test.batch = 65538;
  test.m = test.n = 2;
  test.k = 1;
  test.alpha = 1;
  EXPECT_EQ(run_case(context, test, engine, taken, rungs), 1) << describe(test);
}

/// For any number of steps of k: slices may be unequal, and the last may be empty.
TEST(GemmFewRows, ExactForAnyNumberOfSlices) {
  Context context = Context::on(Backend::simt);
  std::mt19937 engine(12);
  constexpr const char* rungs[] = {"few_rows"};
  std::map<std::string, int> taken;
  for (const std::int64_t k : {511, 512, 1025, 2047, 3000, 4099, 9000, 33000}) {
    for (const bool tb : {false, true}) {
      for (const DType type : {DType::f32, DType::f64, DType::bf16}) {
        const DType out = type == DType::f64 ? type : DType::f32;
        const Case test{type, out, 2, 5, 12, k, false, tb, 0, 0, 1, 1};
        EXPECT_EQ(run_case(context, test, engine, taken, rungs), 1) << describe(test);
      }
    }
  }
}

/// Neither axis is contiguous; a row of stride zero repeats.
TEST(GemmFewRows, TakesStridesOfAnyKind) {
  Context context = Context::on(Backend::simt);
  constexpr std::int64_t m = 3;
  constexpr std::int64_t n = 70;
  constexpr std::int64_t k = 150;
  std::vector<float> a(k);
  std::vector<float> b(2 * n * 3 * k);
  std::vector<float> c(n * m);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 5) - 2;
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 7) - 3;
  for (const bool k_first : {false, true}) {
    const Extents strides = k_first ? Extents{3, 6 * k} : Extents{6 * n, 2};
    gemm(context, ConstTensorRef(a.data(), DType::f32, Extents{m, k}, Extents{0, 1}),
         ConstTensorRef(b.data(), DType::f32, Extents{k, n}, strides),
         TensorRef(c.data(), DType::f32, Extents{m, n}, Extents{1, m}), {}, {"few_rows"});
    for (std::int64_t column = 0; column < n; ++column) {
      float sum = 0;
      for (std::int64_t i = 0; i < k; ++i) {
        sum += a[static_cast<std::size_t>(i)] *
               b[static_cast<std::size_t>(i * strides[0] + column * strides[1])];
      }
      for (std::int64_t row = 0; row < m; ++row) {
        EXPECT_EQ(c[static_cast<std::size_t>(column * m + row)], sum) << row << ", " << column;
      }
    }
  }
}

std::string_view chosen(DType type, std::int64_t m, std::int64_t n, std::int64_t k,
                        bool transpose_b = false) {
  const Context context = Context::on(Backend::simt);
  // Never read: only the address and the layout matter.
  const auto somewhere = [&](std::int64_t rows, std::int64_t columns) {
    return TensorRef(reinterpret_cast<void*>(std::uintptr_t{1} << 20), type,
                     Extents{rows, columns});
  };
  const Gemm::Args args = bind<Gemm>({.a = somewhere(m, k),
                                      .b = transpose_b ? somewhere(n, k) : somewhere(k, n),
                                      .c = somewhere(m, n),
                                      .transpose_b = transpose_b});
  return choose<Gemm>(args, context).info.name;
}

TEST(GemmFewRows, ThePublicCallTakesThem) {
  for (const DType type : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    for (const bool tb : {false, true}) {
      const std::string_view long_row = chosen(type, 1, 4096, 4096, tb);
      EXPECT_TRUE(long_row == "gemv" || long_row == "skinny_stream" ||
                  (type == DType::f64 && long_row == "mma_f64"))
          << long_row;
      EXPECT_EQ(chosen(type, 1, 131, 359, tb), "gemv");
      EXPECT_EQ(chosen(type, 2, 2, 1623, tb), "dots");
      EXPECT_EQ(chosen(type, 2047, 1, 1393, tb), "gemv");
    }
  }
  EXPECT_EQ(chosen(DType::f32, 65, 6, 634), "dots");
  EXPECT_EQ(chosen(DType::f32, 16, 16384, 4096), "few_rows");
  EXPECT_EQ(chosen(DType::f32, 64, 5, 65536), "few_rows");
  EXPECT_EQ(chosen(DType::f32, 4096, 4096, 4096), "simt_top");
  const std::string_view few = chosen(DType::f32, 5, 26, 4);
  EXPECT_TRUE(few == "naive_coalesced" || few == "shared_tile") << few;
  // Rows of C without alignment: tiled kernels would store single elements.
  EXPECT_EQ(chosen(DType::f32, 1664, 5803, 5), "short_k");
  EXPECT_EQ(chosen(DType::f32, 1025, 6075, 1), "short_k");
}

}  // namespace
}  // namespace rung
