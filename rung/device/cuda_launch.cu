// SPDX-License-Identifier: Apache-2.0
// Kernel launches and occupancy queries by the CUDA runtime.
#include <algorithm>
#include <string>

#include "rung/device/cuda_check.hpp"
#include "rung/device/launch.hpp"
#include "rung/device/resident.hpp"

namespace rung::inline RUNG_TARGET {
namespace {

/// Shared memory per block, in bytes, that needs no opt-in attribute.
constexpr std::size_t default_shared_bytes = 48 << 10;

std::string describe_launch(const LaunchShape& shape, const void* kernel) {
  const char* name = nullptr;
  if (cudaFuncGetName(&name, kernel) != cudaSuccess || name == nullptr) name = "a kernel";
  return std::string("launching ") + name + " (" + describe(shape) + ")";
}

dim3 to_dim3(const LaunchExtent& extent) {
  return dim3(static_cast<unsigned>(extent.x), static_cast<unsigned>(extent.y),
              static_cast<unsigned>(extent.z));
}

/// Raises the kernel's limit of dynamic shared memory to `bytes` if needed. Throws an error that
/// begins with describe_call() if the device does not allow it.
template <class Describe>
void allow_shared_memory(const void* kernel, std::size_t bytes, const Describe& describe_call) {
  if (bytes <= default_shared_bytes) return;
  const cudaError_t status = cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  if (status != cudaSuccess) check_cuda(status, describe_call());
}

/// Largest cluster that every device supports; larger ones need an opt-in attribute.
constexpr std::int64_t portable_cluster_blocks = 8;

void allow_large_clusters(const LaunchShape& shape, const void* kernel) {
  const cudaError_t status =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
  if (status != cudaSuccess) check_cuda(status, describe_launch(shape, kernel));
}

}  // namespace

namespace device_detail {

std::int64_t resident_blocks_cuda(const Context& context, const void* kernel, int threads,
                                  std::size_t shared_bytes) {
  const CurrentDevice current(context.device().index);
  const auto what = [&] {
    return "occupancy of a kernel with " + std::to_string(threads) + " threads and " +
           std::to_string(shared_bytes) + " bytes of shared memory";
  };
  allow_shared_memory(kernel, shared_bytes, what);
  int blocks = 0;
  const cudaError_t status =
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared_bytes);
  if (status != cudaSuccess) check_cuda(status, what());
  return std::int64_t{std::max(blocks, 1)} * context.info().sms;
}

std::int64_t resident_clusters_cuda(const Context& context, const void* kernel, int threads,
                                    std::size_t shared_bytes, int blocks) {
  const CurrentDevice current(context.device().index);
  const LaunchShape shape{
      .grid = blocks, .block = threads, .shared_bytes = shared_bytes, .cluster = blocks};
  allow_shared_memory(kernel, shared_bytes, [&] { return describe_launch(shape, kernel); });
  if (blocks > portable_cluster_blocks) allow_large_clusters(shape, kernel);
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = static_cast<unsigned>(blocks);
  attribute.val.clusterDim.y = 1;
  attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = to_dim3(shape.grid);
  config.blockDim = to_dim3(shape.block);
  config.dynamicSmemBytes = shared_bytes;
  config.attrs = &attribute;
  config.numAttrs = 1;
  int clusters = 0;
  const cudaError_t status = cudaOccupancyMaxActiveClusters(&clusters, kernel, &config);
  if (status != cudaSuccess) check_cuda(status, describe_launch(shape, kernel));
  return std::max(clusters, 1);
}

void launch_cuda(const Context& context, const LaunchShape& shape, const void* kernel,
                 void** arguments) {
  const CurrentDevice current(context.device().index);
  allow_shared_memory(kernel, shape.shared_bytes, [&] { return describe_launch(shape, kernel); });
  cudaLaunchConfig_t config{};
  config.gridDim = to_dim3(shape.grid);
  config.blockDim = to_dim3(shape.block);
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = static_cast<cudaStream_t>(context.stream());
  cudaLaunchAttribute attributes[3]{};
  unsigned count = 0;
  if (shape.cooperative) {
    attributes[count].id = cudaLaunchAttributeCooperative;
    attributes[count++].val.cooperative = 1;
  }
  if (blocks_in(shape.cluster) > 1) {
    const dim3 cluster = to_dim3(shape.cluster);
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count].val.clusterDim.x = cluster.x;
    attributes[count].val.clusterDim.y = cluster.y;
    attributes[count++].val.clusterDim.z = cluster.z;
    if (blocks_in(shape.cluster) > portable_cluster_blocks) allow_large_clusters(shape, kernel);
  }
  if (shape.dependent) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count++].val.programmaticStreamSerializationAllowed = 1;
  }
  config.attrs = attributes;
  config.numAttrs = count;
  // Describes the launch only on failure: a launch takes two microseconds, beside which building
  // the text would be noticeable.
  const cudaError_t status = cudaLaunchKernelExC(&config, kernel, arguments);
  if (status != cudaSuccess) check_cuda(status, describe_launch(shape, kernel));
}

}  // namespace device_detail
}  // namespace rung::inline RUNG_TARGET
