// SPDX-License-Identifier: Apache-2.0
// Misuse of wgmma and of registers: without a wait old sums are seen, operands overwritten too
// early are multiplied with their new values, and errors are reported.
#include <cstdint>

#include "rung/device/ptx/bulk_copy.hpp"
#include "rung/device/ptx/hopper.hpp"
#include "rung/device/ptx/wgmma.hpp"
#include "tests/simt/failure_fixture.hpp"

namespace rung {
namespace {

class WgmmaFailureTest : public FailureTest {};
INSTANTIATE_TEST_SUITE_P(Orders, WgmmaFailureTest, testing::ValuesIn(thread_orders()), order_name);

struct Tiles {
  alignas(1024) std::uint16_t a[64][64];
  alignas(1024) std::uint16_t b[8][64];
};
constexpr LaunchShape shape{.block = 128, .shared_bytes = sizeof(Tiles)};

/// Fills a tile with ones: every sum of an instruction is 16.
__device__ ptx::MatrixDescriptor fill(void* tile, int rows, float value = 1.0f) {
  auto* elements = static_cast<std::uint16_t*>(tile);
  for (int i = static_cast<int>(threadIdx.x); i < rows * 64; i += 128) {
    elements[i] = bf16(value).bits;
  }
  ptx::fence_async_proxy();
  __syncthreads();
  return ptx::matrix_descriptor(tile, Swizzle::bytes_128, 0, 1024);
}

enum class Fault { none, no_wait, early_write, no_fence, changed, no_end };
template <Fault What>
__global__ void multiply(float* out) {
  Tiles& tiles = shared<Tiles>();
  const auto a = fill(tiles.a, 64), b = fill(tiles.b, 8);
  float sums[4] = {1, 1, 1, 1};
  if (What != Fault::no_fence) ptx::wgmma_fence(sums);
  ptx::wgmma<bf16>(sums, a, b, true);
  ptx::wgmma_commit();
  if (What == Fault::early_write) fill(tiles.a, 64, 2.0f);
  if (What != Fault::no_wait) ptx::wgmma_wait<0>(sums);
  if (What == Fault::changed) {
    sums[1] += 1;
    ptx::wgmma<bf16>(sums, a, b, true);
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>(sums);
  }
  for (int i = 0; i < 4; ++i) out[4 * threadIdx.x + static_cast<unsigned>(i)] = sums[i];
  if (What == Fault::no_end) ptx::wgmma<bf16>(sums, a, b, true);
  if (What == Fault::no_wait) ptx::wgmma_wait<0>(sums);
}

std::vector<float> all(float value) { return std::vector<float>(512, value); }

TEST_P(WgmmaFailureTest, ResultsAreLate) {
  Context c = context();
  Buffer<float> out(512);
  launch(c, shape, multiply<Fault::none>, out.data());
  EXPECT_EQ(out.values(), all(17));
  launch(c, shape, multiply<Fault::no_wait>, out.data());
  EXPECT_EQ(out.values(), all(1));
  if (GetParam().starts_with("random")) return;  // half of the copies are early
  launch(c, shape, multiply<Fault::early_write>, out.data());
  EXPECT_EQ(out.values(), all(33));
}

TEST_P(WgmmaFailureTest, FencesWaitsAndWholeWarpgroups) {
  Buffer<float> out(512);
  expect_failure(shape, multiply<Fault::no_fence>, {"without a wgmma_fence()", "multiply"},
                 out.data());
  expect_failure(shape, multiply<Fault::changed>, {"changed since the last one"}, out.data());
  expect_failure(shape, multiply<Fault::no_end>, {"exits without waiting for its wgmma"},
                 out.data());
  LaunchShape small = shape;
  small.block = 96;
  expect_failure(small, multiply<Fault::none>, {"fewer than 128 threads"}, out.data());
}

/// Makes one warp exit, or pass another descriptor, or all pass an invalid one.
__global__ void disagree(int how) {
  Tiles& tiles = shared<Tiles>();
  auto a = fill(tiles.a, 64);
  const auto b = fill(tiles.b, 8);
  float sums[4] = {};
  ptx::wgmma_fence(sums);
  if (how == 0 && threadIdx.x >= 96) return;
  if (how == 1 && threadIdx.x == 70) a = ptx::advanced(a, 32);
  if (how == 2) a = ptx::matrix_descriptor(tiles.a, Swizzle::bytes_128, 0, 1024 * 16);
  ptx::wgmma<bf16>(sums, a, b, true);
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>(sums);
}

TEST_P(WgmmaFailureTest, WarpgroupsAgree) {
  expect_failure(shape, disagree, {"deadlock", "wgmma_wait at "}, 0);
  expect_failure(shape, disagree, {"issue different wgmma", "wgmma_failure_test.cpp"}, 1);
  expect_failure(shape, disagree, {"outside the block's shared memory", "matrix descriptors"}, 2);
}

/// Moves registers between a producer and two consumers of 168 each: 24 + 2 * 240 are 504.
template <int Kept, int Claimed>
__global__ void __launch_bounds__(384, 1) hand_over(float* out) {
  if (threadIdx.x < 128) {
    ptx::release_registers<Kept>();
  } else {
    ptx::claim_registers<Claimed>();
  }
  out[threadIdx.x] = 1;
}

TEST_P(WgmmaFailureTest, RegistersMustBeThere) {
  Context c = context();
  Buffer<float> out(512);
  EXPECT_NO_THROW(launch(c, {.block = 384}, hand_over<24, 240>, out.data()));
  expect_failure({.block = 384}, hand_over<32, 240>, {"deadlock", "claim_registers"}, out.data());
}

/// Chains products: groups in flight, an accumulator of two of them, and another in between.
__global__ void pipelined(float* out) {
  Tiles& tiles = shared<Tiles>();
  const auto a = fill(tiles.a, 64), b = fill(tiles.b, 8);
  float sums[4] = {}, others[4] = {5, 5, 5, 5};
  ptx::wgmma_fence(sums);
  ptx::wgmma_fence(others);
  ptx::wgmma<bf16>(sums, a, b, true);
  ptx::wgmma_commit();
  ptx::wgmma<bf16>(others, a, b, false);
  ptx::wgmma_commit();
  ptx::wgmma<bf16>(sums, ptx::advanced(a, 32), ptx::advanced(b, 32), true);
  ptx::wgmma_commit();
  ptx::wgmma_wait<1>(others);
  for (int i = 0; i < 4; ++i) others[i] += 1;
  ptx::wgmma_wait<0>(sums);
  for (int i = 0; i < 4; ++i) {
    out[4 * threadIdx.x + static_cast<unsigned>(i)] = 100 * sums[i] + others[i];
  }
}

TEST_P(WgmmaFailureTest, GroupsUnderWay) {
  Context c = context();
  Buffer<float> out(512);
  launch(c, shape, pipelined, out.data());
  EXPECT_EQ(out.values(), all(3217));
}

}  // namespace
}  // namespace rung
