// SPDX-License-Identifier: Apache-2.0
// Blocks that wait for blocks: decoupled look-back, flags, grid barriers built from counters.
#include "rung/device/ptx/memory.hpp"

#include <cstdint>
#include <numeric>

#include "tests/simt/device_fixture.hpp"

namespace rung::ordered_memory_test {
namespace {

class OrderedMemoryTest : public DeviceTest {};

/// Progress that a block publishes: none, its own sum, or the inclusive sum.
enum Progress : std::uint32_t { nothing, own_sum, whole_sum };
struct Status {
  std::uint32_t progress;
  int sum;
};
struct WideStatus {
  std::uint64_t progress;
  std::int64_t sum;
};

/// Returns the sum of all previous blocks, by one thread, one status at a time.
template <class Record>
__device__ int look_back(const Record* status, int block) {
  int sum = 0;
  for (int before = block - 1; before >= 0;) {
    const Record seen = ptx::load_relaxed(&status[before]);
    if (seen.progress == nothing) continue;
    sum += static_cast<int>(seen.sum);
    if (seen.progress == whole_sum) break;
    --before;
  }
  return sum;
}

struct ScanShared {
  int value[128];
  int block, before;
};

/// Computes inclusive sums of 128 elements per block. With `ticket`, blocks number themselves on
/// start.
template <class Record>
__global__ void scan(const int* in, int* out, Record* status, unsigned* ticket) {
  ScanShared& s = shared<ScanShared>();
  const int me = static_cast<int>(threadIdx.x);
  if (me == 0) {
    s.block =
        ticket != nullptr ? static_cast<int>(atomicAdd(ticket, 1u)) : static_cast<int>(blockIdx.x);
  }
  __syncthreads();
  const int block = s.block;
  s.value[me] = in[128 * block + me];
  __syncthreads();
  for (int step = 1; step < 128; step *= 2) {
    const int add = me >= step ? s.value[me - step] : 0;
    __syncthreads();
    s.value[me] += add;
    __syncthreads();
  }
  if (me == 0) {
    Record mine{own_sum, s.value[127]};
    ptx::store_relaxed(&status[block], mine);
    s.before = look_back(status, block);
    mine = {whole_sum, s.before + s.value[127]};
    ptx::store_relaxed(&status[block], mine);
  }
  __syncthreads();
  out[128 * block + me] = s.before + s.value[me];
}

template <class Record>
void expect_scan(Context& c, int blocks, bool with_ticket) {
  std::vector<int> in(static_cast<std::size_t>(128 * blocks)), want(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int>(i * 7 % 13) - 5;
  std::partial_sum(in.begin(), in.end(), want.begin());
  Buffer<int> source(in), out(in.size());
  Buffer<Record> status(std::vector<Record>(static_cast<std::size_t>(blocks), Record{nothing, 0}));
  Buffer<unsigned> ticket(std::vector<unsigned>{0});
  launch(c, {.grid = blocks, .block = 128, .shared_bytes = sizeof(ScanShared)}, scan<Record>,
         source.data(), out.data(), status.data(), with_ticket ? ticket.data() : nullptr);
  EXPECT_EQ(out.values(), want) << blocks << " blocks";
}

TEST_P(OrderedMemoryTest, LookBackWithATicket) {
  Context c = context();
  for (const int blocks : {1, 2, 33, 300}) expect_scan<Status>(c, blocks, true);
}
/// Requires previous blocks to run: in reverse order all of them have started before block 0.
TEST_P(OrderedMemoryTest, LookBackByBlockIndex) {
  Context c = context();
  for (const int blocks : {1, 2, 33, 300}) expect_scan<Status>(c, blocks, false);
}
TEST_P(OrderedMemoryTest, LookBackWith16ByteStatus) {
  Context c = context();
  expect_scan<WideStatus>(c, 33, true);
  expect_scan<WideStatus>(c, 33, false);
}

/// Waits for 32 statuses at a time: every lane of a warp waits for one, and the lanes vote.
__global__ void wait_by_warp(unsigned* flags, int* out) {
  const unsigned me = blockIdx.x;
  if (me == 0) {
    bool all = false;
    while (!all) {
      const unsigned seen = ptx::load_acquire(&flags[threadIdx.x]);
      all = __all_sync(0xffffffffu, seen != 0) != 0;
      if (!all) ptx::nanosleep(20);
    }
    out[threadIdx.x] = out[32 + threadIdx.x];
  } else if (threadIdx.x == 0) {
    out[31 + me] = static_cast<int>(10 * me);
    ptx::store_release(&flags[me - 1], 1u);
  }
}

TEST_P(OrderedMemoryTest, AWarpWaitsForThirtyTwoBlocks) {
  Context c = context();
  Buffer<unsigned> flags(std::vector<unsigned>(32, 0));
  Buffer<int> out(64);
  launch(c, {.grid = 33, .block = 32}, wait_by_warp, flags.data(), out.data());
  const std::vector<int> got = out.values();
  for (int i = 0; i < 32; ++i) ASSERT_EQ(got[static_cast<std::size_t>(i)], 10 * (i + 1));
}

/// Consumes in block 0 what block 1 produces, through one slot and two counters.
__global__ void producer_consumer(unsigned long long* produced, unsigned long long* consumed,
                                  int* slot, int* out, int rounds) {
  if (threadIdx.x != 0) return;
  for (int round = 0; round < rounds; ++round) {
    const auto now = static_cast<unsigned long long>(round);
    if (blockIdx.x == 1) {
      while (ptx::load_acquire(consumed) < now) ptx::nanosleep(20);
      *slot = 3 * round;
      ptx::store_release(produced, now + 1);
    } else {
      while (ptx::load_acquire(produced) <= now) {
      }
      out[round] = *slot;
      ptx::reduce_add_release(consumed, 1ull);
    }
  }
}

TEST_P(OrderedMemoryTest, ProducerAndConsumer) {
  constexpr int rounds = 50;
  Context c = context();
  Buffer<unsigned long long> produced(std::vector<unsigned long long>{0});
  Buffer<unsigned long long> consumed(std::vector<unsigned long long>{0});
  Buffer<int> slot(1), out(rounds);
  launch(c, {.grid = 2, .block = 64}, producer_consumer, produced.data(), consumed.data(),
         slot.data(), out.data(), rounds);
  for (int i = 0; i < rounds; ++i) ASSERT_EQ(out.values()[static_cast<std::size_t>(i)], 3 * i);
}

/// Waits at a grid barrier built from a counter: needs all blocks resident, without a cooperative
/// launch.
__device__ void counter_barrier(unsigned* arrived, unsigned target) {
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::reduce_add_release(arrived, 1u);
    while (ptx::load_acquire(arrived) < target) {
    }
  }
  __syncthreads();
}

__global__ void rotate(int* values, unsigned* arrived, int steps) {
  const int n = static_cast<int>(gridDim.x * blockDim.x);
  const int me = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  unsigned target = 0;
  for (int step = 0; step < steps; ++step) {
    const int next = ptx::load_relaxed(&values[(me + 1) % n]);
    counter_barrier(arrived, target += gridDim.x);
    ptx::store_relaxed(&values[me], next);
    counter_barrier(arrived, target += gridDim.x);
  }
}

TEST_P(OrderedMemoryTest, AGridBarrierOfFlags) {
  constexpr int blocks = 20, threads = 64, n = blocks * threads, steps = 5;
  std::vector<int> values(n);
  std::iota(values.begin(), values.end(), 0);
  Context c = context();
  Buffer<int> data(values);
  Buffer<unsigned> arrived(std::vector<unsigned>{0});
  launch(c, {.grid = blocks, .block = threads}, rotate, data.data(), arrived.data(), steps);
  for (int i = 0; i < n; ++i) {
    ASSERT_EQ(data.values()[static_cast<std::size_t>(i)], (i + steps) % n);
  }
}

/// Computes for long, with many barriers, before it passes on the value of the previous block.
__global__ void slow_chain(unsigned* flags, int rounds, int* out) {
  ScanShared& s = shared<ScanShared>();
  const int me = static_cast<int>(threadIdx.x);
  s.value[me] = me;
  for (int round = 0; round < rounds; ++round) {
    __syncthreads();
    const int next = s.value[(me + 1) % 32];
    __syncthreads();
    s.value[me] = next;
  }
  const unsigned block = blockIdx.x;
  if (me != 0) return;
  while (block != 0 && ptx::load_acquire(&flags[block - 1]) == 0) {
  }
  out[block] = s.value[0] + (block == 0 ? 0 : out[block - 1]);
  ptx::store_release(&flags[block], 1u);
}

TEST_P(OrderedMemoryTest, ALongComputationIsNoDeadlock) {
  constexpr int blocks = 400, rounds = 200;
  Context c = context();
  Buffer<unsigned> flags(std::vector<unsigned>(blocks, 0));
  Buffer<int> out(blocks);
  launch(c, {.grid = blocks, .block = 32, .shared_bytes = sizeof(ScanShared)}, slow_chain,
         flags.data(), rounds, out.data());
  EXPECT_EQ(out.values()[blocks - 1], blocks * (rounds % 32));
}

/// Adds all partial sums in the last block to arrive.
__global__ void last_block_sums(int* partial, unsigned* arrived, int* out) {
  if (threadIdx.x != 0) return;
  partial[blockIdx.x] = static_cast<int>(blockIdx.x) + 1;
  if (ptx::atomic_add_acquire_release(arrived, 1u) != gridDim.x - 1) return;
  int sum = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += partial[i];
  *out = sum;
}

TEST_P(OrderedMemoryTest, TheLastBlockSeesAll) {
  Context c = context();
  Buffer<int> partial(200), out(1);
  Buffer<unsigned> arrived(std::vector<unsigned>{0});
  launch(c, {.grid = 200, .block = 32}, last_block_sums, partial.data(), arrived.data(),
         out.data());
  EXPECT_EQ(out.values()[0], 200 * 201 / 2);
}

/// Stores 16 bytes with equal halves; a reader must never see unequal halves.
__global__ void whole_pieces(WideStatus* cell, int* torn, int rounds) {
  if (blockIdx.x == 0) {
    for (int i = 0; i < rounds; ++i) {
      const WideStatus seen = ptx::load_relaxed(cell);
      if (static_cast<std::int64_t>(seen.progress) != seen.sum) atomicAdd(torn, 1);
    }
  } else {
    for (int i = 0; i < rounds; ++i) {
      const auto value = static_cast<std::uint64_t>(i + 1000 * static_cast<int>(blockIdx.x));
      ptx::store_relaxed(cell, WideStatus{value, static_cast<std::int64_t>(value)});
    }
  }
}

TEST_P(OrderedMemoryTest, SixteenBytesMoveInOnePiece) {
  Context c = context();
  Buffer<WideStatus> cell(std::vector<WideStatus>{{0, 0}});
  Buffer<int> torn(std::vector<int>{0});
  launch(c, {.grid = 8, .block = 1024}, whole_pieces, cell.data(), torn.data(), 20);
  EXPECT_EQ(torn.values()[0], 0);
}

INSTANTIATE_TEST_SUITE_P(Orders, OrderedMemoryTest, testing::ValuesIn(thread_orders()), order_name);

}  // namespace
}  // namespace rung::ordered_memory_test
