// SPDX-License-Identifier: Apache-2.0
// Collectives of warps and blocks: any trivially copyable value, operands in the order of threads.
#include "rung/device/collectives.hpp"

#include <cstring>

#include "rung/device/convert.hpp"
#include "rung/device/resident.hpp"
#include "tests/simt/device_fixture.hpp"

namespace rung::collectives_test {
namespace {

class CollectivesTest : public DeviceTest {};

/// Function x -> factor * x + shift: composition is associative, but not commutative.
struct Affine {
  unsigned factor;
  unsigned shift;
  unsigned padding;  // three words, which are moved one by one
};
struct Compose {
  __device__ Affine operator()(const Affine& first, const Affine& second) const {
    return {first.factor * second.factor, first.shift * second.factor + second.shift, 7};
  }
};
RUNG_HD Affine affine_of(int i) {
  return {static_cast<unsigned>(2 * i + 3), static_cast<unsigned>(i * i + 1), 7};
}
/// Returns the composition of first, first + 1, ... last, in sequence.
Affine serial(int first, int last) {
  Affine all{1, 0, 7};
  for (int i = first; i <= last; ++i) {
    const Affine next = affine_of(i);
    all = {all.factor * next.factor, all.shift * next.factor + next.shift, 7};
  }
  return all;
}

struct Results {
  Affine warp, group, scan, block, before, total;
};

template <int Threads>
__global__ void all_collectives(Results* results) {
  struct Layout {
    WarpValues<Affine, Threads> scratch;
  };
  auto& scratch = shared<Layout>().scratch;
  const int thread = static_cast<int>(threadIdx.x);
  const Affine mine = affine_of(thread);
  const Affine identity{1, 0, 7};
  Results& r = results[thread];
  r.warp = warp_reduce(mine, Compose());
  r.group = warp_reduce<8>(mine, Compose());
  r.scan = warp_scan_inclusive<16>(mine, Compose());
  r.block = block_reduce<Threads>(mine, Compose(), identity, scratch);
  const BlockScan<Affine> scanned = block_scan<Threads>(mine, Compose(), identity, scratch);
  r.before = scanned.before;
  r.total = scanned.total;
}

void expect_same(const Affine& got, const Affine& expected, const char* what, int thread) {
  EXPECT_TRUE(got.factor == expected.factor && got.shift == expected.shift && got.padding == 7)
      << what << " of thread " << thread;
}

template <int Threads>
void check_collectives(Context& c) {
  Buffer<Results> results(Threads);
  launch(c, {.block = Threads, .shared_bytes = sizeof(WarpValues<Affine, Threads>)},
         all_collectives<Threads>, results.data());
  const std::vector<Results> values = results.values();
  for (int t = 0; t < Threads; ++t) {
    const Results& r = values[static_cast<std::size_t>(t)];
    expect_same(r.warp, serial(t / 32 * 32, t / 32 * 32 + 31), "warp", t);
    expect_same(r.group, serial(t / 8 * 8, t / 8 * 8 + 7), "group", t);
    expect_same(r.scan, serial(t / 16 * 16, t), "scan", t);
    expect_same(r.block, serial(0, Threads - 1), "block", t);
    expect_same(r.before, serial(0, t - 1), "before", t);
    expect_same(r.total, serial(0, Threads - 1), "total", t);
  }
}

TEST_P(CollectivesTest, KeepTheOrderOfOperands) {
  Context c = context();
  check_collectives<32>(c);
  check_collectives<96>(c);
  check_collectives<1024>(c);
}

template <class T>
__global__ void reverse_lanes(T* values) {
  const int lane = lane_of_thread();
  values[lane] = shuffle(values[lane], 31 - lane);
}

template <class T>
void check_reversal(Context& c, T (*make)(int)) {
  std::vector<T> values(32);
  for (int i = 0; i < 32; ++i) values[static_cast<std::size_t>(i)] = make(i);
  Buffer<T> buffer(values);
  launch(c, {.block = 32}, reverse_lanes<T>, buffer.data());
  const std::vector<T> got = buffer.values();
  for (std::size_t i = 0; i < 32; ++i) {
    EXPECT_EQ(std::memcmp(&got[i], &values[31 - i], sizeof(T)), 0) << i;
  }
}

TEST_P(CollectivesTest, MoveValuesOfAnySize) {
  Context c = context();
  check_reversal<std::uint8_t>(c, [](int i) { return static_cast<std::uint8_t>(200 + i); });
  check_reversal<std::int8_t>(c, [](int i) { return static_cast<std::int8_t>(-i); });
  check_reversal<f16>(c, [](int i) { return f16(static_cast<float>(i) / 3); });
  check_reversal<double>(c, [](int i) { return i / 3.0; });
  check_reversal<Pack<double, 3>>(c, [](int i) {
    return Pack<double, 3>{{i / 3.0, 1.0, -i * 1.0}};
  });
}

__global__ void nothing() {}

TEST_P(CollectivesTest, ResidentBlocksAreAtMostWhatTheDeviceHolds) {
  Context c = context();
  const int sms = c.info().sms;
  EXPECT_EQ(resident_blocks(c, nothing, 1024), 2 * sms);
  EXPECT_EQ(resident_blocks(c, nothing, 32, c.info().shared_per_block), sms);
  EXPECT_GE(resident_blocks(c, nothing, 32), 16 * sms);
}

INSTANTIATE_TEST_SUITE_P(Orders, CollectivesTest, testing::ValuesIn(thread_orders()), order_name);

}  // namespace
}  // namespace rung::collectives_test
