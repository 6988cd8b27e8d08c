// SPDX-License-Identifier: Apache-2.0
// A histogram that threads count in without atomics.
#include "check.cuh"

__global__ void histogram(const unsigned char* text, int* bins, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    int b = text[i];
#ifdef BUG
    ++bins[b];
#else
    atomicAdd(&bins[b], 1);
#endif
  }
}

int main() {
  const int n = 1000;
  Array<unsigned char> text(n);
  Array<int> bins(256);
  for (int i = 0; i < n; ++i) text[i] = i * 7 % 26 + 'a';
  text.up();
  histogram<<<8, 128>>>(text.device, bins.device, n);
  bins.down();
  int expected[256] = {};
  for (int i = 0; i < n; ++i) ++expected[text[i]];
  for (int b = 0; b < 256; ++b) CHECK(bins[b] == expected[b]);
  return ok();
}
