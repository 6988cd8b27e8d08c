// SPDX-License-Identifier: Apache-2.0
// cp.async: pipelines of tiles, and copies shorter than their destination.
#include "rung/device/ptx/async_copy.hpp"
#include "tests/simt/device_fixture.hpp"

namespace rung::async_copy_test {
namespace {

class AsyncCopyTest : public DeviceTest {};

constexpr int threads = 64;
constexpr int stages = 3;

struct Stages {
  alignas(16) float tile[stages][4 * threads];
};

/// Sums tiles that arrive through a pipeline of three stages; each thread reads elements that
/// another thread copied.
__global__ void pipelined(const float* in, int tiles, float* out) {
  Stages& s = shared<Stages>();
  const int me = static_cast<int>(threadIdx.x);
  const auto fetch = [&](int tile) {
    if (tile < tiles) {
      ptx::async_copy<16>(&s.tile[tile % stages][4 * me], in + (tile * threads + me) * 4);
    }
    ptx::async_commit();  // empty groups at the end keep the count constant
  };
  for (int tile = 0; tile < stages - 1; ++tile) fetch(tile);
  float sum = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    ptx::async_wait<stages - 2>();
    __syncthreads();
    fetch(tile + stages - 1);
    for (int i = 0; i < 4; ++i) sum += s.tile[tile % stages][4 * (threads - 1 - me) + i];
  }
  out[me] = sum;
}

TEST_P(AsyncCopyTest, APipelineDeliversEveryTileInTime) {
  for (const int tiles : {1, 2, 3, 10}) {
    std::vector<float> in(static_cast<std::size_t>(tiles) * threads * 4);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i % 1013);
    Context c = context();
    Buffer<float> source(in), out(threads);
    launch(c, {.block = threads, .shared_bytes = sizeof(Stages)}, pipelined, source.data(), tiles,
           out.data());
    const std::vector<float> got = out.values();
    for (int me = 0; me < threads; ++me) {
      float want = 0;
      for (int tile = 0; tile < tiles; ++tile) {
        for (int i = 0; i < 4; ++i) {
          want += in[static_cast<std::size_t>((tile * threads + threads - 1 - me) * 4 + i)];
        }
      }
      ASSERT_EQ(got[static_cast<std::size_t>(me)], want) << tiles << " tiles, thread " << me;
    }
  }
}

struct Slot {
  alignas(16) unsigned char byte[16];
};

/// Copies `valid` bytes into a slot of ones.
template <int Bytes>
__global__ void partial(const unsigned char* in, int valid, unsigned char* out) {
  Slot& slot = shared<Slot>();
  for (int i = 0; i < 16; ++i) slot.byte[i] = 1;
  ptx::async_copy<Bytes>(slot.byte, in, valid);
  ptx::async_wait_all();
  for (int i = 0; i < 16; ++i) out[i] = slot.byte[i];
}

template <int Bytes>
void expect_zero_filled(Context& c) {
  std::vector<unsigned char> in(16);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<unsigned char>(100 + i);
  for (int valid = 0; valid <= Bytes; ++valid) {
    Buffer<unsigned char> source(in), out(16);
    launch(c, {.block = 1, .shared_bytes = sizeof(Slot)}, partial<Bytes>, source.data(), valid,
           out.data());
    const std::vector<unsigned char> got = out.values();
    for (int i = 0; i < 16; ++i) {
      const int want = i < valid ? 100 + i : i < Bytes ? 0 : 1;
      ASSERT_EQ(got[static_cast<std::size_t>(i)], want) << Bytes << " " << valid << " " << i;
    }
  }
}

TEST_P(AsyncCopyTest, WhatIsNotValidIsZero) {
  Context c = context();
  expect_zero_filled<4>(c);
  expect_zero_filled<8>(c);
  expect_zero_filled<16>(c);
}

INSTANTIATE_TEST_SUITE_P(Orders, AsyncCopyTest, testing::ValuesIn(thread_orders()), order_name);

}  // namespace
}  // namespace rung::async_copy_test
