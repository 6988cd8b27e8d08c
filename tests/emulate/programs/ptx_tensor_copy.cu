// SPDX-License-Identifier: Apache-2.0
// Tensor copies by asm statements: maps that the driver encodes, boxes in and out, edges, swizzle.
#include <cuda.h>
#include <cudaTypedefs.h>

#include <cstdint>

#include "check.cuh"

constexpr int rows = 40, columns = 72, high = 16, wide = 32;

__device__ uint32_t local(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
__device__ void await(const uint64_t* barrier, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred P1;\nLAB_WAIT_%=:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
      "@P1 bra.uni DONE_%=;\nbra.uni LAB_WAIT_%=;\nDONE_%=:\n}" ::"r"(local(barrier)),
      "r"(parity)
      : "memory");
}

/// Each block: a box of `in`, doubled, to the same place in `out`, and back to see that it arrived.
/// Both are swizzled by 128 bytes.
__global__ void twice(const __grid_constant__ CUtensorMap in,
                      const __grid_constant__ CUtensorMap out, int* sum) {
  __shared__ alignas(1024) float box[high][wide];
  __shared__ alignas(8) uint64_t full;
  const int t = threadIdx.x, x = wide * blockIdx.x, y = high * blockIdx.y;
  if (t == 0) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&in) : "memory");
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(local(&full)));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(local(&full)),
                 "r"(high * wide * 4)
                 : "memory");
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4}], [%2];" ::"r"(local(box)),
        "l"(&in), "r"(local(&full)), "r"(x), "r"(y)
        : "memory");
  }
  __syncthreads();
  await(&full, 0);
  for (int i = t; i < high * wide; i += blockDim.x) {
    // The chunk of 16 bytes by the number of its row.
    const int row = i / wide, chunk = i % wide / 4;
    float& one = box[row][4 * (chunk ^ (row % 8)) + i % 4];
    if (y + row >= rows || x + i % wide >= columns) {
      if (one != 0) atomicAdd(sum, 1);
    }
    one *= 2;
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (t == 0) {
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&out),
        "r"(local(box)), "r"(x), "r"(y)
        : "memory");
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
    // The store is complete: the same thread may load the box again without a fence.
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(local(&full)),
                 "r"(high * wide * 4)
                 : "memory");
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4}], [%2];" ::"r"(local(box)),
        "l"(&out), "r"(local(&full)), "r"(x), "r"(y)
        : "memory");
  }
  await(&full, 1);
  for (int i = t; i < high * wide; i += blockDim.x) {
    const int row = i / wide, chunk = i % wide / 4;
    const float one = box[row][4 * (chunk ^ (row % 8)) + i % 4];
    const bool inside = y + row < rows && x + i % wide < columns;
    if (inside && one != 2 * ((y + row) * columns + x + i % wide + 1)) atomicAdd(sum, 1);
  }
}

/// Sums boxes of one axis, without swizzle.
__global__ void add(const __grid_constant__ CUtensorMap to) {
  __shared__ alignas(128) float ones[16];
  if (threadIdx.x < 16) ones[threadIdx.x] = static_cast<float>(threadIdx.x + 1);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile(
        "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group [%0, {%2}], [%1];" ::
            "l"(&to),
        "r"(local(ones)), "r"(8)
        : "memory");
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;" ::: "memory");
  }
}

CUtensorMap encode(float* data, int rank, const cuuint64_t* shape, const cuuint32_t* box,
                   CUtensorMapSwizzle swizzle) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  CUDA(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                        cudaEnableDefault, &found));
  CHECK(found == cudaDriverEntryPointSuccess);
  CUtensorMap map;
  const cuuint64_t strides[] = {shape[0] * sizeof(float)};
  const cuuint32_t steps[] = {1, 1};
  CHECK(reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function)(
            &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, rank, data, shape, strides, box, steps,
            CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
            CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
  // A row of 20 bytes is no multiple of 16.
  const cuuint32_t odd[] = {5, 1};
  CUtensorMap wrong;
  CHECK(reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function)(
            &wrong, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, rank, data, shape, strides, odd, steps,
            CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
            CU_TENSOR_MAP_L2_PROMOTION_NONE,
            CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_ERROR_INVALID_VALUE);
  return map;
}

int main() {
  Array<float> in(rows * columns), out(rows * columns), sums(32);
  Array<int> outside(1);
  for (int i = 0; i < rows * columns; ++i) in[i] = static_cast<float>(i + 1);
  in.up();
  const cuuint64_t shape[] = {columns, rows}, line[] = {32};
  const cuuint32_t box[] = {wide, high}, piece[] = {16};
  const CUtensorMap from = encode(in.device, 2, shape, box, CU_TENSOR_MAP_SWIZZLE_128B);
  const CUtensorMap to = encode(out.device, 2, shape, box, CU_TENSOR_MAP_SWIZZLE_128B);
  twice<<<dim3(3, 3), 128>>>(from, to, outside.device);
  CUDA(cudaGetLastError());
  out.down();
  outside.down();
  CHECK(outside[0] == 0);
  for (int i = 0; i < rows * columns; ++i) CHECK(out[i] == 2 * in[i]);
  const CUtensorMap target = encode(sums.device, 1, line, piece, CU_TENSOR_MAP_SWIZZLE_NONE);
  add<<<3, 32>>>(target);
  CUDA(cudaGetLastError());
  sums.down();
  for (int i = 0; i < 32; ++i) CHECK(sums[i] == (i >= 8 && i < 24 ? 3.0f * (i - 7) : 0.0f));
  return ok();
}
