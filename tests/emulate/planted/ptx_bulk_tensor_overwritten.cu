// SPDX-License-Identifier: Apache-2.0
// A tensor copy has read its box once its mbarrier has been waited for; elements beside the box may
// be written meanwhile.
#include <cuda.h>

#include <cstdint>

#include "../programs/check.cuh"

constexpr int width = 64, height = 16, box = 32, rows = 8;

__global__ void load(const __grid_constant__ CUtensorMap map, float* data, float* out) {
  __shared__ alignas(128) float kept[rows][box];
  __shared__ alignas(8) uint64_t full;
  const auto barrier = static_cast<uint32_t>(__cvta_generic_to_shared(&full));
  const int t = threadIdx.x;
  if (t == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" ::"r"(barrier));
    const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(kept));
    asm volatile(  // expect: race
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
        "l"(&map), "r"(16), "r"(4), "r"(barrier)
        : "memory");
  }
  __syncthreads();
  data[t] = -2;              // a row above the box
  data[5 * width + 48] = 3;  // an element to the right of it
#ifdef BUG
  if (t == 40) data[5 * width + 20] = -1;  // expect: race
#endif
  uint32_t done = 0;
  while (done == 0) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, "
        "p; }"
        : "=r"(done)
        : "r"(barrier)
        : "memory");
  }
  out[t] = kept[t / box][t % box];
#ifndef BUG
  if (t == 40) data[5 * width + 20] = -1;
#endif
}

int main() {
  Array<float> data(width * height), out(64);
  for (int i = 0; i < width * height; ++i) data[i] = static_cast<float>(i);
  data.up();
  CUtensorMap map;
  const cuuint64_t shape[] = {width, height}, strides[] = {width * sizeof(float)};
  const cuuint32_t boxes[] = {box, rows}, steps[] = {1, 1};
  CHECK(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, data.device, shape,
                               strides, boxes, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                               CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
  load<<<1, 64>>>(map, data.device, out.device);
#ifndef BUG
  data.down();
  out.down();
  for (int i = 0; i < 64; ++i) CHECK(out[i] == (4 + i / box) * width + 16 + i % box);
  CHECK(data[5 * width + 20] == -1 && data[0] == -2);
#endif
  return ok();
}
