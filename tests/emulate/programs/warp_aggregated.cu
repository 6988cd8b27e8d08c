// SPDX-License-Identifier: Apache-2.0
// Lanes that are here together count with one atomic operation.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include "check.cuh"

namespace cg = cooperative_groups;
__device__ int next(int* counter) {
  cg::coalesced_group here = cg::coalesced_threads();
  int first = 0;
  if (here.thread_rank() == 0) first = atomicAdd(counter, here.size());
  return here.shfl(first, 0) + here.thread_rank();
}
__global__ void filter(const int* in, int* out, int* counter, int* by_label) {
  const int v = in[blockIdx.x * blockDim.x + threadIdx.x];
  if (v > 50) out[next(counter)] = v;
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  auto same = cg::labeled_partition(tile, v % 3);
  const int sum = cg::reduce(same, v, cg::plus<int>());
  if (same.thread_rank() == 0) atomicAdd(&by_label[v % 3], sum);
}

int main() {
  Array<int> in(256), out(256), counter(1), by_label(3);
  int large = 0, sums[3] = {};
  for (int i = 0; i < 256; ++i) {
    in[i] = i * 13 % 101;
    large += in[i] > 50;
    sums[in[i] % 3] += in[i];
  }
  in.up();
  filter<<<4, 64>>>(in.device, out.device, counter.device, by_label.device);
  counter.down();
  by_label.down();
  CHECK(counter[0] == large);
  for (int i = 0; i < 3; ++i) CHECK(by_label[i] == sums[i]);
  return ok();
}
