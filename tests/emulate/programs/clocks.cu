// SPDX-License-Identifier: Apache-2.0
// Clocks go forward, in kernels and between them.
#include "check.cuh"

__global__ void time_it(long long* out, float* sink) {
  const long long start = clock64();
  float x = 1;
  for (int i = 0; i < 100; ++i) x = x * 1.0001f + 0.5f;
  *sink = x;
  __nanosleep(100);
  const long long stop = clock64();
  out[0] = stop - start;
  unsigned long long t0, t1;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t0));
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t1));
  out[1] = t1 >= t0 && t0 > 0;
  const clock_t c = clock();
  out[2] = clock() - c > 0;  // in cycles: C's own would stand still
}

/// Every thread waits for about a millisecond: all together on a chip.
__global__ void wait_long(long long cycles, int* done) {
  const long long start = clock64();
  while (clock64() - start < cycles) {
  }
  atomicAdd(done, 1);
}

int main() {
  Array<long long> out(3);
  Array<float> sink(1);
  time_it<<<1, 1>>>(out.device, sink.device);
  out.down();
  CHECK(out[0] > 0 && out[1] == 1 && out[2] == 1);
  Array<int> done(1);
  wait_long<<<128, 256>>>(2000000, done.device);
  done.down();
  CHECK(done[0] == 128 * 256);
  return ok();
}
