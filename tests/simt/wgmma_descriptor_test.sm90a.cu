// SPDX-License-Identifier: Apache-2.0
// Addresses that a matrix descriptor stands for, valid or not: odd strides, starts within a
// swizzle's pattern, patterns that begin at another line. The simulator and a GPU must use the same
// elements.
#include <cstdint>

#include "rung/device/ptx/bulk_copy.hpp"
#include "rung/device/ptx/wgmma.hpp"
#include "tests/simt/hopper_fixture.hpp"

namespace rung::wgmma_descriptor_test {
namespace {

class WgmmaDescriptorTest : public HopperTest {};

constexpr int elements = 24 * 1024;

struct Field {
  alignas(1024) bf16 identity[16 * 16];
  alignas(1024) bf16 at[elements];
};

struct Descriptor {
  Swizzle swizzle;
  int leading, stride, line, start;
};

/// Reads A, 64 x 16, by multiplying it by the identity. Elements hold seven bits of their index.
template <bool Turned>
__global__ void __launch_bounds__(128) read_a(Descriptor how, int shift, float* out) {
  constexpr ptx::WgmmaOptions options{.a = Turned ? ptx::Major::mn : ptx::Major::k};
  Field& field = shared<Field>();
  const int me = static_cast<int>(threadIdx.x);
  for (int i = me; i < 256; i += 128) {
    const int n = i / 16, k = i % 16;
    field.identity[(n / 8 * 2 + k / 8) * 64 + n % 8 * 8 + k % 8] = bf16(n == k ? 1.0f : 0.0f);
  }
  for (int i = me; i < elements; i += 128) {
    field.at[i] = bf16(static_cast<float>(i >> shift & 127));
  }
  ptx::fence_async_proxy();
  __syncthreads();
  float sums[8] = {};
  const auto a = ptx::matrix_descriptor(field.at + how.start / 2, how.swizzle, how.leading,
                                        how.stride, how.line);
  const auto b = ptx::matrix_descriptor(field.identity, Swizzle::none, 128, 256);
  ptx::wgmma_fence(sums);
  ptx::wgmma<bf16, bf16, options>(sums, a, b, false);
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>(sums);
  const int lane = me % 32, warp = me / 32;
  for (int i = 0; i < 8; ++i) {
    const int row = 16 * warp + lane / 4 + 8 * (i / 2 % 2);
    out[row * 16 + 8 * (i / 4) + 2 * (lane % 4) + i % 2] = sums[i];
  }
}

/// Returns an offset in bytes from the field's begin, which is aligned to every pattern.
int place_of(const Descriptor& how, bool turned, int row, int k) {
  const bool none = how.swizzle == Swizzle::none;
  const int width = none ? 16 : swizzle_period(how.swizzle) / 8;
  int at = how.start;
  if (!turned) {
    at += row / 8 * how.stride + row % 8 * width + 2 * k % width;
    if (none) at += k / 8 * how.leading;
  } else if (none) {
    at += row / 8 * how.stride + k / 8 * how.leading + k % 8 * 16 + row % 8 * 2;
  } else {
    const int panel = width / 2;
    at += row / panel * how.leading + row % panel * 2 + k / 8 * how.stride + k % 8 * width;
  }
  if (none) return at;
  const int line = at / 128 - how.line;
  const int lines = width / 16;  // lines of the pattern: as many as chunks per row
  return at ^ ((line & 7 & (lines - 1)) * 16);
}

template <bool Turned>
void expect_places(Context& c, const Descriptor& how) {
  Buffer<float> out(1024);
  std::vector<int> got(1024, 0);
  for (int shift = 0; shift < 15; shift += 7) {
    launch(c, {.block = 128, .shared_bytes = sizeof(Field)}, read_a<Turned>, how, shift,
           out.data());
    const std::vector<float> part = out.values();
    for (std::size_t i = 0; i < 1024; ++i) got[i] += static_cast<int>(part[i]) << shift;
  }
  for (int i = 0; i < 1024; ++i) {
    ASSERT_EQ(2 * got[static_cast<std::size_t>(i)], place_of(how, Turned, i / 16, i % 16))
        << "row " << i / 16 << ", k " << i % 16 << (Turned ? ", MN-major" : ", K-major")
        << ", swizzle " << static_cast<int>(how.swizzle) << ", leading " << how.leading
        << ", stride " << how.stride << ", line " << how.line << ", start " << how.start;
  }
}

TEST_P(WgmmaDescriptorTest, MeansThePlacesThatTheManualSays) {
  Context c = context();
  for (const Swizzle swizzle :
       {Swizzle::none, Swizzle::bytes_32, Swizzle::bytes_64, Swizzle::bytes_128}) {
    const int dense = swizzle == Swizzle::none ? 128 : swizzle_period(swizzle);
    for (const int start : {0, 16, 32, 96, 128, 384, 1152}) {
      expect_places<false>(c, {swizzle, 2048, dense, 0, start});
      expect_places<true>(c, {swizzle, 2048, dense, 0, start});
    }
    for (const int odd : {16, 48, 208, 3072}) {
      expect_places<false>(c, {swizzle, odd, dense + 128, 0, 0});
      expect_places<false>(c, {swizzle, 4096, odd, 0, 0});
      expect_places<true>(c, {swizzle, odd, dense + 128, 0, 0});
      expect_places<true>(c, {swizzle, 4096, odd, 0, 0});
    }
    for (const int line : {1, 3, 6, 7}) {
      if (swizzle == Swizzle::none) continue;
      expect_places<false>(c, {swizzle, 16, dense, line, 0});
      expect_places<false>(c, {swizzle, 16, dense, line, 128 * line + 32});
      expect_places<true>(c, {swizzle, 4096, dense, line, 128 * line});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, WgmmaDescriptorTest, testing::ValuesIn(thread_orders()),
                         order_name);

}  // namespace
}  // namespace rung::wgmma_descriptor_test
