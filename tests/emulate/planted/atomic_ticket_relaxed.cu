// SPDX-License-Identifier: Apache-2.0
// The ticket that tells the last block hands on what the others have done.
#include <cuda/atomic>

#include "../programs/check.cuh"

#ifdef BUG
constexpr auto order = cuda::memory_order_relaxed;
#else
constexpr auto order = cuda::memory_order_acq_rel;
#endif

__global__ void sum(int* parts, unsigned* ticket, int* out) {
  cuda::atomic_ref<unsigned, cuda::thread_scope_device> taken(*ticket);
  parts[blockIdx.x] = blockIdx.x + 1;  // expect: race
  if (taken.fetch_add(1, order) != gridDim.x - 1) return;
  int total = 0;
  for (unsigned b = 0; b < gridDim.x; ++b) total += parts[b];  // expect: race
  *out = total;
}

int main() {
  Array<int> parts(4), out(1);
  Array<unsigned> ticket(1);
  sum<<<4, 1>>>(parts.device, ticket.device, out.device);
  out.down();
#ifndef BUG
  CHECK(out[0] == 10);
#endif
  return ok();
}
