// SPDX-License-Identifier: Apache-2.0
// A tensor store has written global memory behind wait_group; wait_group.read only frees its tile.
#include <cuda.h>

#include <cstdint>

#include "../programs/check.cuh"

#ifdef BUG
#define WAIT "cp.async.bulk.wait_group.read 0;"
#else
#define WAIT "cp.async.bulk.wait_group 0;"
#endif

constexpr int width = 64, height = 16, box = 32, rows = 8;

__global__ void store(const __grid_constant__ CUtensorMap map, float* data, float* out) {
  __shared__ alignas(128) float kept[rows][box];
  const int t = threadIdx.x;
  for (int i = t; i < rows * box; i += 64) kept[i / box][i % box] = 1000 + i;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (t == 0) {
    const auto from = static_cast<uint32_t>(__cvta_generic_to_shared(kept));
    asm volatile(  // expect: race
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"
        " [%0, {%1, %2}], [%3];" ::"l"(&map),
        "r"(16), "r"(4), "r"(from)
        : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile(WAIT ::: "memory");
  }
  __syncthreads();
  out[t] = data[4 * width + 16 + t % box] + data[t];  // expect: race
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
  store<<<1, 64>>>(map, data.device, out.device);
#ifndef BUG
  out.down();
  for (int i = 0; i < 64; ++i) CHECK(out[i] == 1000 + i % box + i);
#endif
  return ok();
}
