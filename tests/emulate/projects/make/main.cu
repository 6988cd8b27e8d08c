// SPDX-License-Identifier: Apache-2.0
// Program of managed memory.
#include "scale.h"

int main() {
  float* p = nullptr;
  cudaMallocManaged(&p, 100 * sizeof(float));
  for (int i = 0; i < 100; ++i) p[i] = 1;
  scale(p, 100);
  cudaDeviceSynchronize();
  const bool good = p[99] == factor;
  cudaFree(p);
  report(good ? "good" : "bad");
  return good ? 0 : 1;
}
