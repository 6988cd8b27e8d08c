// SPDX-License-Identifier: Apache-2.0
// gemm's CPU rungs for special shapes: exact products of whole numbers over random shapes, layouts
// and strides, and over shapes of several blocks in each dimension.
#include "rung/ops/gemm/test/gemm_exact.hpp"

namespace rung {
namespace {

using namespace gemm_test;

constexpr const char* rungs_of_shapes[] = {"tiny", "small", "few_rows", "few_columns",
                                           "gemv", "dots",  "widened",  "threads"};

TEST(GemmCpuShapes, ExactProductsOfAnyShapeAndLayout) {
  Context context = Context::cpu(2);
  std::mt19937 engine(31);
  const auto pick = [&](auto... values) {
    const std::common_type_t<decltype(values)...> all[] = {values...};
    return all[engine() % (sizeof(all) / sizeof(all[0]))];
  };
  const auto up_to = [&](unsigned most) { return 1 + static_cast<std::int64_t>(engine() % most); };
  std::map<std::string, int> taken;
  for (int round = 0; round < 600; ++round) {
    Case test{};
    test.type = pick(DType::f32, DType::f32, DType::f64, DType::bf16, DType::f16);
    test.out = test.type == DType::f64 ? test.type : pick(test.type, DType::f32);
    test.batch = pick(std::int64_t{1}, std::int64_t{1}, up_to(4));
    test.m = pick(std::int64_t{1}, up_to(5), up_to(30), up_to(70));
    test.n = pick(std::int64_t{1}, up_to(5), up_to(13), up_to(140));
    test.k = pick(std::int64_t{1}, up_to(5), up_to(40), up_to(300));
    test.ta = pick(false, true);
    test.tb = pick(false, true);
    test.padding = pick(0, 0, 3, 8);
    test.skip = pick(0, 0, 1, 8);
    test.alpha = pick(1.0F, 1.0F, 0.5F, -2.0F);
    test.beta = pick(0.0F, 0.0F, 1.0F);
    EXPECT_GE(run_case(context, test, engine, taken, rungs_of_shapes), 1) << describe(test);
  }
  for (const char* rung : rungs_of_shapes) EXPECT_GE(taken[rung], 20) << rung;
}

TEST(GemmCpuShapes, ExactProductsOfSeveralBlocks) {
  Context context = Context::cpu(2);
  std::mt19937 engine(32);
  std::map<std::string, int> taken;
  const Case cases[] = {
      // widened: blocks of k and rows, of rows only, of columns, and a batch.
      {DType::bf16, DType::bf16, 1, 130, 9, 5000, false, false, 0, 0, 1, 1},
      {DType::f16, DType::f32, 1, 40, 9, 5001, true, false, 3, 1, 1, 1},
      {DType::bf16, DType::bf16, 1, 700, 200, 3, true, false, 0, 0, 1, 0},
      {DType::bf16, DType::f32, 1, 3, 900, 300, false, true, 0, 0, 0.5F, 0},
      {DType::f16, DType::f16, 3, 20, 30, 40, false, true, 1, 0, 1, 1},
      // small: B that fits in L1, copied and in place; a long k that does not fit; slivers with a
      // long k.
      {DType::f32, DType::f32, 1, 60, 437, 2, false, true, 0, 0, 1, 0},
      {DType::f32, DType::f32, 2, 60, 437, 3, true, false, 0, 0, 1, 1},
      {DType::f64, DType::f64, 1, 17, 3, 5000, true, false, 0, 0, 1, 0},
      {DType::f32, DType::f32, 1, 65, 11, 700, false, false, 0, 0, 1, 1},
      // dots: columns of B copied, results added to C; gemv: a partial last vector of columns.
      {DType::f64, DType::f64, 2, 30, 4, 300, false, false, 2, 0, 1, 1},
      {DType::f32, DType::f32, 1, 1, 22, 3001, false, false, 0, 0, 1, 0},
  };
  for (const Case& test : cases) {
    EXPECT_GE(run_case(context, test, engine, taken, rungs_of_shapes), 1) << describe(test);
  }
}

}  // namespace
}  // namespace rung
