// SPDX-License-Identifier: Apache-2.0
// Bulk copies into a ring of three: the parity of a stage flips each time around, not each round.
#include <cstdint>
#include <cuda/barrier>
#include <cuda/ptx>

#include "../programs/check.cuh"
namespace ptx = cuda::ptx;

constexpr int stages = 3, tiles = 9, width = 64;

__global__ void sums(const int* in, int* out) {
  __shared__ alignas(128) int kept[stages][width];
  __shared__ alignas(8) uint64_t full[stages], empty[stages];
  const int t = threadIdx.x;
  if (t == 0) {
    for (int s = 0; s < stages; ++s) {
      ptx::mbarrier_init(&full[s], 1);
      ptx::mbarrier_init(&empty[s], width);
    }
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();
  if (t >= width) {
    if (t == width) {
      for (int i = 0; i < tiles; ++i) {
        const int s = i % stages, before = (i / stages - 1) & 1;
        if (i >= stages) {
          while (!ptx::mbarrier_try_wait_parity(&empty[s], before)) {  // expect: deadlock
          }
        }
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta,  // expect: race
                                       ptx::space_shared, &full[s], sizeof(kept[0]));
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, kept[s],  // expect: race

                           in + width * i, sizeof(kept[0]), &full[s]);
      }
    }
    return;
  }
  int sum = 0;
  for (int i = 0; i < tiles; ++i) {
    const int s = i % stages;
#ifdef BUG
    while (!ptx::mbarrier_try_wait_parity(&full[s], i & 1)) {
    }
#else
    while (!ptx::mbarrier_try_wait_parity(&full[s], (i / stages) & 1)) {
    }
#endif
    sum += kept[s][width - 1 - t];  // expect: race
    ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &empty[s]);
  }
  out[t] = sum;
}

int main() {
  Array<int> in(width * tiles), out(width);
  for (int i = 0; i < width * tiles; ++i) in[i] = i;
  in.up();
  sums<<<1, width + 32>>>(in.device, out.device);
#ifndef BUG
  out.down();
  for (int t = 0; t < width; ++t) CHECK(out[t] == 36 * width + tiles * (width - 1 - t));
#endif
  return ok();
}
