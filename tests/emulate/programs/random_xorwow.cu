// SPDX-License-Identifier: Apache-2.0
// XORWOW: streams differ, skipping is drawing, numbers are spread evenly.
#include <curand_kernel.h>

#include "check.cuh"

__global__ void setup(curandState* states) {
  curand_init(42, threadIdx.x, 0, &states[threadIdx.x]);
}
__global__ void draw(curandState* states, double* sums, unsigned* first) {
  const int t = threadIdx.x;
  curandState mine = states[t];
  curandState skipped = mine;
  first[t] = curand(&mine);
  for (int i = 0; i < 99; ++i) curand(&mine);
  skipahead(100, &skipped);
  if (curand(&mine) != curand(&skipped)) first[t] = 0;
  double sum = 0, squares = 0;
  for (int i = 0; i < 1000; ++i) sum += curand_uniform(&mine);
  sums[t] = sum / 1000;
  sum = 0;
  for (int i = 0; i < 1000; ++i) {
    const double x = curand_normal(&mine);
    sum += x;
    squares += x * x;
  }
  sums[64 + t] = sum / 1000;
  sums[128 + t] = squares / 1000;
  states[t] = mine;
}

int main() {
  Array<curandState> states(64);
  Array<double> sums(192);
  Array<unsigned> first(64);
  setup<<<1, 64>>>(states.device);
  draw<<<1, 64>>>(states.device, sums.device, first.device);
  sums.down();
  first.down();
  double mean = 0, normal = 0, variance = 0;
  for (int t = 0; t < 64; ++t) {
    CHECK(first[t] != 0);
    for (int u = 0; u < t; ++u) CHECK(first[t] != first[u]);
    mean += sums[t] / 64, normal += sums[64 + t] / 64, variance += sums[128 + t] / 64;
  }
  CHECK(std::fabs(mean - 0.5) < 0.01 && std::fabs(normal) < 0.02 && std::fabs(variance - 1) < 0.03);
  return ok();
}
