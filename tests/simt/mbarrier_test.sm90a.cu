// SPDX-License-Identifier: Apache-2.0
// mbarriers: phases, parities, arrivals, and rings of tiles filled by bulk copies.
#include "rung/device/ptx/mbarrier.hpp"

#include "rung/device/ptx/bulk_copy.hpp"
#include "tests/simt/hopper_fixture.hpp"

namespace rung::mbarrier_test {
namespace {

class MemoryBarrierTest : public HopperTest {};

struct Ring {
  int value[256];
  ptx::MemoryBarrier barrier;
};

/// Uses an mbarrier as barrier of the block, for many phases.
__global__ void ring_sums(int* out, int steps) {
  Ring& ring = shared<Ring>();
  const int count = static_cast<int>(blockDim.x), me = static_cast<int>(threadIdx.x);
  if (me == 0) {
    ptx::mbarrier_init(ring.barrier, count);
    ptx::mbarrier_fence_init();
  }
  __syncthreads();
  unsigned parity = 0;
  const auto meet = [&] {
    ptx::mbarrier_arrive(ring.barrier);
    ptx::mbarrier_wait(ring.barrier, parity);
    parity ^= 1;
  };
  ring.value[me] = me;
  for (int step = 0; step < steps; ++step) {
    meet();
    const int next = ring.value[(me + 1) % count];
    meet();
    ring.value[me] += next;
  }
  out[me] = ring.value[me];
}

TEST_P(MemoryBarrierTest, ThreadsMeetPhaseAfterPhase) {
  constexpr int steps = 6;
  for (const int threads : {1, 33, 256}) {
    Context c = context();
    Buffer<int> out(static_cast<std::size_t>(threads));
    launch(c, {.block = threads, .shared_bytes = sizeof(Ring)}, ring_sums, out.data(), steps);
    std::vector<int> want(static_cast<std::size_t>(threads));
    for (int i = 0; i < threads; ++i) want[static_cast<std::size_t>(i)] = i;
    for (int step = 0; step < steps; ++step) {
      const std::vector<int> before = want;
      for (std::size_t i = 0; i < want.size(); ++i) want[i] += before[(i + 1) % want.size()];
    }
    EXPECT_EQ(out.values(), want);
  }
}

constexpr int stages = 3, tile = 512;

struct Pipeline {
  alignas(128) float tile_of[stages][tile];
  ptx::MemoryBarrier full[stages], empty[stages];
};

/// Fetches tiles in warp 0 and consumes them in the other warps; the ring's slots are full or
/// empty.
__global__ void pipeline(const float* in, int tiles, float* out) {
  Pipeline& p = shared<Pipeline>();
  const int me = static_cast<int>(threadIdx.x), consumers = static_cast<int>(blockDim.x) - 32;
  if (me == 0) {
    for (int s = 0; s < stages; ++s) {
      ptx::mbarrier_init(p.full[s], 1);
      ptx::mbarrier_init(p.empty[s], consumers);
    }
    ptx::mbarrier_fence_init();
  }
  __syncthreads();
  in += static_cast<std::int64_t>(blockIdx.x) * tiles * tile;
  if (me < 32) {
    for (int k = 0; me == 0 && k < tiles; ++k) {
      const int slot = k % stages;
      const unsigned turn = static_cast<unsigned>(k / stages) & 1;
      ptx::mbarrier_wait(p.empty[slot], turn ^ 1);  // for a fresh slot: returns at once
      ptx::mbarrier_arrive_expect(p.full[slot], sizeof(p.tile_of[0]));
      // Two copies per tile: the barrier counts bytes, not copies.
      ptx::bulk_load(p.tile_of[slot], in + k * tile, tile / 2 * 4, p.full[slot]);
      ptx::bulk_load(p.tile_of[slot] + tile / 2, in + k * tile + tile / 2, tile / 2 * 4,
                     p.full[slot]);
    }
  } else {
    float sum = 0;
    for (int k = 0; k < tiles; ++k) {
      const int slot = k % stages;
      const unsigned turn = static_cast<unsigned>(k / stages) & 1;
      while (!ptx::mbarrier_try_wait(p.full[slot], turn)) {
      }
      for (int i = me - 32; i < tile; i += consumers) sum += p.tile_of[slot][i];
      ptx::mbarrier_arrive(p.empty[slot]);
    }
    out[static_cast<int>(blockIdx.x) * consumers + me - 32] = sum;
  }
}

TEST_P(MemoryBarrierTest, ARingOfTilesThatCopiesFill) {
  constexpr int consumers = 64, blocks = 3;
  for (const int tiles : {1, 2, 3, 7, 20}) {
    std::vector<float> in(static_cast<std::size_t>(blocks * tiles) * tile);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i % 101);
    Context c = context();
    Buffer<float> source(in), out(blocks * consumers);
    launch(c, {.grid = blocks, .block = consumers + 32, .shared_bytes = sizeof(Pipeline)}, pipeline,
           source.data(), tiles, out.data());
    const std::vector<float> got = out.values();
    for (int b = 0; b < blocks; ++b) {
      for (int t = 0; t < consumers; ++t) {
        float want = 0;
        for (int i = t; i < tiles * tile; i += consumers) {
          want += in[static_cast<std::size_t>(b * tiles * tile + i)];
        }
        ASSERT_EQ(got[static_cast<std::size_t>(b * consumers + t)], want) << tiles << " tiles";
      }
    }
  }
}

/// Announces bytes from several threads, some before their arrival.
__global__ void many_announcements(const float* in, float* out) {
  Pipeline& p = shared<Pipeline>();
  const int me = static_cast<int>(threadIdx.x);
  if (me == 0) {
    ptx::mbarrier_init(p.full[0], 4);
    ptx::mbarrier_fence_init();
  }
  __syncthreads();
  if (me < 4) {
    ptx::mbarrier_expect(p.full[0], 256);
    ptx::bulk_load(p.tile_of[0] + 128 * me, in + 128 * me, 512, p.full[0]);
    ptx::mbarrier_arrive_expect(p.full[0], 256);
  }
  ptx::mbarrier_wait(p.full[0], 0);
  for (int i = me; i < tile; i += 32) out[i] = p.tile_of[0][i];
  __syncthreads();
  if (me == 0) ptx::mbarrier_invalidate(p.full[0]);
}

TEST_P(MemoryBarrierTest, EveryThreadMayAnnounceBytes) {
  std::vector<float> in(tile);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
  Context c = context();
  Buffer<float> source(in), out(tile);
  launch(c, {.block = 32, .shared_bytes = sizeof(Pipeline)}, many_announcements, source.data(),
         out.data());
  EXPECT_EQ(out.values(), in);
}

INSTANTIATE_TEST_SUITE_P(Orders, MemoryBarrierTest, testing::ValuesIn(thread_orders()), order_name);

}  // namespace
}  // namespace rung::mbarrier_test
