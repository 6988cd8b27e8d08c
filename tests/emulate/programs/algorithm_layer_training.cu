// SPDX-License-Identifier: Apache-2.0
// One layer of a network is trained as programs for language models do it: cuBLAS for the products,
// packed loads of 16 bytes, reductions of warps and blocks, AdamW with stochastic rounding.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCudaRt.h>

#include <cfloat>
#include <cstring>

#include "check.cuh"

namespace cg = cooperative_groups;
using Low = __nv_bfloat16;

template <class T>
struct alignas(16) Packed {
  static constexpr int size = sizeof(int4) / sizeof(T);
  T values[size];
  Packed() = default;
  __device__ explicit Packed(int4 bits) { memcpy(values, &bits, sizeof(bits)); }
  __device__ T& operator[](int i) { return values[i]; }
  __device__ int4 bits() const {
    int4 all;
    memcpy(&all, values, sizeof(all));
    return all;
  }
};
template <class T>
__device__ Packed<T> load(const T* from) {
  return Packed<T>(__ldcs(reinterpret_cast<const int4*>(from)));
}
template <class T>
__device__ void store(T* to, const Packed<T>& from) {
  __stcg(reinterpret_cast<int4*>(to), from.bits());
}

__device__ float sum_of_warp(float value) {
  for (int lanes = 16; lanes > 0; lanes /= 2) value += __shfl_xor_sync(~0u, value, lanes);
  return value;
}
__device__ float max_of_warp(float value) {
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    value = fmaxf(value, __shfl_xor_sync(~0u, value, lanes));
  }
  return value;
}
using WarpReduction = float (*)(float);
template <WarpReduction reduce>
__device__ float of_block(float value, float neutral) {
  __shared__ float of_warp[32];
  const int lane = threadIdx.x % 32, warps = blockDim.x / 32;
  value = reduce(value);
  if (lane == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  value = reduce(lane < warps ? of_warp[lane] : neutral);
  __syncthreads();
  return value;
}

/// Probabilities of a row, and their difference to what is wanted: the loss's gradient.
__global__ void __launch_bounds__(256, 2)
    softmax_gradient(Low* gradient, const Low* logits, const int* targets, float* loss,
                     int classes) {
  const Low* row = logits + static_cast<size_t>(blockIdx.x) * classes;
  Low* out = gradient + static_cast<size_t>(blockIdx.x) * classes;
  const int step = blockDim.x * Packed<Low>::size, first = threadIdx.x * Packed<Low>::size;
  float largest = -FLT_MAX, sum = 0;
  for (int i = first; i < classes; i += step) {
    Packed<Low> some = load(row + i);
    for (int k = 0; k < some.size; ++k) largest = fmaxf(largest, static_cast<float>(some[k]));
  }
  largest = of_block<max_of_warp>(largest, -FLT_MAX);
  for (int i = first; i < classes; i += step) {
    Packed<Low> some = load(row + i);
    for (int k = 0; k < some.size; ++k) sum += expf(static_cast<float>(some[k]) - largest);
  }
  sum = of_block<sum_of_warp>(sum, 0);
  const int target = targets[blockIdx.x];
  for (int i = first; i < classes; i += step) {
    Packed<Low> some = load(row + i);
    for (int k = 0; k < some.size; ++k) {
      const float p = expf(static_cast<float>(some[k]) - largest) / sum;
      if (i + k == target) atomicAdd(loss, -logf(p));
      some[k] = static_cast<Low>((p - (i + k == target ? 1.0f : 0.0f)) / gridDim.x);
    }
    store(out + i, some);
  }
}

__device__ void round_by_chance(float value, Low* to, unsigned chance) {
  const unsigned bits = __float_as_uint(value);
  const unsigned rounded = (chance & 0xffff) < (bits & 0xffff) ? bits + 0x10000 : bits;
  *to = __float2bfloat16_rn(__uint_as_float(rounded & ~0xffffu));
}
__global__ void adamw(float* master, Low* weights, float* m, float* v, const float* gradient, int n,
                      float rate, float correct_m, float correct_v) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float g = gradient[i];
  m[i] = fmaf(0.9f, m[i] - g, g);
  v[i] = fmaf(0.99f, v[i] - g * g, g * g);
  master[i] -= rate * (m[i] / correct_m) / (sqrtf(v[i] / correct_v) + 1e-8f);
  round_by_chance(master[i], weights + i, static_cast<unsigned>(i) * 2654435761u >> 7);
}
__global__ void squared_norm(float* norm, const float* values, int n) {
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
    sum += values[i] * values[i];
  }
  sum = cg::reduce(warp, sum, cg::plus<float>());
  if (warp.thread_rank() == 0) atomicAdd(norm, sum);
}

int main() {
  const int inputs = 16, classes = 64, rows = 24, n = inputs * classes;
  Array<Low> x(rows * inputs), logits(rows * classes), gradient(rows * classes), weights(n);
  Array<float> master(n), m(n), v(n), of_weights(n), loss(1), norm(1);
  Array<int> targets(rows);
  for (int i = 0; i < rows * inputs; ++i) x[i] = static_cast<float>((i * 37) % 19 - 9) / 9;
  for (int i = 0; i < rows; ++i) targets[i] = (i * 11) % classes;
  x.up();
  targets.up();
  weights.up();
  cudaStream_t stream;
  CUDA(cudaStreamCreate(&stream));
  nvtxNameCudaStream(stream, "training");
  cublasHandle_t handle;
  CHECK(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  CHECK(cublasSetStream(handle, stream) == CUBLAS_STATUS_SUCCESS);
  const float one = 1, zero = 0;
  float first = 0, last = 0;
  for (int step = 1; step <= 12; ++step) {
    nvtxRangePush("step");
    CUDA(cudaMemsetAsync(loss.device, 0, sizeof(float), stream));
    CHECK(cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, classes, rows, inputs, &one,
                       weights.device, CUDA_R_16BF, inputs, x.device, CUDA_R_16BF, inputs, &zero,
                       logits.device, CUDA_R_16BF, classes, CUBLAS_COMPUTE_32F,
                       CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS);
    softmax_gradient<<<rows, 64, 0, stream>>>(gradient.device, logits.device, targets.device,
                                              loss.device, classes);
    CHECK(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_T, inputs, classes, rows, &one, x.device,
                       CUDA_R_16BF, inputs, gradient.device, CUDA_R_16BF, classes, &zero,
                       of_weights.device, CUDA_R_32F, inputs, CUBLAS_COMPUTE_32F,
                       CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS);
    adamw<<<(n + 127) / 128, 128, 0, stream>>>(master.device, weights.device, m.device, v.device,
                                               of_weights.device, n, 0.05f,
                                               1 - std::pow(0.9f, static_cast<float>(step)),
                                               1 - std::pow(0.99f, static_cast<float>(step)));
    CUDA(cudaStreamSynchronize(stream));
    loss.down();
    last = loss[0] / rows;
    if (step == 1) first = last;
    nvtxRangePop();
  }
  CHECK(std::fabs(first - std::log(static_cast<float>(classes))) < 1e-3f);
  CHECK(last < 0.75f * first);
  squared_norm<<<2, 64>>>(norm.device, of_weights.device, n);
  norm.down();
  float want = 0;
  CHECK(cublasSnrm2(handle, n, of_weights.device, 1, &want) == CUBLAS_STATUS_SUCCESS);
  CHECK(std::fabs(std::sqrt(norm[0]) - want) < 1e-4f * want);
  CHECK(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
  CUDA(cudaStreamDestroy(stream));
  return ok();
}
