// SPDX-License-Identifier: Apache-2.0
// Limits on launches, imposed by the device and the kernel.
#pragma once

#include <cstddef>
#include <string>

#include "rung/emulate/runtime/api.hpp"

namespace rung::cuda {

inline unsigned long long volume(const dim3& v) { return 1ull * v.x * v.y * v.z; }
inline bool same_extent(const dim3& a, const dim3& b) {
  return a.x == b.x && a.y == b.y && a.z == b.z;
}
inline bool divides(const dim3& part, const dim3& whole) {
  return whole.x % part.x == 0 && whole.y % part.y == 0 && whole.z % part.z == 0;
}

/// Records why the launch is rejected, and returns `error`.
cudaError_t refuse(const LaunchConfig& config, cudaError_t error, const std::string& why);
std::string too_much_shared(const LaunchConfig& config, std::size_t static_bytes,
                            std::size_t limit);
/// Returns the cluster extent of a launch, given the kernel's requirements (null: none).
dim3 cluster_of(const LaunchConfig& config, const Demands* demands);
/// Reason why a launch is rejected.
struct Refusal {
  cudaError_t error = cudaSuccess;
  std::string why;
};
Refusal unmet(const LaunchConfig& config, const Demands* demands);

/// Limits for one kernel.
struct LaunchLimits {
  std::size_t static_bytes;  // bytes of static shared memory
  std::size_t shared_bytes;  // maximum shared memory per block
  unsigned cluster_blocks;   // maximum blocks per cluster
};
/// Rejects a launch that the device cannot run.
cudaError_t check_limits(const LaunchConfig& config, const dim3& cluster,
                         const LaunchLimits& limits);

}  // namespace rung::cuda
