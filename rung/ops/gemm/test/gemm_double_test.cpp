// SPDX-License-Identifier: Apache-2.0
// gemm's rung for f64 on tensor cores, on the simulated GPU: exact products of whole numbers over
// random shapes, layouts and strides; calls for which it is chosen.
#include "rung/ops/gemm/test/gemm_exact.hpp"

namespace rung {
namespace {

using namespace gemm_test;

constexpr const char* double_rungs[] = {"mma_f64"};

Case double_case(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k, bool ta,
                 bool tb) {
  return {DType::f64, DType::f64, batch, m, n, k, ta, tb, 0, 0, 1, 0};
}

TEST(GemmDouble, ExactProductsOfAnyShapeAndLayout) {
  Context context = Context::on(Backend::simt);
  std::mt19937 engine(31);
  const auto pick = [&](auto... values) {
    const std::common_type_t<decltype(values)...> all[] = {values...};
    return all[engine() % (sizeof(all) / sizeof(all[0]))];
  };
  const auto up_to = [&](int most) {
    return 1 + static_cast<std::int64_t>(engine() % static_cast<unsigned>(most));
  };
  std::map<std::string, int> taken;
  for (int round = 0; round < 60; ++round) {
    Case test = double_case(pick(1, 1, 3), pick(up_to(150), up_to(20), std::int64_t{64}),
                            pick(up_to(150), up_to(20), std::int64_t{128}),
                            pick(up_to(100), up_to(17), std::int64_t{16}), engine() % 2 == 0,
                            engine() % 2 == 0);
    test.padding = pick(0, 2, 3);
    test.skip = pick(0, 0, 1);
    test.alpha = pick(1.0F, 0.5F, -2.0F);
    test.beta = pick(0.0F, 0.0F, 1.0F);
    EXPECT_EQ(run_case(context, test, engine, taken, double_rungs), 1) << describe(test);
  }
}

/// For any number of tiles of k: slices may be unequal, and the last may be empty.
TEST(GemmDouble, ExactForAnyNumberOfSlices) {
  Context context = Context::on(Backend::simt);
  std::mt19937 engine(32);
  std::map<std::string, int> taken;
  for (const std::int64_t k : {127, 128, 193, 1000, 2047, 3000, 9001}) {
    const Case test = double_case(2, 15, 13, k, k % 2 == 0, k % 3 == 0);
    EXPECT_EQ(run_case(context, test, engine, taken, double_rungs), 1) << describe(test);
  }
}

/// Large tiles, more of them than SMs.
TEST(GemmDouble, ExactProductsOfLargeTiles) {
  Context context = Context::on(Backend::simt);
  std::mt19937 engine(33);
  std::map<std::string, int> taken;
  for (const bool turned : {false, true}) {
    const Case test = double_case(1, 1500, 1483, 37, turned, !turned);
    EXPECT_EQ(run_case(context, test, engine, taken, double_rungs), 1) << describe(test);
  }
}

/// About one large tile per SM: eight warps per tile.
TEST(GemmDouble, ExactProductsOfOneTilePerSm) {
  Context context = Context::on(Backend::simt);
  std::mt19937 engine(34);
  std::map<std::string, int> taken;
  for (const std::int64_t k : {37, 38}) {
    for (const bool turned : {false, true}) {
      const Case test = double_case(1, 950, 1000, k, turned, !turned);
      EXPECT_EQ(run_case(context, test, engine, taken, double_rungs), 1) << describe(test);
    }
  }
}

/// A sum that needs double precision.
TEST(GemmDouble, KeepsEveryBit) {
  Context context = Context::on(Backend::simt);
  const std::vector<double> a{0x1p40 + 1, 0x1p20, -0x1p40, 1};
  const std::vector<double> b{1, 0x1p-20, 1, 0x1p-12};
  double c = 0;
  gemm(context, ConstTensorRef(a.data(), DType::f64, Extents{1, 4}),
       ConstTensorRef(b.data(), DType::f64, Extents{4, 1}),
       TensorRef(&c, DType::f64, Extents{1, 1}), {}, {"mma_f64"});
  EXPECT_EQ(c, 2 + 0x1p-12);
}

TEST(GemmDouble, ThePublicCallTakesIt) {
  const Context context = Context::on(Backend::simt);
  // Never read: only the address and the layout matter.
  const auto somewhere = [&](std::int64_t rows, std::int64_t columns) {
    return TensorRef(reinterpret_cast<void*>(std::uintptr_t{1} << 20), DType::f64,
                     Extents{rows, columns});
  };
  const auto chosen = [&](std::int64_t m, std::int64_t n, std::int64_t k, bool ta) {
    const Gemm::Args args = bind<Gemm>({.a = ta ? somewhere(k, m) : somewhere(m, k),
                                        .b = somewhere(k, n),
                                        .c = somewhere(m, n),
                                        .transpose_a = ta});
    return choose<Gemm>(args, context).info.name;
  };
  for (const bool ta : {false, true}) {
    EXPECT_EQ(chosen(4096, 4096, 4096, ta), "mma_f64");
    EXPECT_EQ(chosen(1023, 1025, 1021, ta), "mma_f64");
    EXPECT_EQ(chosen(2048, 128, 409, ta), "mma_f64");
    EXPECT_EQ(chosen(64, 64, 20000, ta), "mma_f64");
  }
}

}  // namespace
}  // namespace rung
