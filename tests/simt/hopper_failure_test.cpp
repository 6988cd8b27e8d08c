// SPDX-License-Identifier: Apache-2.0
// Misuse of ordered memory, mbarriers, bulk copies and tensor maps: the simulated GPU must report
// the error and its location. Clusters: cluster_failure_test.cpp.
#include "rung/device/ptx/memory.hpp"
#include "rung/device/ptx/tensor_copy.hpp"
#include "rung/device/ptx/thread.hpp"
#include "tests/simt/failure_fixture.hpp"

namespace rung {
namespace {

class HopperFailureTest : public FailureTest {
 protected:
  Buffer<float> data{std::vector<float>(4096, 1.0f)};
};

struct Slots {
  alignas(1024) float tile[1024];
  ptx::MemoryBarrier full;
};
constexpr std::size_t slots_bytes = sizeof(Slots);

__device__ void init(Slots& s, int arrivals) {
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(s.full, arrivals);
    ptx::mbarrier_fence_init();
  }
  __syncthreads();
}

// Waits without end.

constexpr int line_of_spin = __LINE__ + 2;
__global__ void spin_for_ever(const unsigned* flag) {
  while (ptx::load_acquire(flag) == 0) ptx::nanosleep(20);
}
__global__ void spin_over_many(const unsigned* flags) {
  bool all = false;
  while (!all) {
    all = true;
    for (unsigned i = 0; i < 40; ++i) all &= ptx::load_relaxed(&flags[i]) != 0;
  }
}
__global__ void spin_by_atomics(unsigned* flag) {
  while (atomicCAS(flag, 1u, 2u) != 1u) {
  }
}
__global__ void spin_by_votes(const unsigned* flag) {
  while (__any_sync(0xffffffffu, ptx::load_relaxed(flag) == 0)) {
  }
}
__global__ void spin_by_barriers(const unsigned* flags) {
  bool all = false;
  while (!all) {
    const bool set = threadIdx.x != 0 ||
                     (ptx::load_relaxed(&flags[0]) != 0 && ptx::load_relaxed(&flags[1]) != 0);
    all = __syncthreads_and(set) != 0;
  }
}
__global__ void spin_by_active_masks(unsigned* flag) {
  while (atomicAdd(flag, 0u) == 0) __activemask();
}
/// Waits in each block for the other block.
__global__ void wait_for_each_other(unsigned* flags) {
  while (ptx::load_acquire(&flags[1 - blockIdx.x]) == 0) {
  }
  ptx::store_release(&flags[blockIdx.x], 1u);
}

TEST_P(HopperFailureTest, EndlessWaitsAreReported) {
  Buffer<unsigned> flags(std::vector<unsigned>(64, 0));
  expect_failure({.grid = 3, .block = 64}, spin_for_ever,
                 {"deadlock", "load_acquire at ", std::to_string(line_of_spin), "spin_for_ever",
                  "without a change", "0 of 192 threads have exited"},
                 flags.data());
  expect_failure({.block = 32}, spin_over_many, {"deadlock", "load_relaxed"}, flags.data());
  expect_failure({.block = 33}, spin_by_atomics, {"deadlock", "spin_by_atomics"}, flags.data());
  expect_failure({.block = 32}, spin_by_votes, {"deadlock", "spin_by_votes"}, flags.data());
  expect_failure({.block = 64}, spin_by_barriers, {"deadlock", "spin_by_barriers"}, flags.data());
  expect_failure({.block = 32}, spin_by_active_masks, {"deadlock", "spin_by_active_masks"},
                 flags.data());
  expect_failure({.grid = 2, .block = 32}, wait_for_each_other, {"deadlock", "load_acquire"},
                 flags.data());
}

/// Uses two OS threads, each of which must detect the other's wait.
TEST_P(HopperFailureTest, EndlessWaitsOnTwoOsThreads) {
  Buffer<unsigned> flags(std::vector<unsigned>(64, 0));
  expect_failure({.grid = 16, .block = 1024}, spin_for_ever, {"deadlock", "load_acquire"},
                 flags.data());
}

/// Fails in one block while all others wait for it.
__global__ void wait_for_a_failure(unsigned* flag) {
  if (blockIdx.x == 5) __trap();
  while (ptx::load_acquire(flag) == 0) {
  }
}

TEST_P(HopperFailureTest, AFailureEndsTheWaitsForIt) {
  Buffer<unsigned> flag(std::vector<unsigned>(1, 0));
  expect_failure({.grid = 16, .block = 1024}, wait_for_a_failure, {"__trap()", "block (5, 0, 0)"},
                 flag.data());
}

/// Waits in the first block for the last, of more blocks than fit on the device.
__global__ void wait_for_the_last(unsigned* flag) {
  if (blockIdx.x == gridDim.x - 1) ptx::store_release(flag, 1u);
  while (ptx::load_acquire(flag) == 0) {
  }
}

TEST(Residency, GridsThatDoNotFitDeadlockAsOnTheChip) {
  Context c = Context::on(Backend::simt, 1);
  // One block per SM: 132 blocks fit.
  const auto shape = [](int blocks) {
    return LaunchShape{.grid = blocks, .block = 32, .shared_bytes = 200 << 10};
  };
  Buffer<unsigned> flag(std::vector<unsigned>(1, 0));
  EXPECT_NO_THROW(launch(c, shape(132), wait_for_the_last, flag.data()));
  Buffer<unsigned> other(std::vector<unsigned>(1, 0));
  EXPECT_THROW(launch(c, shape(134), wait_for_the_last, other.data()), Error);
}

__global__ void load_misaligned(const float* in) {
  ptx::load_relaxed(reinterpret_cast<const double*>(in + 1));
}

TEST_P(HopperFailureTest, OrderedLoadsAreAligned) {
  expect_failure({.block = 1}, load_misaligned, {"misaligned address: load_relaxed of 8 bytes"},
                 data.data());
}

// mbarriers.

__global__ void wait_for_parity(unsigned parity, int arrivals) {
  Slots& s = shared<Slots>();
  init(s, 2);
  if (static_cast<int>(threadIdx.x) < arrivals) ptx::mbarrier_arrive(s.full);
  ptx::mbarrier_wait(s.full, parity);
}
__global__ void try_for_ever() {
  Slots& s = shared<Slots>();
  init(s, 1);
  while (!ptx::mbarrier_try_wait(s.full, 0)) {
  }
}
__global__ void arrive_uninitialized() { ptx::mbarrier_arrive(shared<Slots>().full); }
__global__ void arrive_too_often() {
  Slots& s = shared<Slots>();
  init(s, 1);
  ptx::mbarrier_arrive_expect(s.full, 64);
}
__global__ void init_for(int arrivals) { ptx::mbarrier_init(shared<Slots>().full, arrivals); }
__global__ void init_global(float* p) {
  ptx::mbarrier_init(*reinterpret_cast<ptx::MemoryBarrier*>(p), 1);
}

TEST_P(HopperFailureTest, MemoryBarriers) {
  const LaunchShape one{.block = 32, .shared_bytes = slots_bytes};
  expect_failure(
      one, wait_for_parity,
      {"deadlock", "32 threads wait in mbarrier_wait", "for parity 0", "lacks 1 of 2 arrivals"}, 0u,
      1);
  // Both threads have arrived: phase 0 is complete, phase 1 never will be.
  expect_failure(one, wait_for_parity, {"deadlock", "for parity 1", "lacks 2 of 2 arrivals"}, 1u,
                 2);
  expect_failure(one, try_for_ever, {"deadlock", "mbarrier_try_wait at "});
  expect_failure(one, arrive_uninitialized, {"mbarrier_arrive", "not initialized"});
  expect_failure(one, arrive_too_often, {"more than the 1 arrivals"});
  expect_failure(one, init_for, {"0 arrivals, accepted are 1 to 1048575"}, 0);
  expect_failure(one, init_global, {"mbarrier_init", "outside the block's shared memory"},
                 data.data());
}

// Bulk copies.

__global__ void load_bytes(const float* in, unsigned announced, unsigned bytes, int shift) {
  Slots& s = shared<Slots>();
  init(s, 1);
  if (threadIdx.x == 0) {
    ptx::mbarrier_arrive_expect(s.full, announced);
    ptx::bulk_load(s.tile + shift, in + shift, bytes, s.full);
  }
  ptx::mbarrier_wait(s.full, 0);
}
__global__ void load_to_global(float* p) {
  Slots& s = shared<Slots>();
  init(s, 1);
  ptx::bulk_load(p, p + 64, 64, s.full);
}
/// Leaves many loads in flight: under random orders half of them complete at once.
__global__ void leave_loads_behind(const float* in) {
  Slots& s = shared<Slots>();
  init(s, 2);
  for (int i = 0; threadIdx.x == 0 && i < 16; ++i) ptx::bulk_load(s.tile, in, 64, s.full);
}
__global__ void leave_store_behind(float* out) {
  Slots& s = shared<Slots>();
  ptx::bulk_store(out, s.tile, 64);
  ptx::bulk_commit();
  ptx::bulk_wait_read<1>();
}

TEST_P(HopperFailureTest, BulkCopies) {
  const LaunchShape one{.block = 32, .shared_bytes = slots_bytes};
  expect_failure(one, load_bytes, {"deadlock", "mbarrier_wait", "0 of 1 arrivals and 64 bytes"},
                 data.data(), 128u, 64u, 0);
  expect_failure(one, load_bytes, {"deadlock", "64 bytes more than announced"}, data.data(), 64u,
                 128u, 0);
  expect_failure(one, load_bytes, {"misaligned address: bulk_load of 16 bytes"}, data.data(), 64u,
                 64u, 1);
  expect_failure(one, load_bytes, {"bulk_load of 40 bytes, accepted are multiples of 16"},
                 data.data(), 40u, 40u, 0);
  expect_failure(one, load_bytes, {"outside the block's shared memory"}, data.data(), 4096u, 4096u,
                 512);
  expect_failure(one, load_bytes, {"leaves its allocation of 16384 after 16"}, data.data() + 4092,
                 64u, 64u, 0);
  expect_failure(one, load_to_global, {"outside the block's shared memory"}, data.data());
  expect_failure({.block = 1, .shared_bytes = slots_bytes}, leave_store_behind,
                 {"exits without waiting for its bulk store"}, data.data());
}

TEST_P(HopperFailureTest, ALoadThatLandsAfterItsBlock) {
  expect_failure({.block = 32, .shared_bytes = slots_bytes}, leave_loads_behind,
                 {"exits while a bulk copy is on its way"}, data.data());
}

// Tensor maps.

__global__ void load_box(const TensorMap map, int shift) {
  Slots& s = shared<Slots>();
  init(s, 1);
  if (threadIdx.x == 0) {
    ptx::mbarrier_arrive_expect(s.full, 1024);
    ptx::tensor_load(s.tile + shift, map, {0, 0}, s.full);
  }
  ptx::mbarrier_wait(s.full, 0);
}

__global__ void load_at(const TensorMap map, int column) {
  ptx::tensor_load(shared<Slots>().tile, map, {0, column}, shared<Slots>().full);
}
__global__ void store_at(const TensorMap map, int row, int column) {
  ptx::tensor_store(map, {row, column}, shared<Slots>().tile);
}

TEST_P(HopperFailureTest, PlacesThatTensorCopiesDoNotTake) {
  const LaunchShape one{.block = 1, .shared_bytes = slots_bytes};
  View<float, 2> view;
  view.data = data.data();
  view.shape[0] = view.shape[1] = view.strides[0] = 64;
  view.strides[1] = 1;
  const TensorMap map = make_tensor_map(view, {8, 32});
  expect_failure(one, load_at, {"the last coordinate is -2", "multiples of 4;"}, map, -2);
  expect_failure(one, load_at, {"the last coordinate is 33"}, map, 33);
  expect_failure(one, store_at, {"the last coordinate is 3"}, map, 0, 3);
  expect_failure(one, store_at, {"coordinate 1 is -4", "a store accepts none below 0"}, map, 0, -4);
  expect_failure(one, store_at, {"coordinate 0 is -1", "a store accepts none below 0"}, map, -1, 0);
}

TEST_P(HopperFailureTest, TensorCopies) {
  const LaunchShape one{.block = 32, .shared_bytes = slots_bytes};
  View<float, 2> view;
  view.data = data.data();
  view.shape[0] = view.shape[1] = view.strides[0] = 64;
  view.strides[1] = 1;
  View<float, 3> deep;
  deep.data = data.data();
  deep.shape[0] = deep.shape[1] = deep.shape[2] = 4;
  deep.strides[0] = 16;
  deep.strides[1] = 4;
  deep.strides[2] = 1;
  EXPECT_NO_THROW({
    Context c = context();
    launch(c, one, load_box, make_tensor_map(view, {8, 32}, Swizzle::bytes_128), 0);
  });
  expect_failure(one, load_box, {"no tensor map of make_tensor_map()"}, TensorMap{}, 0);
  expect_failure(one, load_box, {"2 coordinates for a tensor map of 3 axes"},
                 make_tensor_map(deep, {4, 4, 4}), 0);
  expect_failure(one, load_box, {"its box at a multiple of 128 bytes"},
                 make_tensor_map(view, {8, 32}), 16);
  expect_failure(one, load_box, {"its box at a multiple of 1024 bytes"},
                 make_tensor_map(view, {8, 32}, Swizzle::bytes_128), 32);
  expect_failure(one, load_box, {"outside the block's shared memory"},
                 make_tensor_map(view, {64, 32}), 0);
  expect_failure(one, load_box, {"deadlock", "3072 bytes more than announced"},
                 make_tensor_map(view, {32, 32}), 0);
}

INSTANTIATE_TEST_SUITE_P(Orders, HopperFailureTest, testing::ValuesIn(thread_orders()), order_name);

}  // namespace
}  // namespace rung
