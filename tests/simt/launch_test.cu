// SPDX-License-Identifier: Apache-2.0
// launch(): built-in variables, arguments, shared memory, cooperative grids, and rejected launches.
#include <cstring>

#include "rung/device/grid.hpp"
#include "tests/simt/device_fixture.hpp"

namespace rung::launch_test {
namespace {

class LaunchTest : public DeviceTest {};

__global__ void indices(int* visits, int* bad, dim3 grid, dim3 block) {
  const bool right = gridDim.x == grid.x && gridDim.y == grid.y && gridDim.z == grid.z &&
                     blockDim.x == block.x && blockDim.y == block.y && blockDim.z == block.z &&
                     threadIdx.x < block.x && threadIdx.y < block.y && threadIdx.z < block.z &&
                     warpSize == 32;
  if (!right) atomicAdd(bad, 1);
  const unsigned b = (blockIdx.z * grid.y + blockIdx.y) * grid.x + blockIdx.x;
  const unsigned t = (threadIdx.z * block.y + threadIdx.y) * block.x + threadIdx.x;
  atomicAdd(&visits[b * block.x * block.y * block.z + t], 1);
}

TEST_P(LaunchTest, EveryThreadOfEveryBlockRunsOnce) {
  const dim3 grids[] = {{1, 1, 1}, {7, 1, 1}, {3, 5, 2}, {1, 2, 70}};
  const dim3 blocks[] = {{1, 1, 1}, {5, 3, 2}, {32, 4, 1}, {1, 1, 64}, {1, 1024, 1}};
  for (const dim3& grid : grids) {
    for (const dim3& block : blocks) {
      const std::size_t n = std::size_t{grid.x} * grid.y * grid.z * block.x * block.y * block.z;
      Context c = context();
      Buffer<int> visits(std::vector<int>(n, 0)), bad(std::vector<int>{0});
      launch(c, {.grid = {grid.x, grid.y, grid.z}, .block = {block.x, block.y, block.z}}, indices,
             visits.data(), bad.data(), grid, block);
      EXPECT_EQ(visits.values(), std::vector<int>(n, 1));
      EXPECT_EQ(bad.values()[0], 0);
    }
  }
}

struct Aggregate {
  char letter;
  double number;
  View<const float, 2> view;
};

__global__ void store_arguments(double* out, float f, long long l, Aggregate a, const float* p) {
  out[0] = f;
  out[1] = static_cast<double>(l);
  out[2] = a.letter;
  out[3] = a.number;
  out[4] = static_cast<double>(a.view.strides[0]);
  out[5] = p == nullptr ? 1 : 0;
}

TEST_P(LaunchTest, ArgumentsBecomeTheParametersTypes) {
  Context c = context();
  Buffer<double> out(6);
  View<float, 2> view;
  view.strides[0] = 1ll << 40;
  const int narrow = -7;
  launch(c, {.block = 1}, store_arguments, out.data(), 0.1, narrow, Aggregate{'x', 2.5, view},
         nullptr);
  EXPECT_EQ(out.values(), (std::vector<double>{static_cast<double>(0.1f), -7, 'x', 2.5,
                                               static_cast<double>(1ll << 40), 1}));
}

__global__ void nothing() {}
__global__ void write_one(int* out) { *out = 1; }

TEST_P(LaunchTest, AnEmptyGridRunsNothing) {
  Context c = context();
  Buffer<int> out(std::vector<int>{0});
  for (const LaunchExtent& grid : {LaunchExtent{0}, LaunchExtent{5, 0}, LaunchExtent{5, 5, 0}}) {
    EXPECT_NO_THROW(launch(c, {.grid = grid, .block = 32}, write_one, out.data()));
  }
  EXPECT_EQ(out.values()[0], 0);
  EXPECT_NO_THROW(launch(c, {}, nothing));
}

void expect_refused(const LaunchShape& shape, const char* part) {
  Context c = Context::on(device_backend);
  try {
    launch(c, shape, nothing);
    FAIL() << "accepted: " << describe(shape);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device);
    EXPECT_NE(std::strstr(error.what(), part), nullptr) << error.what();
  }
  EXPECT_NO_THROW(launch(c, {.block = 32}, nothing));  // a rejected launch has no effect
}

TEST_P(LaunchTest, RefusesWhatTheChipRefuses) {
  expect_refused({.block = 0}, "block.x is 0");
  expect_refused({.block = -1}, "block.x is -1");
  expect_refused({.block = 1025}, "block.x is 1025");
  expect_refused({.block = {1, 1, 65}}, "block.z is 65");
  expect_refused({.block = {32, 33}}, "is 1056");
  expect_refused({.grid = -1, .block = 32}, "grid.x is -1");
  expect_refused({.grid = 1ll << 31, .block = 32}, "grid.x is 2147483648");
  expect_refused({.grid = (1ll << 32) + 1, .block = 32}, "grid.x is 4294967297");  // not 1
  expect_refused({.grid = {1, 65536}, .block = 32}, "grid.y is 65536");
  expect_refused({.grid = {1, 1, 65536}, .block = 32}, "grid.z is 65536");
  expect_refused({.block = 32, .shared_bytes = 1 << 20}, "shared memory in bytes is 1048576");
}

TEST_P(LaunchTest, RefusesAContextOfAnotherBackend) {
  Context c = Context::cpu(1);
  EXPECT_THROW(launch(c, {.block = 32}, nothing), Error);
}

/// Fills all available shared memory, and returns its address.
struct Large {
  alignas(1024) unsigned char byte[1];
};
__global__ void fill_shared(int bytes, int* sum, int* misaligned) {
  unsigned char* base = shared<Large>().byte;
  if (reinterpret_cast<std::uintptr_t>(base) % 1024 != 0 || shared_address(base) % 1024 != 0) {
    atomicAdd(misaligned, 1);
  }
  if (shared_address(base + bytes) > 1u << 18 ||
      shared_address(base + 5) != shared_address(base) + 5) {
    atomicAdd(misaligned, 1);
  }
  const int step = static_cast<int>(blockDim.x);
  for (int i = static_cast<int>(threadIdx.x); i < bytes; i += step) {
    base[i] = static_cast<unsigned char>(i % 7);
  }
  __syncthreads();
  int own = 0;
  for (int i = bytes - 1 - static_cast<int>(threadIdx.x); i >= 0; i -= step) own += base[i];
  atomicAdd(sum, own);
}

TEST_P(LaunchTest, SharedMemoryUpToTheDevicesLimit) {
  Context c = context();
  for (const int bytes :
       {1024, 48 << 10, (48 << 10) + 1024, static_cast<int>(c.info().shared_per_block)}) {
    Buffer<int> sum(std::vector<int>{0}), misaligned(std::vector<int>{0});
    launch(c, {.grid = 3, .block = 256, .shared_bytes = static_cast<std::size_t>(bytes)},
           fill_shared, bytes, sum.data(), misaligned.data());
    int want = 0;
    for (int i = 0; i < bytes; ++i) want += 3 * (i % 7);
    EXPECT_EQ(sum.values()[0], want) << bytes;
    EXPECT_EQ(misaligned.values()[0], 0) << bytes;
  }
}

/// Passes values around the grid: right only if all blocks synchronize in each step.
__global__ void around_the_grid(int* even, int* odd, int steps) {
  const int n = static_cast<int>(gridDim.x * blockDim.x);
  const int me = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  for (int step = 0; step < steps; ++step) {
    int* from = step % 2 == 0 ? even : odd;
    int* to = step % 2 == 0 ? odd : even;
    to[me] = from[(me + 11) % n] + 1;
    grid_sync();
  }
}

TEST_P(LaunchTest, CooperativeBlocksMeet) {
  constexpr int blocks = 9, threads = 40, n = blocks * threads, steps = 6;
  std::vector<int> start(n), want(n);
  for (int i = 0; i < n; ++i) start[static_cast<std::size_t>(i)] = 1000 * i;
  for (int i = 0; i < n; ++i) {
    want[static_cast<std::size_t>(i)] = 1000 * ((i + 11 * steps) % n) + steps;
  }
  Context c = context();
  Buffer<int> even(start), odd(n);
  launch(c, {.grid = blocks, .block = threads, .cooperative = true}, around_the_grid, even.data(),
         odd.data(), steps);
  EXPECT_EQ(even.values(), want);
}

TEST_P(LaunchTest, RefusesACooperativeGridThatIsNotResident) {
  Context c = context();
  // Two blocks of this size never fit on one SM.
  const LaunchShape shape{
      .grid = 2 * c.info().sms, .block = 1024, .shared_bytes = 200 << 10, .cooperative = true};
  EXPECT_THROW(launch(c, shape, nothing), Error);
}

INSTANTIATE_TEST_SUITE_P(Orders, LaunchTest, testing::ValuesIn(thread_orders()), order_name);

}  // namespace
}  // namespace rung::launch_test
