// SPDX-License-Identifier: Apache-2.0
// Launches of kernels by address: cudaLaunchKernel and related functions.
#include <cstddef>
#include <cstring>
#include <vector>

#include "rung/emulate/runtime/kernels.hpp"

namespace rung::cuda {

cudaError_t launch_by_address(LaunchConfig config, void** arguments) {
  const KernelEntry* known = find_kernel(config.code);
  if (known == nullptr) return remember(cudaErrorInvalidDeviceFunction);
  // Copied values, since the program may modify its own before a graph runs.
  struct CopiedLaunch {
    KernelEntry kernel;
    std::vector<std::max_align_t> values;
    std::vector<void*> pointers;
  };
  auto* call = new CopiedLaunch{*known, {}, {}};
  const auto units = [&](int i) {
    return (known->sizes[i] + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t);
  };
  std::size_t all = 0;
  for (int i = 0; i < known->count; ++i) all += units(i);
  call->values.resize(all);
  // Also clears padding, since launches are compared byte by byte (repetition.hpp).
  if (all > 0) std::memset(call->values.data(), 0, all * sizeof(std::max_align_t));
  std::max_align_t* next = call->values.data();
  for (int i = 0; i < known->count; ++i) {
    std::memcpy(next, arguments[i], known->sizes[i]);
    call->pointers.push_back(next);
    next += units(i);
  }
  known->describe(arguments, config.arguments, LaunchConfig::max_described);
  return launch(
      config, {call,
               [](const void* one) {
                 const auto* mine = static_cast<const CopiedLaunch*>(one);
                 mine->kernel.invoke(mine->kernel.code, const_cast<void**>(mine->pointers.data()));
               },
               [](void* one) { delete static_cast<CopiedLaunch*>(one); }, 0, call->values.data(),
               all * sizeof(std::max_align_t)});
}

static LaunchConfig convert(const cudaLaunchConfig_t& given, const void* code) {
  LaunchConfig config{given.gridDim, given.blockDim, given.dynamicSmemBytes, given.stream};
  config.code = code;
  for (unsigned i = 0; i < given.numAttrs; ++i) {
    const cudaLaunchAttribute& one = given.attrs[i];
    if (one.id == cudaLaunchAttributeCooperative) config.cooperative = one.val.cooperative != 0;
    if (one.id == cudaLaunchAttributeClusterDimension) {
      config.cluster = dim3(one.val.clusterDim.x, one.val.clusterDim.y, one.val.clusterDim.z);
      config.has_cluster = true;
    }
  }
  return config;
}

cudaError_t launch_extended(const cudaLaunchConfig_t& given, const void* code, Closure closure,
                            Place place) {
  LaunchConfig config = convert(given, code);
  config.place = place;
  return launch(config, closure);
}

}  // namespace rung::cuda

using namespace rung::cuda;  // NOLINT: implementation of the CUDA API

cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                             std::size_t shared_bytes, cudaStream_t stream) {
  LaunchConfig config{grid, block, shared_bytes, stream};
  config.code = kernel;
  return launch_by_address(config, arguments);
}
cudaError_t cudaLaunchCooperativeKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                                        std::size_t shared_bytes, cudaStream_t stream) {
  LaunchConfig config{grid, block, shared_bytes, stream, true};
  config.code = kernel;
  return launch_by_address(config, arguments);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel,
                                void** arguments) {
  return launch_by_address(convert(*config, kernel), arguments);
}
