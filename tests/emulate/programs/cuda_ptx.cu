// SPDX-License-Identifier: Apache-2.0
// cuda::ptx: bulk copies that a cuda::barrier waits for, as the programming guide has them.
#include <cuda/barrier>
#include <cuda/ptx>

#include "check.cuh"

#pragma nv_diag_suppress static_var_with_dynamic_init
using Barrier = cuda::barrier<cuda::thread_scope_block>;

__global__ void add_one(int* data, int offset) {
  __shared__ alignas(128) int kept[128];
  __shared__ Barrier full;
  if (threadIdx.x == 0) {
    init(&full, blockDim.x);
    cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
  }
  __syncthreads();
  Barrier::arrival_token token;
  if (threadIdx.x == 0) {
    cuda::ptx::cp_async_bulk(cuda::ptx::space_cluster, cuda::ptx::space_global, kept, data + offset,
                             sizeof(kept), cuda::device::barrier_native_handle(full));
    token = cuda::device::barrier_arrive_tx(full, 1, sizeof(kept));
  } else {
    token = full.arrive();
  }
  full.wait(std::move(token));
  kept[threadIdx.x] += 1;
  cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    cuda::ptx::cp_async_bulk(cuda::ptx::space_global, cuda::ptx::space_shared, data + offset, kept,
                             sizeof(kept));
    cuda::ptx::cp_async_bulk_commit_group();
    cuda::ptx::cp_async_bulk_wait_group_read(cuda::ptx::n32_t<0>());
  }
}

/// Threads leave a barrier for good one after another.
__global__ void leave(int* out) {
  __shared__ Barrier barrier;
  __shared__ int sum;
  if (threadIdx.x == 0) {
    init(&barrier, blockDim.x);
    sum = 0;
  }
  __syncthreads();
  for (unsigned round = 0; round < 4; ++round) {
    if (threadIdx.x / 16 == round) {
      barrier.arrive_and_drop();
      return;
    }
    atomicAdd(&sum, 1);
    barrier.arrive_and_wait();
    if (threadIdx.x == 63) out[round] = atomicAdd(&sum, 0);
    barrier.arrive_and_wait();
  }
}

int main() {
  Array<int> data(256), counts(4);
  for (int i = 0; i < 256; ++i) data[i] = i;
  data.up();
  add_one<<<1, 128>>>(data.device, 128);
  CUDA(cudaGetLastError());
  data.down();
  for (int i = 0; i < 256; ++i) CHECK(data[i] == i + (i >= 128 ? 1 : 0));
  leave<<<1, 64>>>(counts.device);
  CUDA(cudaGetLastError());
  counts.down();
  CHECK(counts[0] == 48 && counts[1] == 80 && counts[2] == 96 && counts[3] == 0);
  return ok();
}
