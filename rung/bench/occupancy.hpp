// SPDX-License-Identifier: Apache-2.0
// Occupancy: the number of blocks of a kernel that an SM holds at once, and the limiting resource.
// Computed from the block's resources, for compute capabilities from 1.3 to 12.1.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rung::bench {

/// Resources of an SM of a compute capability, and the granularity of their allocation.
struct Multiprocessor {
  int capability = 0;  // 90 for 9.0; 0: made by own_multiprocessor()
  int warps = 0;       // resident at once
  // 0: no limit.
  int blocks = 0;
  int registers = 0;  // 4 bytes each
  int shared_bytes = 0;
  int threads_per_block = 1024;
  int registers_per_block = 0;
  int registers_per_thread = 255;
  int shared_bytes_per_block = 0;
  int shared_bytes_reserved = 0;  // per block, by the system
  // Allocation units. Registers are allocated per warp, within one of the partitions. Before 2.0
  // they are allocated per block, whose number of warps is rounded up to `partitions`.
  int register_portion = 256;
  int shared_portion = 128;
  int partitions = 4;

  [[nodiscard]] bool registers_by_block() const { return capability < 20; }
};

/// Returns the known SMs by ascending compute capability.
std::span<const Multiprocessor> multiprocessors();
/// Returns the SM of a compute capability. Throws Error(invalid_argument), which lists the known
/// ones, if there is none.
const Multiprocessor& find_multiprocessor(int capability);
/// Parses "9.0", "9", "90", "sm_90", "sm_90a" and "compute_90" as 90. Throws
/// Error(invalid_argument) for other forms.
int parse_capability(std::string_view text);
/// Returns "9.0" for 90.
std::string capability_name(int capability);

/// Limits of a hypothetical SM, as in textbook exercises; 0: no limit. Allocations are not rounded
/// up.
struct OwnMultiprocessor {
  int warps = 0, threads = 0;  // at least one is required
  int blocks = 0, registers = 0, shared_bytes = 0;
  int threads_per_block = 0;  // 0: the smaller of 1024 and the SM's threads
};
Multiprocessor own_multiprocessor(const OwnMultiprocessor& own);

struct BlockNeeds {
  int threads = 0;
  int registers = 0;  // per thread; 0: unknown, no limit
  int shared_bytes = 0;
  int registers_per_block = 0;  // overrides `registers`, without rounding per warp
};

struct Occupancy {
  static constexpr int no_limit = -1;

  int warps_per_block = 0;
  int blocks = 0;  // resident at once
  int warps = 0;
  double occupancy = 0;  // warps / maximum warps of the SM
  // Blocks that each resource alone would allow.
  int by_warps = 0;
  int by_blocks = no_limit;
  int by_registers = no_limit;
  int by_shared = no_limit;
  // Allocated to a block, rounded up from its request.
  int registers_per_block = 0;
  int shared_bytes_per_block = 0;
  // Registers per warp if they are allocated by warps; else 0.
  int registers_per_warp = 0;
  int warps_by_registers = 0;  // warps that fit in the registers of all partitions

  /// Returns the limiting resources: "warps", "blocks", "registers", "shared memory".
  [[nodiscard]] std::vector<std::string> limited_by() const;
};

/// Computes the occupancy. Throws Error(invalid_argument) if the block cannot be launched.
Occupancy occupancy(const Multiprocessor& chip, const BlockNeeds& block);

/// Occupancy of a block size. every_block_size() returns all launchable multiples of a warp, in
/// ascending order.
struct BlockSize {
  int threads = 0;
  Occupancy occupancy;
};
std::vector<BlockSize> every_block_size(const Multiprocessor& chip, BlockNeeds block);

}  // namespace rung::bench
