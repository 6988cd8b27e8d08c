// SPDX-License-Identifier: Apache-2.0
// Failing kernels: the simulated GPU must report kernel, block, thread and location, and run the
// next launch correctly.
#include <fstream>

#include "rung/device/grid.hpp"
#include "rung/device/ptx.hpp"
#include "rung/device/wmma.hpp"
#include "tests/simt/failure_fixture.hpp"

#undef NDEBUG  // assertions are tested in every build
#include "rung/device/assert.hpp"

namespace rung {
namespace {

constexpr int line_of_mixture = __LINE__ + 3;
__global__ void mixed_barrier() {
  if (threadIdx.x < 5) {
    __syncthreads();
  } else {
    __syncthreads_or(1);
  }
}

TEST_P(FailureTest, OneBarrierWithTwoReductions) {
  expect_failure(
      {.grid = 2, .block = 64}, mixed_barrier,
      {"mixed barrier", "kernel rung::(anonymous namespace)::mixed_barrier()", "block (",
       " of 2x1x1", "thread (", " of 64x1x1", "failure_test.cpp:" + std::to_string(line_of_mixture),
       "failure_test.cpp:" + std::to_string(line_of_mixture + 2)});
}

__global__ void two_kinds_of_barrier() {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    ptx::barrier_sync(0, 64);
  }
}

TEST_P(FailureTest, OneBarrierJoinedInTwoWays) {
  expect_failure({.block = 64}, two_kinds_of_barrier, {"barrier", "two_kinds_of_barrier()"});
}

/// Waits in thread 3 for its warp, in the others for the block: no thread can run.
__global__ void deadlock() {
  if (threadIdx.x == 3) {
    __syncwarp();
  } else {
    __syncthreads();
  }
}

TEST_P(FailureTest, DeadlockNamesWhatIsWaitedFor) {
  expect_failure({.block = 32}, deadlock,
                 {"deadlock", "31 threads wait in __syncthreads at ", "31 of 32 threads",
                  "1 thread waits in __syncwarp", "for lanes 0, 1, 2, 4, 5", "thread (3, 0, 0)",
                  "deadlock()"});
}

__global__ void missing_arrival() { ptx::barrier_sync(2, 96); }
__global__ void missing_arrivals() { ptx::barrier_sync(2, 320); }

TEST_P(FailureTest, NamedBarrierThatNeverFills) {
  expect_failure({.block = 64}, missing_arrival, {"deadlock", "bar.sync", "64 of 96 threads"});
}

__global__ void barrier_of(int id, int threads) { ptx::barrier_sync(id, threads); }

TEST_P(FailureTest, NamedBarrierWithWrongArguments) {
  expect_failure({.block = 32}, barrier_of, {"barrier 16 does not exist", "0 to 15"}, 16, 32);
  expect_failure({.block = 32}, barrier_of, {"barrier of 33 threads", "multiples of 32"}, 1, 33);
}

/// Waits in the grid for a block that has exited.
__global__ void leave_the_grid() {
  if (blockIdx.x != 1) grid_sync();
}

TEST_P(FailureTest, GridBarrierThatABlockLeaves) {
  expect_failure({.grid = 3, .block = 32, .cooperative = true}, leave_the_grid,
                 {"deadlock", "64 threads wait in grid_sync", "32 of 96 threads have exited"});
  expect_failure({.grid = 3, .block = 32}, leave_the_grid, {"not cooperative"});
}

__global__ void foreign_mask() {
  if (threadIdx.x < 8) __shfl_sync(0xfffffff0u, 1, 0);
}

TEST_P(FailureTest, MaskWithoutTheCaller) {
  expect_failure({.block = 32}, foreign_mask,
                 {"__shfl_sync", "0xfffffff0", "does not name the calling lane"});
}

__global__ void mixed_operations() {
  if (threadIdx.x % 2 == 0) {
    __shfl_sync(0xffffffffu, 1, 0);
  } else {
    __ballot_sync(0xffffffffu, 1);
  }
}

TEST_P(FailureTest, LanesInDifferentOperations) {
  expect_failure({.block = 32}, mixed_operations,
                 {"different operations", "__shfl_sync", "__ballot_sync"});
}

__global__ void wrong_width() { __shfl_sync(0xffffffffu, 1, 0, 12); }

TEST_P(FailureTest, ShuffleWidth) {
  expect_failure({.block = 32}, wrong_width, {"width is 12", "powers of two"});
}

__global__ void assert_small(int limit) {
  __syncthreads();
  const bool small = static_cast<int>(blockIdx.x) < limit;
  assert(small);
}

TEST_P(FailureTest, Assertion) {
  expect_failure({.grid = 100, .block = 32}, assert_small, {"assertion failed: small", "block ("},
                 50);
}

__global__ void trap_in_noexcept() noexcept {
  __syncthreads();
  if (threadIdx.x == 17) __trap();
  __syncthreads();
}

TEST_P(FailureTest, TrapInANoexceptKernel) {
  expect_failure({.block = 64}, trap_in_noexcept, {"__trap()", "thread (17, 0, 0)"});
}

struct Wanted {
  float values[1000];
};
__global__ void wants_too_much() { shared<Wanted>().values[0] = 1; }

TEST_P(FailureTest, LayoutLargerThanTheLaunchGives) {
  expect_failure({.block = 32, .shared_bytes = 3999}, wants_too_much, {"shared<Layout>()"});
}

__global__ void copy_misaligned(const float* in) {
  ptx::async_copy<8>(&shared<Wanted>().values[1], in);
}
__global__ void copy_outside(const float* in, float* out) { ptx::async_copy<4>(out, in); }

TEST_P(FailureTest, AsyncCopyToWrongAddresses) {
  Buffer<float> data(64);
  expect_failure({.block = 32, .shared_bytes = sizeof(Wanted)}, copy_misaligned, {"misaligned"},
                 data.data());
  expect_failure({.block = 32, .shared_bytes = sizeof(Wanted)}, copy_outside,
                 {"outside the block's shared memory"}, data.data(), data.data() + 8);
}

__global__ void load_fragment(const float* p, unsigned stride) {
  wmma::fragment<wmma::accumulator, 16, 16, 8, float> sum;
  wmma::load_matrix_sync(sum, p, stride, wmma::mem_row_major);
}

TEST_P(FailureTest, WmmaAddresses) {
  Buffer<float> data(512);
  expect_failure({.block = 32}, load_fragment, {"aligned to 32 bytes"}, data.data() + 4, 16u);
  expect_failure({.block = 32}, load_fragment, {"multiple of 16 bytes"}, data.data(), 18u);
}

/// Fills the stack from the current frame down to `bytes` below `top`.
__attribute__((noinline)) int fill_stack(const volatile char* top, std::ptrdiff_t bytes) {
  volatile char frame[256];
  for (volatile char& c : frame) c = 1;
  if (top - frame > bytes) return frame[0];
  return fill_stack(top, bytes) + frame[1];
}
__global__ void overflow_stack(int bytes) {
  const volatile char top = 0;
  fill_stack(&top, bytes);
}
__global__ void trap() { __trap(); }

#if !defined(__SANITIZE_ADDRESS__)
TEST_P(FailureTest, StackOverflow) {
  // A failed launch makes the last stack of a slab the first: below it is another stack, no guard
  // page.
  expect_failure({.block = 1}, trap, {"__trap()"});
  expect_failure({.block = 1}, overflow_stack, {"stack overflow", "overflow_stack"}, 64 << 10);
}
TEST_P(FailureTest, AlmostAllOfTheStackMayBeUsed) {
  Context c = context();
  EXPECT_NO_THROW(launch(c, {.grid = 3, .block = 64}, overflow_stack, 56 << 10));
}
#endif

#if !defined(__SANITIZE_ADDRESS__)
/// Returns the number of pages mapped in this process.
long mapped_pages() {
  long pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages;
}

TEST_P(FailureTest, AbandonedStacksAreUsedAgain) {
  Context c = Context::on(Backend::simt, 1);
  EXPECT_THROW(launch(c, {.block = 256}, missing_arrivals), Error);
  const long before = mapped_pages();
  for (int i = 0; i < 20; ++i) EXPECT_THROW(launch(c, {.block = 256}, missing_arrivals), Error);
  // 256 stacks of 64 KiB are 4096 pages: less than one more set of stacks.
  EXPECT_LT(mapped_pages() - before, 4096);
}

#endif

__global__ void launches(Context* c) { launch(*c, {.block = 32}, mixed_barrier); }

TEST_P(FailureTest, AKernelCannotLaunchAKernel) {
  Context c = context();
  expect_failure({.block = 1}, launches, {"cannot launch a kernel"}, &c);
}

TEST_P(FailureTest, HostCodeCannotSynchronizeThreads) {
  EXPECT_THROW(__syncthreads(), Error);
  EXPECT_THROW(shared<Wanted>(), Error);
}

INSTANTIATE_TEST_SUITE_P(Orders, FailureTest, testing::ValuesIn(thread_orders()), order_name);

}  // namespace
}  // namespace rung
