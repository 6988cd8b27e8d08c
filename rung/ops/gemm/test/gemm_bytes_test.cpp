// SPDX-License-Identifier: Apache-2.0
// Properties of gemm with 8-bit operands: exact products of whole numbers over random shapes,
// layouts, strides and block scales; long sums; rejected arguments.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "rung/ops/gemm/test/gemm_bytes.hpp"
#include "rung/simt/record.hpp"
#include "tests/support/long_test.hpp"

namespace rung::gemm_bytes_test {
namespace {

TEST(GemmBytes, ExactProductsOnACpu) {
  Context context = Context::on(Backend::cpu);
  std::mt19937 engine(3);
  std::map<std::string, int> taken;
  for (int round = 0; round < 60; ++round) {
    run_case(context, random_case(engine, round % 3 == 0, 300), engine, taken, {"bytes"});
  }
  EXPECT_EQ(taken["bytes"], 60);
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

/// One tile per SM: a single tile size computes C in one wave, and the model must choose it.
TEST(GemmBytes, ExactWithTilesOfEverySize) {
  RUNG_LONG_TEST();
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

/// More 128 x 128 tiles than SMs, so that the model chooses clusters: two vertically adjacent tiles
/// of 128 x 256, by blocks that multicast halves of B to each other. k wraps around the ring of
/// stages once, so that stages are released in both blocks. The record shows that this kernel ran.
TEST(GemmBytes, ExactInClustersThatShareB) {
  RUNG_LONG_TEST_IF_SANITIZED();
  Context context = Context::on(Backend::simt);
  std::mt19937 engine(11);
  std::map<std::string, int> taken;
  const std::int64_t batch = context.info().sms / 4 + 1;
  const Case test{DType::i8, DType::i8, DType::i32, batch, 130, 256,   528,   false,
                  true,      0,         0,          1,     0,   false, false, Activation::none};
  simt::record::begin();
  run_case(context, test, engine, taken, {"int8_wgmma"});
  const simt::record::Report report = simt::record::end();
#if !defined(__SANITIZE_ADDRESS__)  // kernels have no hooks under it
  EXPECT_TRUE(report.findings.empty()) << to_text(report.findings.front());
#endif
  ASSERT_EQ(report.kernels.size(), 1U);
  EXPECT_NE(report.kernels[0].name.find("<256, 2>"), std::string::npos) << report.kernels[0].name;
  EXPECT_EQ(taken["int8_wgmma"], 1);
}

/// For any number of 128-blocks of k: slices may be unequal, and the last may be empty.
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

/// Added to 448 squared, ones are lost in the tensor cores' sums; the following blocks of k lose
/// nothing, because their sums are added in f32.
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

/// Sums of i8 wrap like the tensor cores': C is correct modulo 2^32.
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

/// Returns a tensor that is never read: only the address and the layout matter.
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
