// SPDX-License-Identifier: Apache-2.0
// Measures the ceilings of a GPU: memory bandwidth of reads and copies, and multiply-adds per
// second.
#include <cuda_runtime.h>

#include "rung/bench/gpu_rates.hpp"

namespace rung::bench {
namespace {

constexpr std::size_t buffer_bytes = std::size_t{1} << 30;  // many times any L2 cache
constexpr int block = 256;
// Independent multiply-adds per thread: twice as many as needed to hide their latency of 4 cycles.
constexpr int chains = 8;
constexpr int turns = 16384;  // per chain and launch

/// Reads the buffer, 16 bytes per load, with adjacent threads on adjacent addresses.
__global__ void read_rate(const uint4* from, std::size_t count, unsigned* out) {
  unsigned sum = 0;
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
#pragma unroll 4
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const uint4 four = from[i];
    sum ^= four.x ^ four.y ^ four.z ^ four.w;
  }
  // Never true for the buffer's content, which the compiler cannot know.
  if (sum == 0x5eed5eedu) *out = sum;
}

__global__ void copy_rate(const uint4* from, uint4* to, std::size_t count) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
#pragma unroll 4
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    to[i] = from[i];
  }
}

template <class T>
__global__ void multiply_add_rate(T factor, T* out) {
  T sum[chains];
  for (int i = 0; i < chains; ++i) sum[i] = static_cast<T>(threadIdx.x + i);
#pragma unroll 4
  for (int turn = 0; turn < turns; ++turn) {
#pragma unroll
    for (int i = 0; i < chains; ++i) sum[i] = sum[i] * factor + factor;
  }
  T total = 0;
  for (int i = 0; i < chains; ++i) total += sum[i];
  out[std::size_t{blockIdx.x} * blockDim.x + threadIdx.x] = total;
}

template <class T>
double multiply_adds(int multiprocessors, void* out) {
  const int blocks = multiprocessors * (2048 / block);
  const double operations = 2.0 * chains * turns * blocks * block;
  return operations / min_launch_seconds([&] {
           multiply_add_rate<T><<<blocks, block>>>(static_cast<T>(0.5), static_cast<T*>(out));
         });
}

void measure(int device, Gpu& gpu) {
  int before = 0;
  check_gpu(cudaGetDevice(&before));
  check_gpu(cudaSetDevice(device));
  {
    const DeviceBuffer from(buffer_bytes);
    const DeviceBuffer to(buffer_bytes);
    check_gpu(cudaMemset(from.get(), 1, buffer_bytes));
    constexpr std::size_t count = buffer_bytes / sizeof(uint4);
    const auto* source = static_cast<const uint4*>(from.get());
    const int blocks = gpu.multiprocessors * (2048 / block);
    gpu.read_bytes_per_second =
        static_cast<double>(buffer_bytes) / min_launch_seconds([&] {
          read_rate<<<blocks, block>>>(source, count, static_cast<unsigned*>(to.get()));
        });
    gpu.copy_bytes_per_second = 2.0 * static_cast<double>(buffer_bytes) / min_launch_seconds([&] {
                                  // A block per 256 x 4 vectors: more bytes in flight than with a
                                  // persistent grid.
                                  copy_rate<<<static_cast<int>(count / block / 4), block>>>(
                                      source, static_cast<uint4*>(to.get()), count);
                                });
    gpu.arithmetic.push_back({"f32", multiply_adds<float>(gpu.multiprocessors, to.get())});
    gpu.arithmetic.push_back({"f64", multiply_adds<double>(gpu.multiprocessors, to.get())});
  }
  measure_tensor_cores(gpu);
  check_gpu(cudaSetDevice(before));
}

const GpuMeter self(measure);

}  // namespace
}  // namespace rung::bench
