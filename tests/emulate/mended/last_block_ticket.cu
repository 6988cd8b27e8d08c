// SPDX-License-Identifier: Apache-2.0
// All threads of a block write, one takes the ticket: the others may not have written yet.
#include "check.cuh"

__global__ void sums(const int* in, int* parts, unsigned* ticket, int* out) {
  __shared__ bool last;
  const int t = threadIdx.x;
  parts[64 * blockIdx.x + t] = 2 * in[64 * blockIdx.x + t];  // expect: race
  __threadfence();
#ifndef BUG
  __syncthreads();
#endif
  if (t == 0) last = atomicAdd(ticket, 1u) == gridDim.x - 1;
  __syncthreads();
  if (last) {
    int sum = 0;
    for (unsigned b = 0; b < gridDim.x; ++b) sum += parts[64 * b + 63 - t];  // expect: race
    out[t] = sum;
  }
}

int main() {
  Array<int> in(256), parts(256), out(64);
  Array<unsigned> ticket(1);
  for (int i = 0; i < 256; ++i) in[i] = i % 64;
  in.up();
  sums<<<4, 64>>>(in.device, parts.device, ticket.device, out.device);
  out.down();
  for (int t = 0; t < 64; ++t) CHECK(out[t] == 8 * (63 - t));
  return ok();
}
// says: __syncthreads() before line
