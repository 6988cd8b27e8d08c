// SPDX-License-Identifier: Apache-2.0
// A fence before the ticket that tells the last block.
#include "../programs/check.cuh"

__global__ void sum(const int* in, volatile int* parts, unsigned* ticket, int* out) {
  __shared__ bool last;
  int* plain = const_cast<int*>(parts);
  if (threadIdx.x == 0) {
    int part = 0;
    for (int i = 0; i < 64; ++i) part += in[64 * blockIdx.x + i];
    plain[blockIdx.x] = part;  // expect: race
#ifndef BUG
    __threadfence();
#endif
    last = atomicAdd(ticket, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    int total = 0;
    for (unsigned b = 0; b < gridDim.x; ++b) total += plain[b];  // expect: race
    *out = total;
  }
}

int main() {
  Array<int> in(256), parts(4), out(1);
  Array<unsigned> ticket(1);
  for (int i = 0; i < 256; ++i) in[i] = i;
  in.up();
  sum<<<4, 64>>>(in.device, parts.device, ticket.device, out.device);
  return ok();
}
