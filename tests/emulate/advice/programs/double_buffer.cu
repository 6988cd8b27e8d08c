// SPDX-License-Identifier: Apache-2.0
// Two buffers that take turns, and the barrier between filling and reading.
#include "check.cuh"

__global__ void running(const int* in, int* out, int chunks) {
  __shared__ int buffer[2][64];
  const int t = threadIdx.x;
  int sum = 0;
  buffer[0][t] = in[t];
  for (int c = 0; c < chunks; ++c) {
#ifndef BUG
    __syncthreads();
#endif
    const int now = c % 2;
    if (c + 1 < chunks) buffer[1 - now][t] = in[(c + 1) * 64 + t];
    sum += buffer[now][63 - t] - buffer[now][(t + 7) % 64];
  }
  out[t] = sum;
}

int main() {
  const int chunks = 6;
  Array<int> in(64 * chunks), out(64);
  for (int i = 0; i < in.size; ++i) in[i] = i * i % 31;
  in.up();
  running<<<1, 64>>>(in.device, out.device, chunks);
  out.down();
  for (int t = 0; t < 64; ++t) {
    int sum = 0;
    for (int c = 0; c < chunks; ++c) sum += in[c * 64 + 63 - t] - in[c * 64 + (t + 7) % 64];
    CHECK(out[t] == sum);
  }
  return ok();
}
