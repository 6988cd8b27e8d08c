// SPDX-License-Identifier: Apache-2.0
// A separable filter: weights in constant memory, the halo in shared memory.
#include "check.cuh"

__constant__ float weights[5];

__global__ void blur(const float* in, float* out, int width, int stride) {
  __shared__ float kept[68];
  const int t = threadIdx.x, i = blockIdx.x * 64 + t;
  const auto at = [&](int k) { return in[min(max(k, 0), width - 1) * stride]; };
  kept[t + 2] = at(i);
  if (t < 2) {
    kept[t] = at(i - 2);
    kept[t + 66] = at(i + 64);
  }
  __syncthreads();
  if (i >= width) return;
  float sum = 0;
  for (int k = 0; k < 5; ++k) sum += weights[k] * kept[t + k];
  out[i * stride] = sum;
}

int main() {
  const float w[5] = {1, 4, 6, 4, 1};
  CUDA(cudaMemcpyToSymbol(weights, w, sizeof w));
  constexpr int n = 150;
  Array<float> in(n), out(n);
  for (int i = 0; i < n; ++i) in[i] = static_cast<float>(i % 13);
  in.up();
  blur<<<3, 64>>>(in.device, out.device, n, 1);
  out.down();
  for (int i = 2; i < n - 2; ++i) {
    float sum = 0;
    for (int k = 0; k < 5; ++k) sum += w[k] * in[i + k - 2];
    CHECK(out[i] == sum);
  }
  return ok();
}
