// SPDX-License-Identifier: Apache-2.0
// Properties of gemm's tensor-core rungs, on the simulated GPU: exact products of whole numbers
// over random shapes, layouts and strides; choice of the rung.
#include <sys/mman.h>

#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "rung/ops/gemm/test/gemm_exact.hpp"
#include "tests/support/long_test.hpp"

namespace rung {
namespace {

using namespace gemm_test;

constexpr const char* rungs[] = {
    "mma_sync",          "ldmatrix_pipeline", "wgmma_tma", "warp_specialized", "persistent",
    "cluster_multicast", "stream_k",          "packed",    "shifted_tiles"};

/// Runs a case by every rung that supports it, or by `only`, and returns the number of runs.
int run_case(Context& context, const Case& test, std::mt19937& engine,
             std::map<std::string, int>& taken, const char* only = nullptr) {
  return gemm_test::run_case(context, test, engine, taken,
                             only != nullptr ? std::span<const char* const>(&only, 1) : rungs,
                             Precision::tf32);
}

TEST(GemmTensorCores, ExactProductsOfAnyShapeAndLayout) {
  RUNG_LONG_TEST_IF_SANITIZED();
  Context context = Context::on(Backend::simt);
  std::mt19937 engine(7);
  const auto pick = [&](auto... values) {
    const std::common_type_t<decltype(values)...> all[] = {values...};
    return all[engine() % (sizeof(all) / sizeof(all[0]))];
  };
  std::map<std::string, int> taken;
  for (int round = 0; round < 60; ++round) {
    Case test{};
    test.type = pick(DType::bf16, DType::f16, DType::bf16, DType::f16, DType::f32);
    test.out = pick(test.type, test.type, DType::f32);
    test.batch = pick(1, 1, 1, 2, 3);
    // Half of the shapes are multiples of 8, which TMA supports.
    const bool even = engine() % 2 == 0;
    const auto extent = [&](int most) {
      const std::int64_t any =
          1 + static_cast<std::int64_t>(engine() % static_cast<unsigned>(most));
      return even ? (any + 7) / 8 * 8 : any;
    };
    test.m = extent(pick(300, 40));
    test.n = extent(pick(300, 40));
    test.k = extent(pick(200, 20, 700));
    test.ta = engine() % 2 == 0;
    test.tb = engine() % 2 == 0;
    test.padding = pick(0, 8, even ? 16 : 3);
    test.skip = pick(0, 0, even ? 8 : 1);
    test.alpha = pick(1.0F, 0.5F, -2.0F);
    test.beta = pick(0.0F, 0.0F, 1.0F);
    EXPECT_GE(run_case(context, test, engine, taken), 2) << describe(test);
  }
  // Every rung must have run.
  for (const char* rung : rungs) EXPECT_GE(taken[rung], 10) << rung;
}

/// Unaligned lines of both operands: slices of k in one and in two levels of groups, and batches
/// that take large tiles.
TEST(GemmTensorCores, ExactWithShiftedLines) {
  RUNG_LONG_TEST_IF_SANITIZED();
  Context context = Context::on(Backend::simt);
  std::mt19937 engine(23);
  std::map<std::string, int> taken;
  struct Size {
    std::int64_t batch, m, n, k;
  };
  for (const Size& size : {Size{1, 33, 65, 1211}, Size{2, 7, 40, 513}, Size{1, 63, 31, 2500},
                           Size{80, 75, 97, 9}, Size{70, 1, 129, 67}}) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        const Case test{DType::f16, DType::f16, size.batch, size.m, size.n, size.k,
                        ta,         tb,         1,          3,      1,      1};
        run_case(context, test, engine, taken, "shifted_tiles");
      }
    }
  }
  EXPECT_EQ(taken["shifted_tiles"], 20);
}

/// For any number of tiles of k: slices may be unequal, and the last may be empty.
TEST(GemmTensorCores, ExactForAnyNumberOfSlices) {
  RUNG_LONG_TEST_IF_SANITIZED();
  Context context = Context::on(Backend::simt);
  std::mt19937 engine(9);
  std::map<std::string, int> taken;
  for (const std::int64_t tiles : {1, 3, 4, 9, 17, 33, 35, 67, 131}) {
    const std::int64_t k = 64 * tiles - 8 * (tiles % 3);
    const Case test{DType::bf16, DType::f32, 1, 16, 12, k, false, true, 0, 0, 1, 0};
    EXPECT_GE(run_case(context, test, engine, taken), 5) << describe(test);
  }
}

