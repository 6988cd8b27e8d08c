// SPDX-License-Identifier: Apache-2.0
// split_k and simt_stream_k on the simulated GPU: exact products of whole numbers if only the tiles
// of the last, partial wave are split along k, and if parts of k end within tiles.
#include "rung/ops/gemm/test/gemm_exact.hpp"
#include "tests/support/long_test.hpp"

namespace rung {
namespace {

using namespace gemm_test;

constexpr const char* last_wave_rungs[] = {"split_k", "simt_stream_k"};

TEST(GemmLastWave, ExactProductsOfSplitTiles) {
  RUNG_LONG_TEST_IF_SANITIZED();
  Context context = Context::on(Backend::simt);
  const std::int64_t batch = context.info().sms + 3;  // a tile per matrix
  std::mt19937 engine(41);
  std::map<std::string, int> taken;
  const Case test{DType::f32, DType::f32, batch, 9, 7, 401, false, true, 0, 0, 0.5F, 1};
  EXPECT_EQ(run_case(context, test, engine, taken, last_wave_rungs), 2) << describe(test);
}

TEST(GemmLastWave, ExactProductsOfPartsThatEndWithinTiles) {
  RUNG_LONG_TEST_IF_SANITIZED();
  Context context = Context::on(Backend::simt);
  constexpr const char* rungs[] = {"simt_stream_k"};
  std::mt19937 engine(43);
  std::map<std::string, int> taken;
  // Seven tiles for a block per SM.
  const Case test{DType::f32, DType::f32, 1, 445, 101, 1301, true, false, 0, 0, 1, 0};
  EXPECT_EQ(run_case(context, test, engine, taken, rungs), 1) << describe(test);
}

}  // namespace
}  // namespace rung
