// SPDX-License-Identifier: Apache-2.0
// Limits on launches, imposed by the device and the kernel.
#include "rung/emulate/runtime/launch_limits.hpp"

#include "rung/emulate/runtime/kernels.hpp"
#include "rung/emulate/runtime/model.hpp"

namespace rung::cuda {
namespace {

std::string describe(const dim3& v) {
  return std::to_string(v.x) + "x" + std::to_string(v.y) + "x" + std::to_string(v.z);
}

}  // namespace

std::string too_much_shared(const LaunchConfig& config, std::size_t static_bytes,
                            std::size_t limit) {
  if (static_bytes > shared_without_asking) {
    return std::to_string(static_bytes) +
           " bytes of static shared memory: ptxas refuses more than 49152 (48 KiB)";
  }
  return std::to_string(config.shared_bytes) + " bytes of dynamic shared memory and " +
         std::to_string(static_bytes) + " of static, the limit is " + std::to_string(limit) +
         "; cudaFuncSetAttribute(cudaFuncAttributeMaxDynamicSharedMemorySize) raises it to " +
         std::to_string(model().shared_per_block);
}

cudaError_t refuse(const LaunchConfig& config, cudaError_t error, const std::string& why) {
  note_refused_launch(config, why);
  return error;
}

dim3 cluster_of(const LaunchConfig& config, const Demands* demands) {
  const bool demanded = demands != nullptr && demands->cluster.x != 0;
  return demanded && !config.has_cluster ? demands->cluster : config.cluster;
}

// Returns the error with which an H200 rejects a launch that violates the kernel's requirements.
Refusal unmet(const LaunchConfig& config, const Demands* demands) {
  if (demands == nullptr) return {};
  if (demands->max_threads != 0 && volume(config.block) > demands->max_threads) {
    return {cudaErrorInvalidValue, "a block of " + describe(config.block) +
                                       " threads; the kernel's __launch_bounds__ says " +
                                       std::to_string(demands->max_threads) + " at most"};
  }
  const dim3 cluster = cluster_of(config, demands);
  const std::string clusters = "clusters of " + describe(cluster) + " blocks; the kernel's ";
  if (demands->max_cluster != 0 && volume(cluster) > demands->max_cluster) {
    return {cudaErrorInvalidClusterSize, clusters + "__launch_bounds__ says " +
                                             std::to_string(demands->max_cluster) + " at most"};
  }
  const dim3& demanded = demands->cluster;
  if (demanded.x == 0 || same_extent(cluster, demanded)) return {};
  return {cudaErrorInvalidClusterSize, clusters + "__cluster_dims__ says " + describe(demanded)};
}

cudaError_t check_limits(const LaunchConfig& config, const dim3& cluster,
                         const LaunchLimits& limits) {
  const dim3 &grid = config.grid, &block = config.block;
  if (block.x == 0 || block.y == 0 || block.z == 0 || block.x > 1024 || block.y > 1024 ||
      block.z > 64 || volume(block) > 1024) {
    return refuse(config, cudaErrorInvalidConfiguration,
                  "a block of " + describe(block) +
                      " threads; accepted are 1 to 1024 of them, at most 64 along z");
  }
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 0x7fffffffu || grid.y > 65535 ||
      grid.z > 65535) {
    return refuse(config, cudaErrorInvalidConfiguration,
                  "a grid of " + describe(grid) +
                      " blocks; accepted are 1 to 2147483647 along x, to 65535 along y and z");
  }
  const std::size_t static_bytes = limits.static_bytes;
  if (config.shared_bytes + static_bytes > limits.shared_bytes) {
    return refuse(config, cudaErrorInvalidValue,
                  too_much_shared(config, static_bytes, limits.shared_bytes));
  }
  if (volume(cluster) != 1) {
    const std::string clusters = "clusters of " + describe(cluster) + " blocks";
    if (model().capability < 90) {
      return refuse(config, cudaErrorInvalidValue, clusters + " before compute capability 9.0");
    }
    if (volume(cluster) > limits.cluster_blocks) {
      return refuse(config, cudaErrorInvalidClusterSize,
                    clusters +
                        "; accepted are up to 8, or 16 with "
                        "cudaFuncAttributeNonPortableClusterSizeAllowed");
    }
    if (!divides(cluster, grid)) {
      return refuse(config, cudaErrorInvalidClusterSize,
                    clusters + " for a grid of " + describe(grid) + ", which they do not divide");
    }
  }
  if (config.cooperative) {
    const unsigned long long most =
        1ull *
        static_cast<unsigned>(resident_blocks(volume(block), config.shared_bytes + static_bytes)) *
        static_cast<unsigned>(model().multiprocessors);
    if (volume(grid) > most) {
      return refuse(config, cudaErrorCooperativeLaunchTooLarge,
                    "a cooperative grid of " + std::to_string(volume(grid)) + " blocks, of which " +
                        std::to_string(most) + " can be resident at once");
    }
  }
  return cudaSuccess;
}

}  // namespace rung::cuda
