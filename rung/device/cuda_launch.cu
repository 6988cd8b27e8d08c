// SPDX-License-Identifier: Apache-2.0
// The one call of the CUDA runtime that starts kernels.
#include "rung/device/cuda_check.hpp"
#include "rung/device/launch.hpp"

namespace rung::inline RUNG_TARGET {
namespace {

/// What every device gives a block without being asked.
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

}  // namespace

namespace device_detail {

void launch_cuda(const Context& context, const LaunchShape& shape, const void* kernel,
                 void** arguments) {
  const CurrentDevice current(context.device().index);
  if (shape.shared_bytes > default_shared_bytes) {
    const cudaError_t status = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shape.shared_bytes));
    if (status != cudaSuccess) check_cuda(status, describe_launch(shape, kernel));
  }
  cudaLaunchConfig_t config{};
  config.gridDim = to_dim3(shape.grid);
  config.blockDim = to_dim3(shape.block);
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = static_cast<cudaStream_t>(context.stream());
  cudaLaunchAttribute cooperative{};
  cooperative.id = cudaLaunchAttributeCooperative;
  cooperative.val.cooperative = 1;
  config.attrs = &cooperative;
  config.numAttrs = shape.cooperative ? 1 : 0;
  // The description is built only when it is needed: a launch costs two microseconds.
  const cudaError_t status = cudaLaunchKernelExC(&config, kernel, arguments);
  if (status != cudaSuccess) check_cuda(status, describe_launch(shape, kernel));
}

}  // namespace device_detail
}  // namespace rung::inline RUNG_TARGET