/// Enough sums that one thread combines all slices of an element.
TEST(GemmTensorCores, ExactWhereManySumsAreAddedUp) {
  RUNG_LONG_TEST_IF_SANITIZED();
  Context context = Context::on(Backend::simt);
  std::mt19937 engine(11);
  std::map<std::string, int> taken;
  const Case test{DType::bf16, DType::bf16, 1, 264, 512, 2048, false, true, 0, 0, 1, 1};
  EXPECT_GE(run_case(context, test, engine, taken), 5) << describe(test);
}

/// One more tile than stream_k computes per wave: that tile is split, the others are computed
/// whole.
TEST(GemmTensorCores, ExactWhereOnlyTheLastWaveIsCut) {
  RUNG_LONG_TEST_IF_SANITIZED();
  Context context = Context::on(Backend::simt);
  std::mt19937 engine(12);
  std::map<std::string, int> taken;
  const std::int64_t batch = context.info().sms + 1;
  const Case test{DType::f32, DType::f32, batch, 8, 12, 768, false, true, 0, 0, 1, 1};
  EXPECT_EQ(run_case(context, test, engine, taken, "stream_k"), 1) << describe(test);
}

/// More tiles than SMs: persistent blocks loop, and large tiles are chosen.
TEST(GemmTensorCores, ExactWhereBlocksTakeSeveralTiles) {
  RUNG_LONG_TEST();
  Context context = Context::on(Backend::simt);
  std::mt19937 engine(8);
  std::map<std::string, int> taken;
  for (const Case& test :
       {Case{DType::bf16, DType::bf16, 150, 128, 128, 72, false, true, 0, 0, 1, 0},
        Case{DType::f16, DType::f32, 70, 264, 136, 72, true, false, 0, 0, 1, 0},
        Case{DType::bf16, DType::bf16, 70, 131, 130, 70, true, true, 1, 0, 1, 1}}) {
    EXPECT_GE(run_case(context, test, engine, taken), 2) << describe(test);
  }
}

/// One tile per SM (or pair of SMs): a single width computes C in one wave, and the model must
/// choose it.
TEST(GemmTensorCores, ExactWithTilesOfEveryWidth) {
  RUNG_LONG_TEST_IF_SANITIZED();
  Context context = Context::on(Backend::simt);
  std::mt19937 engine(10);
  std::map<std::string, int> taken;
  const std::int64_t sms = context.info().sms;
  for (const std::int64_t columns : {64, 128, 192, 256}) {
    for (const bool tb : {false, true}) {
      const Case test{DType::bf16, DType::bf16, sms, 8, columns, 72, false, tb, 0, 0, 1, 0};
      EXPECT_EQ(run_case(context, test, engine, taken, "persistent"), 1) << describe(test);
    }
  }
  for (const std::int64_t columns : {192, 256}) {
    for (const bool tb : {false, true}) {
      const Case test{DType::f16, DType::f32, sms / 2, 136, columns, 40, true, tb, 0, 0, 1, 0};
      EXPECT_EQ(run_case(context, test, engine, taken, "cluster_multicast"), 1) << describe(test);
    }
  }
}

std::string_view chosen(const ConstTensorRef& a, const ConstTensorRef& b, const TensorRef& c,
                        Precision precision = Precision::full) {
  const Context context = Context::on(Backend::simt);
  Gemm::Args args{{.a = a, .b = b, .c = c, .precision = precision}};
  Gemm::bind(args);
  return choose<Gemm>(args, context).info.name;
}
/// Returns whether a rung is one of the wgmma rungs that the public call may choose.
bool is_wgmma(std::string_view rung) {
  return rung == "persistent" || rung == "cluster_multicast" || rung == "stream_k";
}
/// Returns a tensor that is never read: only the address and the layout matter.
TensorRef somewhere(DType type, std::int64_t rows, std::int64_t columns, std::int64_t pitch = 0,
                    std::uintptr_t address = 1 << 20) {
  return {reinterpret_cast<void*>(address), type, Extents{rows, columns},
          Extents{pitch == 0 ? columns : pitch, 1}};
}

