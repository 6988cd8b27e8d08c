// SPDX-License-Identifier: Apache-2.0
// Resource allocation per block, and the number of blocks that fit on an SM.
#include "rung/bench/occupancy.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "rung/core/error.hpp"

namespace rung::bench {
namespace {

constexpr int warp = 32;

constexpr int rounded_up(int value, int portion) {
  return (value + portion - 1) / portion * portion;
}

std::string name_of(const Multiprocessor& chip) {
  return chip.capability == 0 ? "this SM"
                              : "compute capability " + capability_name(chip.capability);
}

[[noreturn]] void refuse(const char* what, int given, int most, const Multiprocessor& chip) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: {} given; a block of {} has at most {}",
                                                       what, given, name_of(chip), most));
}

/// Throws for a block with too many registers; the message shows the calculation.
[[noreturn]] void refuse_registers(const Multiprocessor& chip, const BlockNeeds& block,
                                   const Occupancy& needs) {
  if (block.registers_per_block > 0 || needs.registers_per_warp == 0) {
    refuse("registers per block", needs.registers_per_block, chip.registers_per_block, chip);
  }
  // Largest register count per thread that fits the block's warps.
  const int warps = needs.registers_per_block / needs.registers_per_warp;
  const int fits =
      chip.registers_per_block / warps / chip.register_portion * chip.register_portion / warp;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("registers: {} threads with {} each are {} warps with {} (allocated in "
                  "units of {}), {} in all; a block of {} has at most {}; accepted: up to {} "
                  "registers per thread, or fewer threads",
                  block.threads, block.registers, warps, needs.registers_per_warp,
                  chip.register_portion, needs.registers_per_block, name_of(chip),
                  chip.registers_per_block, fits));
}

void expect_launchable(const Multiprocessor& chip, const BlockNeeds& block) {
  if (block.threads < 1 || block.registers < 0 || block.shared_bytes < 0 ||
      block.registers_per_block < 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a block of {} threads, {} registers per thread, {} bytes of shared "
                            "memory: none may be negative, and there is at least one thread",
                            block.threads, block.registers, block.shared_bytes));
  }
  if (block.threads > chip.threads_per_block) {
    refuse("threads", block.threads, chip.threads_per_block, chip);
  }
  if (block.registers > chip.registers_per_thread) {
    refuse("registers per thread", block.registers, chip.registers_per_thread, chip);
  }
  if (block.shared_bytes > chip.shared_bytes_per_block) {
    refuse("bytes of shared memory", block.shared_bytes, chip.shared_bytes_per_block, chip);
  }
}

}  // namespace

Occupancy occupancy(const Multiprocessor& chip, const BlockNeeds& block) {
  expect_launchable(chip, block);
  Occupancy result;
  result.warps_per_block = (block.threads + warp - 1) / warp;
  result.by_warps = chip.warps / result.warps_per_block;
  if (chip.blocks > 0) result.by_blocks = chip.blocks;

  if (chip.registers > 0 && block.registers_per_block > 0) {
    result.registers_per_block = chip.registers_by_block()
                                     ? rounded_up(block.registers_per_block, chip.register_portion)
                                     : block.registers_per_block;
    result.by_registers = chip.registers / result.registers_per_block;
  } else if (chip.registers > 0 && block.registers > 0) {
    // Each partition of the SM has its own registers: all registers of a warp are in one partition.
    const int warps = rounded_up(result.warps_per_block, chip.partitions);
    if (chip.registers_by_block()) {
      result.registers_per_block =
          rounded_up(warps * block.registers * warp, chip.register_portion);
      result.by_registers = chip.registers / result.registers_per_block;
    } else {
      const int each = rounded_up(block.registers * warp, chip.register_portion);
      result.registers_per_warp = each;
      result.registers_per_block = warps * each;
      result.warps_by_registers = chip.registers / chip.partitions / each * chip.partitions;
      result.by_registers = result.warps_by_registers / result.warps_per_block;
    }
  }
  if (chip.registers > 0 && result.registers_per_block > chip.registers_per_block) {
    refuse_registers(chip, block, result);
  }
  if (chip.shared_bytes > 0 && block.shared_bytes + chip.shared_bytes_reserved > 0) {
    result.shared_bytes_per_block =
        rounded_up(block.shared_bytes + chip.shared_bytes_reserved, chip.shared_portion);
    result.by_shared = chip.shared_bytes / result.shared_bytes_per_block;
  }

  result.blocks = result.by_warps;
  for (const int limit : {result.by_blocks, result.by_registers, result.by_shared}) {
    if (limit != Occupancy::no_limit) result.blocks = std::min(result.blocks, limit);
  }
  result.warps = result.blocks * result.warps_per_block;
  result.occupancy = static_cast<double>(result.warps) / chip.warps;
  return result;
}

std::vector<std::string> Occupancy::limited_by() const {
  std::vector<std::string> names;
  if (by_warps == blocks) names.emplace_back("warps");
  if (by_blocks == blocks) names.emplace_back("blocks");
  if (by_registers == blocks) names.emplace_back("registers");
  if (by_shared == blocks) names.emplace_back("shared memory");
  return names;
}

std::vector<BlockSize> every_block_size(const Multiprocessor& chip, BlockNeeds block) {
  std::vector<BlockSize> sizes;
  // Throws for violations that do not depend on the block size; larger sizes may still have too
  // many registers.
  block.threads = warp;
  expect_launchable(chip, block);
  for (; block.threads <= chip.threads_per_block; block.threads += warp) {
    try {
      sizes.push_back({block.threads, occupancy(chip, block)});
    } catch (const Error&) {
      break;  // too many registers per block, as for every larger size
    }
  }
  return sizes;
}

}  // namespace rung::bench
