// SPDX-License-Identifier: Apache-2.0
// Wide loads and stores, tails, and conversions of element types inside kernels.
#include <cmath>
#include <limits>

#include "rung/device/load.hpp"
#include "tests/simt/device_fixture.hpp"

namespace rung::load_test {
namespace {

class LoadTest : public DeviceTest {};

/// Copies `valid` elements through a pack and back, by wide accesses if aligned.
template <class T, int N>
__global__ void copy_pack(const T* in, T* out, T* whole, int valid) {
  if (is_wide_aligned<T, N>(in) && is_wide_aligned<T, N>(out)) {
    const Pack<T, N> pack = load_wide<N>(in, valid);
    store_wide<N>(out, pack, valid);
    store<N>(whole, pack);
  } else {
    const Pack<T, N> pack = load<N>(in, valid);
    store<N>(out, pack, valid);
    store<N>(whole, pack);
  }
}

template <class T, int N>
void check_packs(Context& c) {
  constexpr int room = N + 3;
  std::vector<T> in(room), poison(room);
  for (int i = 0; i < room; ++i) {
    in[static_cast<std::size_t>(i)] = convert<T>(static_cast<float>(i + 1));
    poison[static_cast<std::size_t>(i)] = convert<T>(99.0f);
  }
  for (const int offset : {0, 1}) {
    for (int valid = -1; valid <= N; ++valid) {
      Buffer<T> source(in), target(poison), whole(N);
      launch(c, {.block = 1}, copy_pack<T, N>, source.data() + offset, target.data() + offset,
             whole.data(), valid);
      const std::vector<T> got = target.values(), pack = whole.values();
      for (int i = 0; i < room; ++i) {
        const bool written = i >= offset && i < offset + valid;
        ASSERT_EQ(convert<float>(got[static_cast<std::size_t>(i)]),
                  written ? static_cast<float>(i + 1) : 99.0f)
            << N << " " << valid << " " << offset;
      }
      for (int i = 0; i < N; ++i) {
        ASSERT_EQ(convert<float>(pack[static_cast<std::size_t>(i)]),
                  i < valid ? static_cast<float>(i + offset + 1) : 0.0f);
      }
    }
  }
}

TEST_P(LoadTest, EveryTailOfEveryType) {
  Context c = context();
  check_packs<float, 4>(c);
  check_packs<float, 1>(c);
  check_packs<float, 3>(c);
  check_packs<float, 8>(c);
  check_packs<double, 2>(c);
  check_packs<f16, 8>(c);
  check_packs<f16, 2>(c);
  check_packs<bf16, 4>(c);
  check_packs<std::int8_t, 16>(c);
  check_packs<std::uint8_t, 3>(c);
  check_packs<std::int64_t, 2>(c);
}

template <class T>
__global__ void convert_both_ways(const float* in, T* narrow, float* wide, int n) {
  for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x)) {
    narrow[i] = convert<T>(in[i]);
    wide[i] = convert<float>(narrow[i]);
  }
}

template <class T>
void check_conversion(Context& c) {
  std::vector<float> in{0.0f,     -0.0f,        1.0f,     -1.5f,
                        65504.0f, 65519.0f,     65520.0f, 1e30f,
                        3e38f,    0x1p-24f,     0x1p-25f, 0x1.8p-25f,
                        0x1p-14f, 0x1.ffcp-15f, 1e-40f,   std::numeric_limits<float>::infinity()};
  // Ties and their neighbors around 1, for both formats.
  for (const float unit : {0x1p-11f, 0x1p-8f}) {
    for (int i = 0; i < 16; ++i) in.push_back(1.0f + static_cast<float>(i) * unit);
    for (int i = 0; i < 16; ++i) in.push_back(1.0f + (static_cast<float>(i) + 0x1p-8f) * unit);
  }
  Buffer<float> source(in), wide(in.size());
  Buffer<T> narrow(in.size());
  launch(c, {.block = 32}, convert_both_ways<T>, source.data(), narrow.data(), wide.data(),
         static_cast<int>(in.size()));
  for (std::size_t i = 0; i < in.size(); ++i) {
    const T want(in[i]);  // core's conversion, which has its own test
    EXPECT_EQ(narrow.values()[i].bits, want.bits) << in[i];
    EXPECT_EQ(wide.values()[i], static_cast<float>(want)) << in[i];
  }
  Buffer<float> nan(std::vector<float>{std::numeric_limits<float>::quiet_NaN()}), back(1);
  launch(c, {.block = 1}, convert_both_ways<T>, nan.data(), narrow.data(), back.data(), 1);
  EXPECT_TRUE(std::isnan(back.values()[0]));
}

TEST_P(LoadTest, ConversionsAgreeWithCore) {
  Context c = context();
  check_conversion<f16>(c);
  check_conversion<bf16>(c);
}

INSTANTIATE_TEST_SUITE_P(Orders, LoadTest, testing::ValuesIn(thread_orders()), order_name);

}  // namespace
}  // namespace rung::load_test
