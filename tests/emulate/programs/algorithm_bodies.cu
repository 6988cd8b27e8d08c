// SPDX-License-Identifier: Apache-2.0
// Gravity among bodies, tiles of positions in shared memory.
#include "check.cuh"

__global__ void forces(const float4* body, float3* force, int n) {
  __shared__ float4 tile[32];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float4 me = body[i];
  float3 sum = make_float3(0, 0, 0);
  for (int first = 0; first < n; first += 32) {
    tile[threadIdx.x] = body[first + threadIdx.x];
    __syncthreads();
#pragma unroll 4
    for (int k = 0; k < 32; ++k) {
      const float dx = tile[k].x - me.x, dy = tile[k].y - me.y, dz = tile[k].z - me.z;
      const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
      const float scale = tile[k].w * inverse * inverse * inverse;
      sum.x += dx * scale;
      sum.y += dy * scale;
      sum.z += dz * scale;
    }
    __syncthreads();
  }
  force[i] = sum;
}

int main() {
  constexpr int n = 96;
  Array<float4> body(n);
  Array<float3> force(n);
  for (int i = 0; i < n; ++i) {
    body[i] = make_float4(static_cast<float>(i % 5), static_cast<float>(i % 7),
                          static_cast<float>(i % 3), 1);
  }
  body.up();
  forces<<<n / 32, 32>>>(body.device, force.device, n);
  force.down();
  float x = 0;
  for (int i = 0; i < n; ++i) x += force[i].x;
  CHECK(std::fabs(x) < 0.5f);  // what bodies do to each other cancels
  return ok();
}
