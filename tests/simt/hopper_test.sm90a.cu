// SPDX-License-Identifier: Apache-2.0
// Small features of compute capability 9.0: elected lanes, register reallocation, dependent grids.
#include "rung/device/ptx/hopper.hpp"

#include "tests/simt/hopper_fixture.hpp"

namespace rung::hopper_test {
namespace {

class SmallHopperTest : public HopperTest {};

__global__ void elect(int* elected) {
  if (ptx::elect_one()) atomicAdd(&elected[threadIdx.x / 32], 1);
}

TEST_P(SmallHopperTest, OneLaneAWarpIsElected) {
  Context c = context();
  Buffer<int> elected(std::vector<int>(8, 0));
  launch(c, {.block = 256}, elect, elected.data());
  EXPECT_EQ(elected.values(), std::vector<int>(8, 1));
}

/// Moves registers from one warpgroup to the other; both continue to compute.
__global__ void __launch_bounds__(256, 1) hand_over(float* out) {
  const int me = static_cast<int>(threadIdx.x);
  if (me < 128) {
    ptx::release_registers<24>();
    out[me] = 1;
  } else {
    ptx::claim_registers<128>();
    out[me] = 2;
  }
}

TEST_P(SmallHopperTest, RegistersChangeHands) {
  Context c = context();
  Buffer<float> out(256);
  launch(c, {.block = 256}, hand_over, out.data());
  EXPECT_EQ(out.values()[0], 1.0f);
  EXPECT_EQ(out.values()[255], 2.0f);
}

__global__ void first_grid(int* data, int value) {
  ptx::let_next_grid_start();
  data[blockIdx.x * blockDim.x + threadIdx.x] = value;
}
__global__ void second_grid(int* data) {
  ptx::wait_for_earlier_grid();
  data[blockIdx.x * blockDim.x + threadIdx.x] += 1;
}

TEST_P(SmallHopperTest, ADependentGridWaitsForTheOneBefore) {
  Context c = context();
  Buffer<int> data(1 << 12);
  for (int round = 0; round < 3; ++round) {
    launch(c, {.grid = 1 << 5, .block = 128}, first_grid, data.data(), 10 * round);
    launch(c, {.grid = 1 << 5, .block = 128, .dependent = true}, second_grid, data.data());
    c.synchronize();
    EXPECT_EQ(data.values(), std::vector<int>(1 << 12, 10 * round + 1));
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, SmallHopperTest, testing::ValuesIn(thread_orders()), order_name);

}  // namespace
}  // namespace rung::hopper_test
