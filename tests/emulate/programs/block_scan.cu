// SPDX-License-Identifier: Apache-2.0
// An inclusive sum over a block, Kogge-Stone in two buffers.
#include "check.cuh"

__global__ void scan(const int* in, int* out, int n) {
  extern __shared__ int buffer[];
  int from = 0, to = 1;
  const int t = threadIdx.x;
  buffer[t] = t < n ? in[t] : 0;
  __syncthreads();
  for (int offset = 1; offset < n; offset *= 2) {
    buffer[to * n + t] = buffer[from * n + t] + (t >= offset ? buffer[from * n + t - offset] : 0);
    __syncthreads();
    const int swap = from;
    from = to;
    to = swap;
  }
  out[t] = buffer[from * n + t];
}

int main() {
  Array<int> in(256), out(256);
  for (int i = 0; i < 256; ++i) in[i] = i % 7;
  in.up();
  scan<<<1, 256, 2 * 256 * sizeof(int)>>>(in.device, out.device, 256);
  out.down();
  int sum = 0;
  for (int i = 0; i < 256; ++i) CHECK(out[i] == (sum += i % 7));
  return ok();
}
