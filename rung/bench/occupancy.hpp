// SPDX-License-Identifier: Apache-2.0
// Occupancy: how many blocks of a kernel an SM holds at once, and what it runs out of
// first. Computed from what the block asks for, for every compute capability from 1.3 to 12.1.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rung::bench {

/// Resources of an SM of a compute capability, and the granularity of their allocation.
struct Multiprocessor {
  int capability = 0;  // 90 for 9.0; 0: an SM of one's own
  int warps = 0;       // resident at once
  // 0: no limit.
  int blocks = 0;
  int registers = 0;  // of 4 bytes
  int shared_bytes = 0;
  int threads_per_block = 1024;
  int registers_per_block = 0;
  int registers_per_thread = 255;
  int shared_bytes_per_block = 0;
  int shared_bytes_reserved = 0;  // of each block, for the system
  // Portions. Registers are given to warps, each in one of the partitions; to whole blocks before
  // 2.0, where `partitions` is what the number of warps is rounded up to.
  int register_portion = 256;
  int shared_portion = 128;
  int partitions = 4;

  [[nodiscard]] bool registers_by_block() const { return capability < 20; }
};

/// Returns the known SMs by ascending compute capability.
std::span<const Multiprocessor> multiprocessors();
/// Throws Error(invalid_argument) that lists those that are known.
const Multiprocessor& find_multiprocessor(int capability);
/// Reads "9.0", "9", "90", "sm_90", "sm_90a" and "compute_90". Throws Error(invalid_argument).
int parse_capability(std::string_view text);
/// "9.0" of 90.
std::string capability_name(int capability);

/// Limits of a multiprocessor that no chip has; 0: no limit. Nothing is rounded up, as in the
/// exercises of textbooks.
struct OwnMultiprocessor {
  int warps = 0, threads = 0;  // one of the two at least
  int blocks = 0, registers = 0, shared_bytes = 0;
  int threads_per_block = 0;  // 0: 1024, or all
};
Multiprocessor own_multiprocessor(const OwnMultiprocessor& own);

struct BlockNeeds {
  int threads = 0;
  int registers = 0;  // a thread; 0: not known, and no limit
  int shared_bytes = 0;
  int registers_per_block = 0;  // in place of `registers`: no warp is rounded up
};

struct Occupancy {
  static constexpr int no_limit = -1;

  int warps_per_block = 0;
  int blocks = 0;  // resident at once
  int warps = 0;
  double occupancy = 0;  // warps / those that there is room for
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
  int warps_by_registers = 0;  // that the registers of all partitions hold

  /// "warps", "blocks", "registers", "shared memory": those that allow no more than `blocks`.
  [[nodiscard]] std::vector<std::string> limited_by() const;
};

/// Throws Error(invalid_argument) when no such block can be launched.
Occupancy occupancy(const Multiprocessor& chip, const BlockNeeds& block);

/// A block of each whole number of warps that can be launched, by size.
struct BlockSize {
  int threads = 0;
  Occupancy occupancy;
};
std::vector<BlockSize> every_block_size(const Multiprocessor& chip, BlockNeeds block);

}  // namespace rung::bench
