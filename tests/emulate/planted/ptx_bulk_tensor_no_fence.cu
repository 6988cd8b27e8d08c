// SPDX-License-Identifier: Apache-2.0
// A tensor copy reads what its block has written in the kernel behind fence.proxy.async.
#include <cuda.h>

#include <cstdint>

#include "../programs/check.cuh"

constexpr int width = 32, rows = 4;

__global__ void load(const __grid_constant__ CUtensorMap map, float* data, float* out) {
  __shared__ alignas(128) float kept[rows][width];
  __shared__ alignas(8) uint64_t full;
  const auto barrier = static_cast<uint32_t>(__cvta_generic_to_shared(&full));
  const int t = threadIdx.x;
  data[t] = 5 * t;  // expect: race
  if (t == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
#ifndef BUG
  asm volatile("fence.proxy.async;" ::: "memory");
#endif
  __syncthreads();
  if (t == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 512;" ::"r"(barrier));
    const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(kept));
    asm volatile(  // expect: race
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
        "l"(&map), "r"(0), "r"(0), "r"(barrier)
        : "memory");
  }
  uint32_t done = 0;
  while (done == 0) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, "
        "p; }"
        : "=r"(done)
        : "r"(barrier)
        : "memory");
  }
  out[t] = kept[t / width][t % width];
}

int main() {
  Array<float> data(width * rows), out(width * rows);
  CUtensorMap map;
  const cuuint64_t shape[] = {width, rows}, strides[] = {width * sizeof(float)};
  const cuuint32_t boxes[] = {width, rows}, steps[] = {1, 1};
  CHECK(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, data.device, shape,
                               strides, boxes, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                               CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
  load<<<1, width * rows>>>(map, data.device, out.device);
#ifndef BUG
  out.down();
  for (int i = 0; i < width * rows; ++i) CHECK(out[i] == 5 * i);
#endif
  return ok();
}
