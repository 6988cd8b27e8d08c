// SPDX-License-Identifier: Apache-2.0
// Kernels by address: names, attributes, occupancy.
#include "rung/emulate/runtime/kernels.hpp"

#include <cxxabi.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "rung/emulate/runtime/model.hpp"
#include "rung/simt/simulator.hpp"

namespace rung::cuda {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<const void*, KernelEntry> kernels;
  std::map<const void*, std::size_t> dynamic_limits;
  std::map<const void*, bool> wide_clusters;
  // Keyed by program or library and mangled name: two libraries may have kernels of the same name.
  std::map<std::pair<const void*, std::string>, Demands> demands;
};
Registry& registry() {
  static Registry& one = *new Registry;
  return one;
}

}  // namespace

int register_kernel(const KernelEntry& kernel) {
  const std::lock_guard lock(registry().mutex);
  KernelEntry& known = registry().kernels[kernel.code];
  const char* name = kernel.name != nullptr ? kernel.name : known.name;
  known = kernel;
  known.name = name;
  return 0;
}

const KernelEntry* find_kernel(const void* code) {
  const std::lock_guard lock(registry().mutex);
  const auto found = registry().kernels.find(code);
  return found != registry().kernels.end() ? &found->second : nullptr;
}

const void* object_of(const void* data) {
  Dl_info info{};
  return dladdr(data, &info) != 0 ? info.dli_fbase : nullptr;
}

int register_demands(const char* kernel, const Demands& demands) {
  const std::lock_guard lock(registry().mutex);
  registry().demands[{object_of(kernel), kernel}] = demands;
  return 0;
}

const Demands* find_demands(const char* kernel) {
  if (kernel == nullptr) return nullptr;
  const std::lock_guard lock(registry().mutex);
  const auto found = registry().demands.find({object_of(kernel), kernel});
  return found != registry().demands.end() ? &found->second : nullptr;
}

const Demands* find_restricted(const char* kernel) {
  const Demands* const demands = find_demands(kernel);
  if (demands == nullptr) return nullptr;
  const auto& names = demands->restricted_names;
  const auto given = std::count_if(std::begin(names), std::end(names),
                                   [](const char* name) { return name != nullptr; });
  return given > 1 ? demands : nullptr;
}

namespace {

/// Returns the maximum of `at_least` and the values set for this kernel, by its address or by its
/// name within its program or library. The caller must hold the lock.
template <class T>
T setting(const std::map<const void*, T>& settings, const void* code, const char* kernel,
          T at_least) {
  T most = at_least;
  for (const auto& [address, value] : settings) {
    const auto known = registry().kernels.find(address);
    const bool same_name = kernel != nullptr && known != registry().kernels.end() &&
                           known->second.name != nullptr &&
                           std::string_view(known->second.name) == kernel &&
                           object_of(known->second.name) == object_of(kernel);
    if ((code != nullptr && address == code) || same_name) most = std::max(most, value);
  }
  return most;
}

}  // namespace

std::size_t dynamic_shared_limit(const void* code, const char* kernel) {
  const std::lock_guard lock(registry().mutex);
  return setting(registry().dynamic_limits, code, kernel, shared_without_asking);
}

bool wide_clusters(const void* code, const char* kernel) {
  const std::lock_guard lock(registry().mutex);
  return setting(registry().wide_clusters, code, kernel, false);
}

std::string plain_name(const char* mangled) {
  // Mangled name of a type local to the kernel. Its demangled form begins with the kernel.
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(mangled, nullptr, nullptr, &status), &std::free);
  std::string name = status == 0 ? text.get() : mangled;
  if (const std::size_t tag = name.rfind("::rung_kernel"); tag != std::string::npos) {
    name.erase(tag);
  }
  // Drops parameters and return type, which do not identify the kernel.
  int angles = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<') ++angles;
    if (name[i] == '>') --angles;
    if (name.compare(i, 11, "(anonymous ") == 0) {
      i = name.find(')', i);
    } else if (name[i] == '(' && angles == 0) {
      name.erase(i);
      break;
    }
  }
  if (name.starts_with("void ")) name.erase(0, 5);
  return name;
}

int resident_blocks(std::size_t threads, std::size_t shared_bytes) {
  const Model& m = model();
  const std::size_t warps = (threads + 31) / 32;
  if (warps == 0 || threads > 1024) return 0;
  const std::size_t reserved = m.capability >= 80 ? 1024 : 0;
  const std::size_t shared = (shared_bytes + reserved + 127) / 128 * 128;
  std::size_t blocks = static_cast<std::size_t>(m.blocks_per_multiprocessor);
  blocks = std::min(blocks, static_cast<std::size_t>(m.threads_per_multiprocessor) / 32 / warps);
  if (shared > 0) blocks = std::min(blocks, m.shared_per_multiprocessor / shared);
  return static_cast<int>(blocks);
}

}  // namespace rung::cuda

