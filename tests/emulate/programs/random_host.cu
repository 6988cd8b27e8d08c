// SPDX-License-Identifier: Apache-2.0
// cuRAND's host interface: moments, and that a seed tells the numbers.
#include <curand.h>

#include "check.cuh"

int main() {
  constexpr int n = 20000;
  curandGenerator_t generator;
  CHECK(curandCreateGenerator(&generator, CURAND_RNG_QUASI_SOBOL32) == CURAND_STATUS_SUCCESS);
  CHECK(curandSetPseudoRandomGeneratorSeed(generator, 1ull) == CURAND_STATUS_TYPE_ERROR);
  CHECK(curandDestroyGenerator(generator) == CURAND_STATUS_SUCCESS);
  CHECK(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT) == CURAND_STATUS_SUCCESS);
  Array<float> first(n), again(n);
  Array<double> normal(n);
  CHECK(curandSetPseudoRandomGeneratorSeed(generator, 1234ull) == CURAND_STATUS_SUCCESS);
  CHECK(curandGenerateUniform(generator, first.device, n) == CURAND_STATUS_SUCCESS);
  CHECK(curandGenerateNormalDouble(generator, normal.device, n, 3, 2) == CURAND_STATUS_SUCCESS);
  CHECK(curandSetPseudoRandomGeneratorSeed(generator, 1234ull) == CURAND_STATUS_SUCCESS);
  CHECK(curandGenerateUniform(generator, again.device, n) == CURAND_STATUS_SUCCESS);
  first.down();
  again.down();
  normal.down();
  double sum = 0, mean = 0, square = 0;
  for (int i = 0; i < n; ++i) {
    CHECK(first[i] > 0 && first[i] <= 1 && first[i] == again[i]);
    sum += first[i];
    mean += normal[i];
    square += (normal[i] - 3) * (normal[i] - 3);
  }
  // Five deviations of these means.
  CHECK(std::fabs(sum / n - 0.5) < 0.011 && std::fabs(mean / n - 3) < 0.071);
  CHECK(std::fabs(square / n - 4) < 0.21);
  CHECK(curandDestroyGenerator(generator) == CURAND_STATUS_SUCCESS);
  return ok();
}
