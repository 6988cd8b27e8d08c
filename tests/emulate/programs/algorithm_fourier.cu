// SPDX-License-Identifier: Apache-2.0
// A Fourier transform of 64 points by radix 2 in shared memory.
#include "check.cuh"

__global__ void transform(float2* data) {
  __shared__ float2 kept[64];
  const int t = threadIdx.x;
  for (int i = t; i < 64; i += 32) kept[__brev(i) >> 26] = data[i];
  __syncthreads();
  for (int half = 1; half < 64; half *= 2) {
    const int k = t % half, i = t / half * 2 * half + k;
    float s, c;
    sincospif(-static_cast<float>(k) / half, &s, &c);
    const float2 a = kept[i], b = kept[i + half];
    const float2 turned = make_float2(b.x * c - b.y * s, b.x * s + b.y * c);
    kept[i] = make_float2(a.x + turned.x, a.y + turned.y);
    kept[i + half] = make_float2(a.x - turned.x, a.y - turned.y);
    __syncthreads();
  }
  for (int i = t; i < 64; i += 32) data[i] = kept[i];
}

int main() {
  Array<float2> data(64);
  for (int i = 0; i < 64; ++i) data[i] = make_float2(std::cos(2 * M_PI * 5 * i / 64), 0);
  data.up();
  transform<<<1, 32>>>(data.device);
  data.down();
  for (int i = 0; i < 64; ++i) {
    CHECK(std::fabs(data[i].x - (i == 5 || i == 59 ? 32 : 0)) < 1e-3 &&
          std::fabs(data[i].y) < 1e-3);
  }
  return ok();
}
