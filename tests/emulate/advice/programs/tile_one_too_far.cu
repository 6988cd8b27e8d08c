// SPDX-License-Identifier: Apache-2.0
// A loop over a tile's row that ends one element behind it.
#include "check.cuh"

constexpr int edge = 8;

__global__ void rows(const float* in, float* out) {
  __shared__ float tile[edge][edge];
  tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * edge + threadIdx.x];
  __syncthreads();
  float sum = 0;
#ifdef BUG
  for (int k = 0; k <= edge; ++k) sum += tile[threadIdx.y][k];
#else
  for (int k = 0; k < edge; ++k) sum += tile[threadIdx.y][k];
#endif
  if (threadIdx.x == 0) out[threadIdx.y] = sum;
}

int main() {
  Array<float> in(edge * edge), out(edge);
  for (int i = 0; i < in.size; ++i) in[i] = i % 10;
  in.up();
  rows<<<1, dim3(edge, edge)>>>(in.device, out.device);
  out.down();
  for (int y = 0; y < edge; ++y) {
    float sum = 0;
    for (int x = 0; x < edge; ++x) sum += in[y * edge + x];
    CHECK(out[y] == sum);
  }
  return ok();
}
