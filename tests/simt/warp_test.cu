// SPDX-License-Identifier: Apache-2.0
// Shuffles, votes, matches and reductions of a warp, against the definitions of the PTX manual.
#include <bit>

#include "rung/device/ptx.hpp"
#include "tests/simt/device_fixture.hpp"

namespace rung::warp_test {
namespace {

class WarpTest : public DeviceTest {};

constexpr unsigned everyone = 0xffffffffu;

__host__ __device__ inline unsigned value_of(int lane) {
  return 1000u + 37u * static_cast<unsigned>(lane);
}

/// Four shuffles for each width and operand; out[((width * 32 + operand) * 4 + kind) * 32 + lane].
__global__ void all_shuffles(unsigned* out) {
  const int lane = static_cast<int>(threadIdx.x);
  int log = 0;
  for (int width = 1; width <= 32; width *= 2, ++log) {
    for (int operand = 0; operand < 32; ++operand) {
      unsigned* row = out + (log * 32 + operand) * 128 + lane;
      const unsigned mine = value_of(lane);
      row[0] = __shfl_sync(everyone, mine, operand, width);
      row[32] = __shfl_up_sync(everyone, mine, static_cast<unsigned>(operand), width);
      row[64] = __shfl_down_sync(everyone, mine, static_cast<unsigned>(operand), width);
      row[96] = __shfl_xor_sync(everyone, mine, operand, width);
    }
  }
}

TEST_P(WarpTest, ShufflesOfEveryWidthAndDistance) {
  Context c = context();
  Buffer<unsigned> out(6 * 32 * 128);
  launch(c, {.block = 32}, all_shuffles, out.data());
  const std::vector<unsigned> got = out.values();
  for (int log = 0; log < 6; ++log) {
    const int width = 1 << log;
    for (int operand = 0; operand < 32; ++operand) {
      for (int lane = 0; lane < 32; ++lane) {
        const int first = lane / width * width, last = first + width - 1;
        const int up = lane - operand < first ? lane : lane - operand;
        const int down = lane + operand > last ? lane : lane + operand;
        const int across = (lane ^ operand) > last ? lane : lane ^ operand;
        const auto at = static_cast<std::size_t>((log * 32 + operand) * 128 + lane);
        ASSERT_EQ(got[at], value_of(first + operand % width)) << width << " " << operand;
        ASSERT_EQ(got[at + 32], value_of(up)) << width << " " << operand << " " << lane;
        ASSERT_EQ(got[at + 64], value_of(down)) << width << " " << operand << " " << lane;
        ASSERT_EQ(got[at + 96], value_of(across)) << width << " " << operand << " " << lane;
      }
    }
  }
}

__global__ void wide_shuffles(double* d, long long* l, float* f) {
  const int lane = static_cast<int>(threadIdx.x);
  d[lane] = __shfl_xor_sync(everyone, 0.1 + lane, 5);
  l[lane] = __shfl_sync(everyone, (1ll << 40) + lane, 31 - lane);
  f[lane] = __shfl_down_sync(everyone, 0.5f * static_cast<float>(lane), 1);
}

TEST_P(WarpTest, ShufflesKeepAllBitsOfTheirTypes) {
  Context c = context();
  Buffer<double> d(32);
  Buffer<long long> l(32);
  Buffer<float> f(32);
  launch(c, {.block = 32}, wide_shuffles, d.data(), l.data(), f.data());
  for (int lane = 0; lane < 32; ++lane) {
    const auto at = static_cast<std::size_t>(lane);
    ASSERT_EQ(d.values()[at], 0.1 + (lane ^ 5));
    ASSERT_EQ(l.values()[at], (1ll << 40) + 31 - lane);
    ASSERT_EQ(f.values()[at], 0.5f * static_cast<float>(lane == 31 ? 31 : lane + 1));
  }
}

/// Shuffles in each half of a warp, a different number of times, then in the whole warp; the block
/// has a partial warp.
__global__ void parts(int* out) {
  const int me = static_cast<int>(threadIdx.x);
  const int lane = me % 32;
  int sum = lane;
  if (lane < 16) {
    for (int step = 1; step < 16; step *= 2) sum += __shfl_xor_sync(0x0000ffffu, sum, step);
  } else if (me < 32) {
    sum = __shfl_sync(0xffff0000u, sum, 20);
  }
  __syncwarp();
  out[me] = sum + __shfl_sync(everyone, sum, 0);
}

TEST_P(WarpTest, PartsOfAWarpMeetUnderTheirOwnMasks) {
  constexpr int threads = 48;  // the second warp is half full: its full mask means its 16 lanes
  Context c = context();
  Buffer<int> out(threads);
  launch(c, {.block = threads}, parts, out.data());
  for (int i = 0; i < threads; ++i) {
    const int own = i % 32 < 16 ? 120 : 20;
    ASSERT_EQ(out.values()[static_cast<std::size_t>(i)], own + 120) << i;
  }
}

/// Shuffles first among lanes 4 to 8, of which lane 8 is late, while 0 to 3 already wait for 4 to
/// 7.
__global__ void overlapping_masks(int* out) {
  const int lane = static_cast<int>(threadIdx.x);
  int value = lane;
  if (lane == 8) {
    for (int i = 0; i < 5; ++i) __nanosleep(100);
  }
  if (lane >= 4 && lane <= 8) value += __shfl_sync(0x1f0u, 100, 8);
  if (lane <= 7) value += __shfl_xor_sync(0xffu, value, 4);
  out[lane] = value;
}

TEST_P(WarpTest, OverlappingMasksMeetOneAfterTheOther) {
  Context c = context();
  Buffer<int> out(32);
  launch(c, {.block = 32}, overlapping_masks, out.data());
  for (int lane = 0; lane < 8; ++lane) {
    const int other = lane ^ 4;
    EXPECT_EQ(out.values()[static_cast<std::size_t>(lane)], lane + other + 100) << lane;
  }
  EXPECT_EQ(out.values()[8], 108);
}

struct Votes {
  unsigned ballot, part, match, match_all, no_match;
  int any, all, none, agreed, disagreed;
};

__global__ void votes(Votes* out) {
  const int lane = static_cast<int>(threadIdx.x);
  Votes v{};
  v.ballot = __ballot_sync(everyone, lane % 3 == 0);
  if (lane < 5) v.part = __ballot_sync(0x1fu, lane != 2);
  v.any = __any_sync(everyone, lane == 31);
  v.none = __any_sync(everyone, lane == 32);
  v.all = __all_sync(everyone, lane < 32);
  v.match = __match_any_sync(everyone, lane / 7);
  v.match_all = __match_all_sync(everyone, 42.0f, &v.agreed);
  v.no_match = __match_all_sync(everyone, lane / 31, &v.disagreed);
  out[lane] = v;
}

TEST_P(WarpTest, VotesAndMatches) {
  Context c = context();
  Buffer<Votes> out(32);
  launch(c, {.block = 32}, votes, out.data());
  const std::vector<Votes> got = out.values();
  for (int lane = 0; lane < 32; ++lane) {
    const Votes& v = got[static_cast<std::size_t>(lane)];
    unsigned same = 0;
    for (int other = 0; other < 32; ++other) {
      if (other / 7 == lane / 7) same |= 1u << other;
    }
    EXPECT_EQ(v.ballot, 0x49249249u);
    EXPECT_EQ(v.part, lane < 5 ? 0x1bu : 0u);
    EXPECT_EQ(v.match, same);
    EXPECT_EQ(v.match_all, everyone);
    EXPECT_EQ(v.no_match, 0u);
    EXPECT_TRUE(v.any != 0 && v.all != 0 && v.none == 0 && v.agreed != 0 && v.disagreed == 0);
  }
}

struct Reduced {
  int sum, least, most;
  unsigned unsigned_least, unsigned_most, conjunction, disjunction, exclusive;
};

__global__ void reductions(Reduced* out, unsigned mask) {
  const int lane = static_cast<int>(threadIdx.x);
  if ((mask >> lane & 1) == 0) return;
  const int value = 5 * lane - 70;
  const auto bits = static_cast<unsigned>(value);
  out[lane] = {__reduce_add_sync(mask, value), __reduce_min_sync(mask, value),
               __reduce_max_sync(mask, value), __reduce_min_sync(mask, bits),
               __reduce_max_sync(mask, bits),  __reduce_and_sync(mask, bits),
               __reduce_or_sync(mask, bits),   __reduce_xor_sync(mask, bits)};
}

TEST_P(WarpTest, ReductionsUnderAMask) {
  for (const unsigned mask : {everyone, 0x00f0f0f1u, 0x80000000u}) {
    Context c = context();
    Buffer<Reduced> out(32);
    launch(c, {.block = 32}, reductions, out.data(), mask);
    Reduced want{0, 1 << 30, -(1 << 30), everyone, 0, everyone, 0, 0};
    for (int lane = 0; lane < 32; ++lane) {
      if ((mask >> lane & 1) == 0) continue;
      const int value = 5 * lane - 70;
      const auto bits = static_cast<unsigned>(value);
      want = {want.sum + value,
              std::min(want.least, value),
              std::max(want.most, value),
              std::min(want.unsigned_least, bits),
              std::max(want.unsigned_most, bits),
              want.conjunction & bits,
              want.disjunction | bits,
              want.exclusive ^ bits};
    }
    for (int lane = 0; lane < 32; ++lane) {
      if ((mask >> lane & 1) == 0) continue;
      const Reduced got = out.values()[static_cast<std::size_t>(lane)];
      EXPECT_EQ(got.sum, want.sum);
      EXPECT_EQ(got.least, want.least);
      EXPECT_EQ(got.most, want.most);
      EXPECT_EQ(got.unsigned_least, want.unsigned_least);
      EXPECT_EQ(got.unsigned_most, want.unsigned_most);
      EXPECT_EQ(got.conjunction, want.conjunction);
      EXPECT_EQ(got.disjunction, want.disjunction);
      EXPECT_EQ(got.exclusive, want.exclusive);
    }
  }
}

struct Exchange {
  int value[32];
};

/// Passes values between lanes through shared memory, with only __syncwarp in between.
__global__ void through_shared_memory(int* out) {
  Exchange& exchange = shared<Exchange>();
  const int lane = static_cast<int>(threadIdx.x);
  int value = lane;
  for (int step = 0; step < 6; ++step) {
    exchange.value[lane] = value;
    __syncwarp();
    value += exchange.value[(lane + 7) % 32];
    __syncwarp();
  }
  out[lane] = value;
}

TEST_P(WarpTest, SyncwarpOrdersSharedMemory) {
  Context c = context();
  Buffer<int> out(32);
  launch(c, {.block = 32, .shared_bytes = sizeof(Exchange)}, through_shared_memory, out.data());
  std::vector<int> want(32);
  for (int i = 0; i < 32; ++i) want[static_cast<std::size_t>(i)] = i;
  for (int step = 0; step < 6; ++step) {
    const std::vector<int> before = want;
    for (std::size_t i = 0; i < 32; ++i) want[i] += before[(i + 7) % 32];
  }
  EXPECT_EQ(out.values(), want);
}

/// Counts the lanes of one branch by the mask of the lanes that are active in it.
__global__ void aggregated(unsigned* counters, int* lanes) {
  const int me = static_cast<int>(threadIdx.x);
  lanes[me] = ptx::lane_index();
  const int which = me % 3;
  if (which == 0) {
    const unsigned active = __activemask();
    if (me % 32 == __ffs(static_cast<int>(active)) - 1) {
      atomicAdd(&counters[0], static_cast<unsigned>(__popc(active)));
    }
  } else {
    atomicAdd(&counters[which], 1u);
  }
}

TEST_P(WarpTest, ActiveMaskNamesTheLanesThatAreThere) {
  constexpr unsigned threads = 100;
  Context c = context();
  Buffer<unsigned> counters(std::vector<unsigned>{0, 0, 0});
  Buffer<int> lanes(threads);
  launch(c, {.block = threads}, aggregated, counters.data(), lanes.data());
  EXPECT_EQ(counters.values(), (std::vector<unsigned>{34, 33, 33}));
  for (std::size_t i = 0; i < threads; ++i) EXPECT_EQ(lanes.values()[i], static_cast<int>(i % 32));
}

INSTANTIATE_TEST_SUITE_P(Orders, WarpTest, testing::ValuesIn(thread_orders()), order_name);

}  // namespace
}  // namespace rung::warp_test
