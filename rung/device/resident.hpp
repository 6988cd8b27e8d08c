// SPDX-License-Identifier: Apache-2.0
// resident_blocks(): the number of blocks of a kernel that the device holds at once, which is the
// grid of a persistent kernel and the limit of a cooperative launch. resident_clusters(): the
// number of clusters, often fewer than resident_blocks() / (blocks per cluster): a cluster stays
// within one group of SMs (GPC), and groups differ in size.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rung/core/bounds.hpp"
#include "rung/core/context.hpp"
#include "rung/device/target.hpp"

#if !defined(__CUDACC__)
#include "rung/simt/limits.hpp"
#endif

namespace rung::inline RUNG_TARGET {

/// Returns the number of blocks of `threads` threads with `registers` registers each that fit in
/// the registers of an SM, from 1 to 32; for work estimates.
inline int blocks_per_sm(int threads, int registers = 32) {
  constexpr int registers_of_sm = 65536;
  constexpr int most = 32;
  return clamped(registers_of_sm / (registers * larger(threads, 32)), 1, most);
}

#if defined(__CUDACC__)

namespace device_detail {
/// Queries the runtime for a kernel's occupancy; defined in cuda_launch.cu.
std::int64_t resident_blocks_cuda(const Context& context, const void* kernel, int threads,
                                  std::size_t shared_bytes);
std::int64_t resident_clusters_cuda(const Context& context, const void* kernel, int threads,
                                    std::size_t shared_bytes, int blocks);
}  // namespace device_detail

/// Returns the number of blocks that the device holds at once, at least 1. `kernel` is the template
/// instance to be launched.
template <class... Parameters>
std::int64_t resident_blocks(const Context& context, void (*kernel)(Parameters...), int threads,
                             std::size_t shared_bytes = 0) {
  return device_detail::resident_blocks_cuda(context, reinterpret_cast<const void*>(kernel),
                                             threads, shared_bytes);
}
/// Returns the number of clusters of `blocks` blocks each that the device holds at once, at least
/// 1.
template <class... Parameters>
std::int64_t resident_clusters(const Context& context, void (*kernel)(Parameters...), int threads,
                               std::size_t shared_bytes, int blocks) {
  return device_detail::resident_clusters_cuda(context, reinterpret_cast<const void*>(kernel),
                                               threads, shared_bytes, blocks);
}

#else

/// Returns the number of blocks that the device holds at once, at least 1. The simulator limits
/// threads, blocks and shared memory per SM, but not registers.
template <class... Parameters>
std::int64_t resident_blocks(const Context&, void (*)(Parameters...), int threads,
                             std::size_t shared_bytes = 0) {
  const int warps = (threads + simt::warp_lanes - 1) / simt::warp_lanes;
  const int by_threads = simt::threads_per_multiprocessor / (warps * simt::warp_lanes);
  const auto by_shared = static_cast<int>(simt::shared_bytes_per_multiprocessor /
                                          (shared_bytes + simt::shared_bytes_reserved));
  const int blocks = smaller(smaller(by_threads, by_shared), simt::blocks_per_multiprocessor);
  return std::int64_t{larger(blocks, 1)} * simt::multiprocessors;
}
template <class... Parameters>
std::int64_t resident_clusters(const Context& context, void (*kernel)(Parameters...), int threads,
                               std::size_t shared_bytes, int blocks) {
  return larger<std::int64_t>(resident_blocks(context, kernel, threads, shared_bytes) / blocks, 1);
}

#endif

}  // namespace rung::inline RUNG_TARGET