TEST(GemmTensorCores, ThePublicCallTakesThem) {
  for (const DType type : {DType::f16, DType::bf16}) {
    for (const std::int64_t n : {1024, 2048, 4096, 8192}) {
      const std::string_view rung =
          chosen(somewhere(type, n, n), somewhere(type, n, n), somewhere(type, n, n));
      EXPECT_TRUE(is_wgmma(rung)) << n << ": " << rung;
    }
    EXPECT_EQ(
        chosen(somewhere(type, 16, 4096), somewhere(type, 4096, 16384), somewhere(type, 16, 16384)),
        "skinny_stream");
    // Rows, or a base address, without 16-byte alignment: no TMA, unless the operands are large
    // enough to be packed.
    EXPECT_FALSE(is_wgmma(chosen(somewhere(type, 150, 200, 201), somewhere(type, 200, 160),
                                 somewhere(type, 150, 160))));
    EXPECT_EQ(chosen(somewhere(type, 4095, 4099), somewhere(type, 4099, 4097),
                     somewhere(type, 4095, 4097)),
              "packed");
    EXPECT_EQ(chosen(somewhere(type, 4096, 4096, 0, (1 << 20) + 2), somewhere(type, 4096, 4096),
                     somewhere(type, 4096, 4096)),
              "packed");
  }
}

TEST(GemmTensorCores, F32TakesThemOnlyWhereTheCallerAllowsTf32) {
  const TensorRef x = somewhere(DType::f32, 2048, 2048);
  EXPECT_EQ(chosen(x, x, x), "simt_top");
  // wgmma needs k contiguous in both tf32 operands.
  EXPECT_EQ(chosen(x, x, x, Precision::tf32), "packed");
  TensorRef turned = x;
  turned.strides = Extents{1, 2048};
  EXPECT_TRUE(is_wgmma(chosen(x, turned, x, Precision::tf32)));
}

/// f16 and bf16 have their own gelu; every element of C has a different x.
TEST(GemmTensorCores, GeluOfAProduct) {
  Context context = Context::on(Backend::simt);
  std::vector<bf16> x;
  for (int bits = 0; bits < 0x10000; bits += 8) {
    x.push_back(bf16::from_bits(static_cast<std::uint16_t>(bits)));
  }
  const auto n = static_cast<std::int64_t>(x.size());
  bf16 one(1.0F);
  std::vector<float> y(x.size());
  gemm(context, ConstTensorRef(x.data(), DType::bf16, Extents{n, 1}),
       ConstTensorRef(&one, DType::bf16, Extents{1, 1}),
       TensorRef(y.data(), DType::f32, Extents{n, 1}), {.activation = Activation::gelu},
       {"ldmatrix_pipeline"});
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double given = static_cast<float>(x[i]);
    const double want = given < -40 ? 0 : given * std::erfc(-given / std::sqrt(2.0)) / 2;
    if (std::isnan(given)) {
      EXPECT_TRUE(std::isnan(y[i])) << i;
    } else if (std::isinf(want)) {
      EXPECT_EQ(y[i], want) << i;
    } else {
      EXPECT_NEAR(y[i], want, 0x1p-20 * std::abs(want) + 0x1p-24 * std::abs(given) + 0x1p-126)
          << given;
    }
  }
}

TEST(GemmTensorCores, IndicesBeyond32Bits) {
  // Rows 2^32 elements apart: untouched pages of a reservation cost nothing.
  const std::int64_t stride = (std::int64_t{1} << 32) + 8;
  const std::size_t bytes = static_cast<std::size_t>(3 * stride) * sizeof(bf16);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) GTEST_SKIP() << "no address space for " << bytes << " bytes";
  auto* a = static_cast<bf16*>(memory);
  for (std::int64_t row = 0; row < 3; ++row) {
    for (std::int64_t k = 0; k < 8; ++k) a[row * stride + k] = bf16(static_cast<float>(row + k));
  }
  alignas(16) bf16 b[8 * 8];
  for (int i = 0; i < 64; ++i) b[i] = bf16(static_cast<float>(i % 8 == i / 8 ? 1 : 0));
  Context context = Context::on(Backend::simt);
  for (const char* rung : rungs) {
    if (std::string(rung) == "packed") continue;  // TMA takes these operands
    alignas(16) float c[3 * 8] = {};
    gemm(context, ConstTensorRef(a, DType::bf16, Extents{3, 8}, Extents{stride, 1}),
         ConstTensorRef(b, DType::bf16, Extents{8, 8}), TensorRef(c, DType::f32, Extents{3, 8}), {},
         {rung});
    for (int i = 0; i < 24; ++i) {
      EXPECT_EQ(c[i], static_cast<float>(i / 8 + i % 8)) << rung << " at " << i;
    }
  }
  munmap(memory, bytes);
}

}  // namespace
}  // namespace rung
