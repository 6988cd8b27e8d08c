// SPDX-License-Identifier: Apache-2.0
// Bit and arithmetic intrinsics give the same results on GPUs and in the simulator.
#include <cmath>

#include "rung/device/ptx/thread.hpp"
#include "tests/simt/device_fixture.hpp"

namespace rung::intrinsics_test {
namespace {

class IntrinsicsTest : public DeviceTest {};

__global__ void bits(long long* out) {
  int i = 0;
  out[i++] = __popc(0xf00f0001u);
  out[i++] = __popcll(0xf00f0001f00f0001ull);
  out[i++] = __clz(1);
  out[i++] = __clz(0);
  out[i++] = __clzll(1ll << 40);
  out[i++] = __ffs(0);
  out[i++] = __ffs(0x500);
  out[i++] = __ffsll(1ll << 40);
  out[i++] = __brev(0x00000003u);
  out[i++] = static_cast<long long>(__brevll(1ull << 62));
  out[i++] = __umulhi(0xffffffffu, 0xffffffffu);
  out[i++] = __mulhi(-2, 3);
  out[i++] = __funnelshift_l(0x80000000u, 1u, 1);
  out[i++] = __funnelshift_r(0x80000000u, 1u, 31);
  out[i++] = __byte_perm(0x33221100u, 0x77665544u, 0x7250);
  out[i++] = __float_as_int(-1.0f);
  out[i++] = __float_as_uint(1.0f);
  out[i++] = __double_as_longlong(2.0);
  out[i++] = __float2int_rn(2.5f);
  out[i++] = __float2int_rz(-2.7f);
  out[i++] = __float2int_rd(-2.1f);
  out[i++] = __float2int_ru(2.1f);
  out[i++] = min(3, -4);
  out[i++] = max(3u, 4u);
  out[i++] = min(3ll, 1ll << 40);
}

TEST_P(IntrinsicsTest, Bits) {
  const std::vector<long long> want{9,
                                    18,
                                    31,
                                    32,
                                    23,
                                    0,
                                    9,
                                    41,
                                    0xc0000000ll,
                                    2,
                                    0xfffffffell,
                                    -1,
                                    3,
                                    3,
                                    0x77225500ll,
                                    static_cast<int>(0xbf800000u),
                                    0x3f800000ll,
                                    0x4000000000000000ll,
                                    2,
                                    -2,
                                    -3,
                                    3,
                                    -4,
                                    4,
                                    3};
  Context c = context();
  Buffer<long long> out(want.size());
  launch(c, {.block = 1}, bits, out.data());
  EXPECT_EQ(out.values(), want);
}

__global__ void arithmetic(float x, float* out) {
  int i = 0;
  out[i++] = __fmaf_rn(x, x, -1.0f);             // exact before its only rounding
  out[i++] = __fadd_rn(__fmul_rn(x, x), -1.0f);  // rounded twice, never contracted
  out[i++] = fminf(x, nanf(""));
  out[i++] = max(x, nanf(""));
  out[i++] = __saturatef(-x);
  out[i++] = __saturatef(0.25f * x);
  out[i++] = __frcp_rn(4.0f * x / x);
  out[i++] = rsqrtf(16.0f * x / x);
  out[i++] = ptx::fast_reciprocal(3.0f);
  out[i++] = ptx::fast_exp2(1.5f);
  out[i++] = ptx::fast_tanh(0.5f);
  out[i++] = __expf(1.0f);
  out[i++] = __ldg(&out[0]);
}

TEST_P(IntrinsicsTest, Arithmetic) {
  constexpr float x = 1.0f + 0x1p-13f;  // its square needs 27 bits
  Context c = context();
  Buffer<float> out(13);
  launch(c, {.block = 1}, arithmetic, x, out.data());
  const std::vector<float> got = out.values();
  EXPECT_EQ(got[0], 0x1p-12f + 0x1p-26f);
  EXPECT_EQ(got[1], 0x1p-12f);
  EXPECT_EQ(got[2], x);
  EXPECT_EQ(got[3], x);
  EXPECT_EQ(got[4], 0.0f);
  EXPECT_EQ(got[5], 0.25f * x);
  EXPECT_EQ(got[6], 0.25f);
  EXPECT_NEAR(got[7], 0.25, 0x1p-24);
  EXPECT_NEAR(got[8], 1.0 / 3, 0x1p-24);
  EXPECT_NEAR(got[9], std::exp2(1.5), 0x1p-20);
  EXPECT_NEAR(got[10], std::tanh(0.5), 0x1p-10);
  EXPECT_NEAR(got[11], std::exp(1.0), 0x1p-19);
  EXPECT_EQ(got[12], got[0]);
}

INSTANTIATE_TEST_SUITE_P(Orders, IntrinsicsTest, testing::ValuesIn(thread_orders()), order_name);

}  // namespace
}  // namespace rung::intrinsics_test
