// SPDX-License-Identifier: Apache-2.0
// Out-of-bounds accesses, and reads of uninitialized memory.
#include "tests/simt/record_fixture.hpp"

namespace rung {
namespace {

constexpr int line_of_fill = __LINE__ + 3;
__global__ void fill(int* out, int count, int value) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) out[i] = value;
}

TEST(Memory, OneTooManyIsOutOfBounds) {
  Buffer<int> out(100);
  expect_clean(recorded_launch({.grid = 4, .block = 32}, fill, out.data(), 100, 1));
  const Report report = recorded_launch({.grid = 4, .block = 32}, fill, out.data(), 101, 1);
  expect_finding(report, Kind::out_of_bounds, Space::global, line_of_fill);
  EXPECT_EQ(report.findings.at(0).thread.x, 4u);
  EXPECT_EQ(report.findings.at(0).block.x, 3u);
}

/// Reads an element and discards it.
__global__ void read_one(const int* in, int index, int* out) {
  const int value = in[index];
  if (value == 12345) *out = value;
}

TEST(Memory, GuardsAreOutOfBounds) {
  Buffer<int> in(std::vector<int>(64, 1)), out(1);
  const auto read = [&](int index) {
    return recorded_launch({.grid = 1, .block = 1}, read_one, in.data(), index, out.data());
  };
  expect_clean(read(0));
  simt::record::set_guards(in.data(), 16, 8, "the operand");
  for (const int index : {4, 61}) expect_clean(read(index));
  for (const int index : {0, 3, 62, 63, 64}) {
    const Report report = read(index);
    expect_finding(report, Kind::out_of_bounds, Space::global);
    EXPECT_NE(all_text(report).find("232 bytes of the operand"), std::string::npos)
        << all_text(report);
  }
}

TEST(Memory, FarAwayEndsTheLaunch) {
  Buffer<int> out(100);
  const Report report =
      recorded_launch({.grid = 1, .block = 32}, +[](int* to) { to[1 << 20] = 1; }, out.data());
  expect_finding(report, Kind::out_of_bounds, Space::global);
}

TEST(Memory, ANullPointerEndsTheLaunch) {
  const Report report = recorded_launch(
      {.grid = 1, .block = 32}, +[](int* to) { *to = 1; }, static_cast<int*>(nullptr));
  expect_finding(report, Kind::out_of_bounds, Space::global);
}

TEST(Memory, SharedMemoryHasAnEnd) {
  const Report report = recorded_launch(
      {.grid = 1, .block = 32, .shared_bytes = 100},
      +[] { static_cast<int*>(simt::shared_memory())[threadIdx.x] = 1; });
  expect_finding(report, Kind::out_of_bounds, Space::shared);
}

TEST(Memory, FreedMemoryIsNotForUse) {
  const Report report = recorded([] {
    int* data = nullptr;
    {
      const Buffer<int> out(64);
      data = out.data();
    }
    Context context = Context::on(Backend::simt, 1);
    launch(context, {.grid = 1, .block = 32}, fill, data, 64, 1);
  });
  expect_finding(report, Kind::use_after_free, Space::global, line_of_fill);
}

TEST(Memory, AlignmentIsChecked) {
  Buffer<float> in(std::vector<float>(64, 1));
  Buffer<double> out(8);
  const Report report = recorded_launch(
      {.grid = 1, .block = 1},
      +[](const float* from, double* to) { *to = *reinterpret_cast<const double*>(from + 1); },
      in.data(), out.data());
  expect_finding(report, Kind::misaligned, Space::global);
}

template <bool Correct>
__global__ void sum_of_tile(int* out) {
  int* tile = static_cast<int*>(simt::shared_memory());
  if (Correct || threadIdx.x < 31) tile[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = tile[31 - threadIdx.x];
}

TEST(Memory, SharedMemoryStartsUninitialized) {
  Buffer<int> out(32);
  const LaunchShape shape{.grid = 1, .block = 32, .shared_bytes = 128};
  expect_clean(recorded_launch(shape, sum_of_tile<true>, out.data()));
  expect_finding(recorded_launch(shape, sum_of_tile<false>, out.data()), Kind::uninitialized,
                 Space::shared);
}

TEST(Memory, GlobalMemoryStartsUninitialized) {
  const auto run = [](bool written) {
    return recorded([=] {
      Buffer<int> in(64), out(64);
      // Like memory of cudaMalloc, which no host code may write.
      simt::record::register_memory({.begin = in.data(), .bytes = 256, .initialized = false});
      Context context = Context::on(Backend::simt, 1);
      if (written) launch(context, {.grid = 2, .block = 32}, fill, in.data(), 64, 1);
      launch(
          context, {.grid = 2, .block = 32},
          +[](const int* from, int* to) {
            const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
            to[i] = from[i];
          },
          in.data(), out.data());
    });
  };
  expect_clean(run(true));
  expect_finding(run(false), Kind::uninitialized, Space::global);
}

TEST(Memory, LeaksAreToldWhenAsked) {
  int memory[4];
  const Report report = recorded(
      [&] {
        simt::record::register_memory({.begin = memory,
                                       .bytes = sizeof(memory),
                                       .freed_by_hand = true,
                                       .name = "cudaMalloc"});
      },
      {.leaks = true});
  simt::record::unregister_memory(memory);
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].kind, Kind::leak);
}

}  // namespace
}  // namespace rung
