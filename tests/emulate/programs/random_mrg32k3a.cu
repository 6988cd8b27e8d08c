// SPDX-License-Identifier: Apache-2.0
// MRG32k3a: L'Ecuyer's first numbers, cuRAND's numbers for several seeds, streams differ, skipping
// equals drawing, numbers are spread evenly.
#include <curand_kernel.h>

#include "check.cuh"

__global__ void setup(curandStateMRG32k3a* states) {
  curand_init(42, threadIdx.x, 0, &states[threadIdx.x]);
}
__global__ void draw(curandStateMRG32k3a_t* states, double* sums, unsigned* first) {
  const int t = threadIdx.x;
  curandStateMRG32k3a_t mine = states[t], skipped = mine;
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
__global__ void published(double* numbers, unsigned* words) {
  curandStateMRG32k3a_t state;
  curand_init(0, 0, 0, &state);
  for (int i = 0; i < 2; ++i) numbers[i] = curand_uniform_double(&state);
  curand_init(0, 0, 1, &state);
  numbers[2] = curand_uniform_double(&state);
  const unsigned long long seeds[] = {42, 0x123456789abcdefull};
  for (int i = 0; i < 2; ++i) {
    curand_init(seeds[i], 0, 0, &state);
    numbers[3 + i] = curand_uniform_double(&state);
    words[2 * i] = curand(&state);
    curand_init(seeds[i], 3, 7, &state);
    numbers[5 + 2 * i] = curand_normal(&state);
    numbers[6 + 2 * i] = curand_normal(&state);
    words[2 * i + 1] = curand(&state);
  }
}

int main() {
  Array<curandStateMRG32k3a> states(64);
  Array<double> sums(192), numbers(9);
  Array<unsigned> first(64), words(4);
  published<<<1, 1>>>(numbers.device, words.device);
  numbers.down();
  words.down();
  // L'Ecuyer's RngStreams print these for a state of six times 12345; cuRAND divides by the modulus
  // instead of by the modulus plus 1.
  CHECK(std::fabs(numbers[0] - 0.127011122046577) < 1e-10);
  CHECK(std::fabs(numbers[1] - 0.318527565396794) < 1e-10);
  CHECK(numbers[1] == numbers[2]);
  // cuRAND of CUDA 13.0 returns these.
  CHECK(numbers[3] == 0.23143686665461985 && numbers[4] == 0.53584106312850077);
  CHECK(words[0] == 4154291561u && words[1] == 3428089720u);
  CHECK(words[2] == 2186294773u && words[3] == 1003775084u);
  const double normals[] = {-0.278970122, 0.207763746, -1.07292998, -0.0263200756};
  for (int i = 0; i < 4; ++i) CHECK(std::fabs(numbers[5 + i] - normals[i]) < 1e-6);
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
