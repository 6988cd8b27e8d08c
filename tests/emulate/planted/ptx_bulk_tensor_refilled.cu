// SPDX-License-Identifier: Apache-2.0
// The tile of a tensor store is filled again once the store has read it.
#include <cuda.h>

#include <cstdint>

#include "../programs/check.cuh"

constexpr int width = 32, height = 16, rows = 4;

__global__ void store(const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(128) float kept[rows][width];
  const int t = threadIdx.x;
  for (int part = 0; part < height / rows; ++part) {
    for (int i = t; i < rows * width; i += 64)
      kept[i / width][i % width] = 100 * part + i;  // expect: race
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (t == 0) {
      const auto from = static_cast<uint32_t>(__cvta_generic_to_shared(kept));
      asm volatile(  // expect: race
          "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"
          " [%0, {%1, %2}], [%3];" ::"l"(&map),
          "r"(0), "r"(rows * part), "r"(from)
          : "memory");
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#ifndef BUG
      asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
#endif
    }
    __syncthreads();
  }
#ifdef BUG
  if (t == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
#endif
}

int main() {
  Array<float> data(width * height);
  CUtensorMap map;
  const cuuint64_t shape[] = {width, height}, strides[] = {width * sizeof(float)};
  const cuuint32_t boxes[] = {width, rows}, steps[] = {1, 1};
  CHECK(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, data.device, shape,
                               strides, boxes, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                               CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
  store<<<1, 64>>>(map);
#ifndef BUG
  data.down();
  for (int i = 0; i < width * height; ++i) CHECK(data[i] == 100 * (i / 128) + i % 128);
#endif
  return ok();
}
