// SPDX-License-Identifier: Apache-2.0
// What is counted of copies and tensor cores: apart from requests, on the lines that start them.
#include "rung/device/ptx_bulk_copy.hpp"
#include "rung/device/ptx_tensor_copy.hpp"
#include "rung/device/ptx_wgmma.hpp"
#include "tests/simt/record_fixture.hpp"

namespace rung {
namespace {

struct Tile {
  alignas(1024) int words[32][32];
  ptx::MemoryBarrier full;
};

__global__ void copy_and_multiply(const __grid_constant__ TensorMap map, int* out, float* sum) {
  Tile& tile = shared<Tile>();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(tile.full, 1);
    ptx::mbarrier_fence_init();
    ptx::mbarrier_arrive_expect(tile.full, sizeof(tile.words));
    ptx::tensor_load(tile.words, map, {16, 0}, tile.full);  // half of it hangs over
  }
  __syncthreads();
  ptx::mbarrier_wait(tile.full, 0);
  if (threadIdx.x == 0) {
    ptx::bulk_store(out + blockIdx.x * 256, tile.words, 512);
    ptx::bulk_store(out + blockIdx.x * 256 + 128, tile.words, 512);
    ptx::bulk_commit();
    ptx::bulk_wait_read<0>();
  }
  float sums[4] = {};
  const auto a = ptx::matrix_descriptor(tile.words, Swizzle::none, 128, 256);
  ptx::wgmma_fence(sums);
  for (int i = 0; i < 3; ++i) ptx::wgmma<bf16>(sums, a, a, true);
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>(sums);
  sum[blockIdx.x * blockDim.x + threadIdx.x] = sums[0];
}

TEST(RecordBulk, CopiesAndProductsAreCountedApart) {
  Buffer<int> in(std::vector<int>(32 * 32, 0)), out(512);
  Buffer<float> sum(512);
  const TensorMap map = make_tensor_map(View<int, 2>{in.data(), {32, 32}, {32, 1}}, {32, 32});
  const Report report = recorded_launch({.grid = 2, .block = 256, .shared_bytes = sizeof(Tile)},
                                        copy_and_multiply, map, out.data(), sum.data());
  expect_clean(report);
  ASSERT_EQ(report.kernels.size(), 1u);
  const simt::record::Counters& c = report.kernels[0].totals;
  EXPECT_EQ(c.bulk_copies, 2u * 3);
  EXPECT_EQ(c.bulk_load_bytes, 2u * sizeof(Tile::words));
  EXPECT_EQ(c.bulk_store_bytes, 2u * 1024);
  EXPECT_EQ(c.matrix_products, 2u * 2 * 3);
  EXPECT_EQ(c.global_load_requests, 0u);
  EXPECT_EQ(c.global_store_requests, 2u * 8);
  int lines = 0;
  for (const simt::record::Line& line : report.kernels[0].lines) {
    if (line.counters.bulk_copies + line.counters.matrix_products == 0) continue;
    EXPECT_NE(line.file.find("record_bulk_test.cpp"), std::string::npos) << line.file;
    ++lines;
  }
  EXPECT_EQ(lines, 4);
  const std::string json = to_json(report);
  EXPECT_NE(json.find("\"bulk_load_bytes\":" + std::to_string(c.bulk_load_bytes)),
            std::string::npos)
      << json;
}

}  // namespace
}  // namespace rung
