// SPDX-License-Identifier: Apache-2.0
// Distributions of the random engines: means and variances.
#include <curand_kernel.h>

#include "check.cuh"

__global__ void draw(float* sums) {
  curandState state;
  curand_init(11, threadIdx.x, 0, &state);
  float normal = 0, squares = 0, logarithmic = 0, uniform = 0;
  double exact = 0;
  for (int i = 0; i < 100; ++i) {
    const float z = curand_normal(&state);
    normal += z;
    squares += z * z;
    const float2 pair = curand_normal2(&state);
    logarithmic += expf(pair.x * 0.1f);
    const float u = curand_uniform(&state);
    uniform += u > 0 && u <= 1 ? u : 1000;
    exact += curand_uniform_double(&state);
  }
  float* mine = sums + 5 * threadIdx.x;
  mine[0] = normal;
  mine[1] = squares;
  mine[2] = logarithmic;
  mine[3] = uniform;
  mine[4] = static_cast<float>(exact);
}

int main() {
  Array<float> sums(5 * 64);
  draw<<<1, 64>>>(sums.device);
  sums.down();
  double total[5] = {};
  for (int i = 0; i < 5 * 64; ++i) total[i % 5] += sums[i] / 6400;
  CHECK(std::fabs(total[0]) < 0.05 && std::fabs(total[1] - 1) < 0.06 &&
        std::fabs(total[2] - 1.005) < 0.01);
  CHECK(std::fabs(total[3] - 0.5) < 0.02 && std::fabs(total[4] - 0.5) < 0.02);
  return ok();
}