using namespace rung::cuda;  // NOLINT: implementation of the CUDA API

namespace {

int max_threads(const char* kernel) {
  const Demands* const demands = find_demands(kernel);
  return demands != nullptr && demands->max_threads != 0 ? static_cast<int>(demands->max_threads)
                                                         : 1024;
}

}  // namespace

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* to, const void* kernel) {
  const KernelEntry* known = find_kernel(kernel);
  if (to == nullptr || known == nullptr) return remember(cudaErrorInvalidDeviceFunction);
  *to = {};
  to->sharedSizeBytes = own_shared_bytes(known->name);
  to->maxThreadsPerBlock = max_threads(known->name);
  to->numRegs = registers_assumed;
  to->ptxVersion = to->binaryVersion = model().capability;
  to->maxDynamicSharedSizeBytes =
      static_cast<int>(dynamic_shared_limit(kernel, nullptr) - to->sharedSizeBytes);
  to->preferredShmemCarveout = cudaSharedmemCarveoutDefault;
  if (const Demands* const demands = find_demands(known->name)) {
    to->clusterDimMustBeSet = demands->cluster.x != 0 ? 1 : 0;
    to->requiredClusterWidth = static_cast<int>(demands->cluster.x);
    to->requiredClusterHeight = static_cast<int>(demands->cluster.y);
    to->requiredClusterDepth = static_cast<int>(demands->cluster.z);
  }
  return remember(cudaSuccess);
}
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  const KernelEntry* known = find_kernel(kernel);
  if (known == nullptr) return remember(cudaErrorInvalidDeviceFunction);
  if (attribute == cudaFuncAttributeNonPortableClusterSizeAllowed) {
    const std::lock_guard lock(registry().mutex);
    registry().wide_clusters[kernel] = value != 0;
  }
  if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
    const std::size_t own = own_shared_bytes(known->name);
    if (value < 0 || static_cast<std::size_t>(value) + own > model().shared_per_block) {
      return remember(cudaErrorInvalidValue);
    }
    const std::lock_guard lock(registry().mutex);
    registry().dynamic_limits[kernel] =
        std::max(static_cast<std::size_t>(value) + own, shared_without_asking);
  }
  return remember(cudaSuccess);
}
cudaError_t cudaFuncSetCacheConfig(const void*, cudaFuncCache) { return remember(cudaSuccess); }
cudaError_t cudaFuncSetSharedMemConfig(const void*, cudaSharedMemConfig) {
  return remember(cudaSuccess);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel,
                                                          int block_size,
                                                          std::size_t shared_bytes) {
  const KernelEntry* known = find_kernel(kernel);
  if (known == nullptr) return remember(cudaErrorInvalidDeviceFunction);
  if (blocks == nullptr || block_size <= 0) return remember(cudaErrorInvalidValue);
  const std::size_t shared = shared_bytes + own_shared_bytes(known->name);
  const bool refused =
      shared > dynamic_shared_limit(kernel, nullptr) || block_size > max_threads(known->name);
  *blocks = refused ? 0 : resident_blocks(static_cast<std::size_t>(block_size), shared);
  return remember(cudaSuccess);
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* kernel,
                                                                   int block_size,
                                                                   std::size_t shared_bytes,
                                                                   unsigned int) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel, block_size, shared_bytes);
}
cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, const void* kernel,
                                                      int blocks, int) {
  const KernelEntry* known = find_kernel(kernel);
  if (known == nullptr) return remember(cudaErrorInvalidDeviceFunction);
  if (bytes == nullptr || blocks <= 0) return remember(cudaErrorInvalidValue);
  const std::size_t share = model().shared_per_multiprocessor / static_cast<std::size_t>(blocks);
  const std::size_t taken = 1024 + own_shared_bytes(known->name);
  *bytes = std::min(share - std::min(share, taken), model().shared_per_block);
  return remember(cudaSuccess);
}
cudaError_t cudaOccupancyMaxPotentialClusterSize(int* size, const void*,
                                                 const cudaLaunchConfig_t*) {
  *size = 8;
  return remember(model().capability >= 90 ? cudaSuccess : cudaErrorNotSupported);
}
cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* kernel,
                                           const cudaLaunchConfig_t* config) {
  const dim3 block = config->blockDim;
  int blocks = 0;
  const cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &blocks, kernel, static_cast<int>(block.x * block.y * block.z), config->dynamicSmemBytes);
  int size = 1;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    if (config->attrs[i].id != cudaLaunchAttributeClusterDimension) continue;
    const auto& shape = config->attrs[i].val.clusterDim;
    size = static_cast<int>(shape.x * shape.y * shape.z);
  }
  *clusters = blocks * model().multiprocessors / size;
  return error;
}
