// SPDX-License-Identifier: Apache-2.0
// Facts that bound a launch's time: L1 lines, dependent latencies, and loads that nvcc merges.
#include "tests/simt/record_fixture.hpp"

namespace rung {
namespace {

__global__ void wait_for_loads(const float* x, float* y) {
  const int lane = static_cast<int>(threadIdx.x);
  float sum = x[lane] + x[lane * 32];
  __syncthreads();
  sum += x[lane];
  sum += __shfl_xor_sync(~0u, sum, 1);
  __syncwarp();
  y[lane] = sum;
}

TEST(RecordWaits, LoadsBetweenTwoMeetingsAreOneTrip) {
  Buffer<float> x(std::vector<float>(1024, 1)), y(32);
  const Report one = recorded_launch({.grid = 1, .block = 32}, wait_for_loads, x.data(), y.data());
  const simt::record::Waits& waits = one.kernels.at(0).waits;
  EXPECT_EQ(waits.lines, 1u + 32 + 1 + 1);
  EXPECT_EQ(waits.longest.memory, 1u);
  EXPECT_EQ(waits.longest.cache, 1u);
  EXPECT_EQ(waits.longest.barriers, 1u);
  EXPECT_EQ(waits.longest.exchanges, 1u) << "__syncwarp passes no values";
  EXPECT_EQ(waits.load_sectors.requests[4], 2u);
  EXPECT_EQ(waits.load_sectors.requests[32], 1u);
  // Which block loads a sector first depends on the OS threads.
  const Report three =
      recorded_launch({.grid = 3, .block = 32}, wait_for_loads, x.data(), y.data());
  const simt::record::Trips& trips = three.kernels.at(0).waits.longest;
  EXPECT_EQ(trips.memory + trips.cache, 3u * 2);
  EXPECT_GE(trips.memory, 1u);
  EXPECT_EQ(trips.barriers, 3u);
}

struct Tile {
  float at[32][32];
};

__global__ void load_rows_and_columns(float* y) {
  Tile& tile = shared<Tile>();
  const int lane = static_cast<int>(threadIdx.x);
  for (int k = 0; k < 32; ++k) tile.at[k][lane] = 1;
  __syncthreads();
  float sum = 0;
  for (int k = 0; k < 8; ++k) sum += tile.at[lane][k] * tile.at[k][lane];
  y[lane] = sum;
}

TEST(RecordWaits, AdjacentSharedLoadsOfALaneAreOne) {
  Buffer<float> y(32);
  const Report report = recorded_launch({.grid = 1, .block = 32, .shared_bytes = sizeof(Tile)},
                                        load_rows_and_columns, y.data());
  EXPECT_EQ(y.values()[31], 8.0f);
  const Kernel& kernel = report.kernels.at(0);
  EXPECT_EQ(kernel.totals.shared_load_wavefronts, 8u * 32 + 8);
  EXPECT_EQ(kernel.waits.merged_load_wavefronts, 2u * 32 + 8);
  EXPECT_EQ(kernel.waits.merged_requests, 6u);
  EXPECT_EQ(kernel.waits.shared_load_wavefronts.requests[32], 8u);
  EXPECT_EQ(kernel.waits.longest.shared, 1u);
}

}  // namespace
}  // namespace rung
