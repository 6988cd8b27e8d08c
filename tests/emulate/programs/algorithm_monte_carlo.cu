// SPDX-License-Identifier: Apache-2.0
// A circle's area by random points.
#include <curand_kernel.h>

#include "check.cuh"

__global__ void throw_darts(unsigned* hits) {
  curandStatePhilox4_32_10_t state;
  curand_init(7, blockIdx.x * blockDim.x + threadIdx.x, 0, &state);
  unsigned mine = 0;
  for (int i = 0; i < 50; ++i) {
    const float4 u = curand_uniform4(&state);
    mine += (u.x * u.x + u.y * u.y <= 1) + (u.z * u.z + u.w * u.w <= 1);
  }
  mine = __reduce_add_sync(0xffffffffu, mine);
  if (threadIdx.x % 32 == 0) atomicAdd(hits, mine);
}

int main() {
  Array<unsigned> hits(1);
  throw_darts<<<8, 64>>>(hits.device);
  hits.down();
  CHECK(std::fabs(4.0 * hits[0] / (8 * 64 * 100) - M_PI) < 0.03);
  return ok();
}
