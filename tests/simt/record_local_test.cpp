// SPDX-License-Identifier: Apache-2.0
// A thread's own arrays: counted, without effect on other accesses. Many accesses to them between
// two barriers once split the requests of a kernel's lanes.
#include "tests/simt/record_fixture.hpp"

// Called by compiled code before an access beyond an array of known size.
extern "C" void rung_simt_bad_index(const char* file, int line, const char* array, long long index);

namespace rung {
namespace {

/// Adds to an element. Not inlined, so that the array has an address.
__attribute__((noinline)) void add(float* array, int at, float value) { array[at] += value; }

__global__ void scatter(const float* in, float* out, int rounds) {
  float mine[16];
  for (int i = 0; i < 16; ++i) mine[i] = 0;
  const int lane = static_cast<int>(threadIdx.x);
  for (int i = 0; i < rounds; ++i) add(mine, i * 7 % 16, in[i * 64 + lane]);
  float sum = 0;
  for (int i = 0; i < 16; ++i) sum += mine[i];
  out[lane] = sum;
}

TEST(RecordLocal, OwnArraysLeaveRequestsWhole) {
  constexpr int rounds = 1000;  // 2000 local accesses: more than a list of the recorder holds
  Buffer<float> in(std::vector<float>(rounds * 64, 1)), out(64);
  const Report report =
      recorded_launch({.grid = 1, .block = 64}, scatter, in.data(), out.data(), rounds);
  expect_clean(report);
  EXPECT_EQ(out.values()[63], 1000.0f);
  const Kernel& kernel = report.kernels.at(0);
  EXPECT_EQ(kernel.totals.global_load_requests, 2u * rounds);
  EXPECT_EQ(kernel.totals.global_load_sectors, 2u * rounds * 4);
  EXPECT_EQ(kernel.active_lanes(), 32.0);
  EXPECT_EQ(kernel.divergent_warps, 0u);
  // At least a load and a store of 4 bytes per round and thread.
  EXPECT_GE(kernel.totals.local_bytes, 2u * rounds * 64 * 4);
  EXPECT_GE(kernel.totals.local_requests, 2u * rounds * 2);
  for (const auto& line : kernel.lines) EXPECT_TRUE(line.exact) << line.line;
}

/// Reports a valid index as invalid, as code compiled with -fsanitize=bounds would.
__global__ void past_its_own(float* out) {
  float mine[4] = {};
  if (threadIdx.x == 5) rung_simt_bad_index(__FILE__, 7, "'float [4]'", 4);
  add(mine, 3, 1);
  out[threadIdx.x] = mine[3];
}

TEST(RecordLocal, AnIndexBeyondAnOwnArrayIsSaidToBeOfThat) {
  for (const bool counters : {true, false}) {
    Buffer<float> out(64);
    const Report report = recorded(
        [&] {
          Context context = Context::on(Backend::simt, 2);
          launch(context, {.grid = 1, .block = 64}, past_its_own, out.data());
        },
        {.counters = counters});
    ASSERT_EQ(report.findings.size(), 1u) << all_text(report);
    expect_finding(report, Kind::out_of_bounds, Space::local, 7);
    EXPECT_EQ(report.findings[0].thread.x, 5u);
  }
}

}  // namespace
}  // namespace rung
