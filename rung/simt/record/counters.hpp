// SPDX-License-Identifier: Apache-2.0
// Counters: events per line, launch and kernel. Part of rung/simt/record.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rung/core/export.hpp"
#include "rung/simt/record/waits.hpp"
#include "rung/simt/types.hpp"

namespace rung::simt::record {

/// Event counts, named after Nsight Compute's. A request is one memory instruction of one warp.
struct Counters {
  std::uint64_t global_load_requests = 0;   // l1tex__t_requests_pipe_lsu_mem_global_op_ld
  std::uint64_t global_load_sectors = 0;    // l1tex__t_sectors_pipe_lsu_mem_global_op_ld, of 32 B
  std::uint64_t global_store_requests = 0;  // ..._op_st
  std::uint64_t global_store_sectors = 0;
  std::uint64_t global_load_bytes = 0;  // requested by threads
  std::uint64_t global_store_bytes = 0;
  // Bytes of these sectors that any lane requested, counted once per request.
  std::uint64_t global_load_used_bytes = 0;
  std::uint64_t global_store_used_bytes = 0;
  std::uint64_t shared_load_requests = 0;
  std::uint64_t shared_load_wavefronts = 0;  // l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld
  std::uint64_t shared_store_requests = 0;
  std::uint64_t shared_store_wavefronts = 0;
  // Wavefronts in excess of the minimum: l1tex__data_bank_conflicts_pipe_lsu_mem_shared.
  std::uint64_t shared_load_conflicts = 0;
  std::uint64_t shared_store_conflicts = 0;
  std::uint64_t shared_load_bytes = 0;
  std::uint64_t shared_store_bytes = 0;
  std::uint64_t atomic_requests = 0;  // requests to global memory
  std::uint64_t atomic_sectors = 0;
  std::uint64_t atomic_bytes = 0;
  std::uint64_t atomic_rounds = 0;  // lanes at the most frequent address, summed over requests
  std::uint64_t shared_atomic_requests = 0;
  std::uint64_t shared_atomic_wavefronts = 0;
  std::uint64_t shared_atomic_bytes = 0;
  std::uint64_t shared_atomic_rounds = 0;
  std::uint64_t constant_requests = 0;
  std::uint64_t constant_bytes = 0;
  std::uint64_t constant_rounds = 0;   // distinct addresses, summed over requests
  std::uint64_t texture_requests = 0;  // texture fetches
  std::uint64_t local_requests = 0;    // accesses to thread arrays that do not fit in registers
  std::uint64_t local_bytes = 0;       // bytes read and written by local requests
  std::uint64_t active_lanes = 0;      // summed over the requests above
  std::uint64_t barriers = 0;          // warp arrivals at block barriers
  // Only in code compiled with hooks at basic blocks (docs/simulated-gpu.md): basic blocks that
  // warps entered, and the active lanes on entry; executions of branches that took both directions
  // during the launch, and those executions that diverged.
  std::uint64_t basic_blocks = 0;
  std::uint64_t basic_block_lanes = 0;
  std::uint64_t branches = 0;
  std::uint64_t divergent_branches = 0;

  // Cache model (cache_replay.hpp), in sectors; evictions are in lines.
  std::uint64_t l1_load_hits = 0;   // of global_load_sectors
  std::uint64_t l1_store_hits = 0;  // of global_store_sectors
  std::uint64_t l1_evictions = 0;
  std::uint64_t l2_sectors = 0;  // loads that miss L1, stores, and atomics
  std::uint64_t l2_hits = 0;
  std::uint64_t l2_evictions = 0;
  std::uint64_t dram_read_bytes = 0;
  std::uint64_t dram_write_bytes = 0;  // lines evicted from L2

  // Copies and tensor core products, whose accesses are not requests of a warp.
  std::uint64_t bulk_copies = 0;        // bulk and tensor copies, stores and reductions
  std::uint64_t bulk_load_bytes = 0;    // from global to shared memory
  std::uint64_t bulk_store_bytes = 0;   // from shared to global memory
  std::uint64_t matrix_products = 0;    // wmma and mma.sync per warp, wgmma per warpgroup
  std::uint64_t matrix_operations = 0;  // 2 m n k per product

  [[nodiscard]] std::uint64_t requests() const {
    return global_load_requests + global_store_requests + shared_load_requests +
           shared_store_requests + atomic_requests + shared_atomic_requests + constant_requests +
           texture_requests;
  }
  RUNG_API Counters& operator+=(const Counters& other);
};

/// Arithmetic of all launched threads, counted in the machine code that g++ generated for this CPU
/// (accuracy: docs/simulated-gpu.md). Tensor core operations are in Counters::matrix_operations.
struct Arithmetic {
  std::uint64_t additions = 0;  // floating-point additions and subtractions
  std::uint64_t multiplications = 0;
  std::uint64_t divisions = 0;  // floating-point divisions and square roots
  std::uint64_t f64 = 0;        // double-precision operations among these
  std::uint64_t functions = 0;  // calls of expf, sinf ...
  std::uint64_t integer = 0;    // integer operations, including logic, shifts and addresses

  /// Returns the floating-point operations; a fused multiply-add counts as two.
  [[nodiscard]] std::uint64_t operations() const { return additions + multiplications + divisions; }
  [[nodiscard]] bool any() const { return operations() + functions + integer != 0; }
  RUNG_API Arithmetic& operator+=(const Arithmetic& other);
  /// Returns the arithmetic of `times` repetitions.
  RUNG_API Arithmetic operator*(std::uint64_t times) const;
};

struct Line {
  std::string file;
  int line = 0;
  Counters counters;
  Arithmetic arithmetic;  // floating-point only; integers are reported per kernel
  // False if lanes diverged in a loop: the grouping of their accesses into requests is then an
  // estimate (docs/simulated-gpu.md).
  bool exact = true;
};

/// Totals of whole launches.
struct Work {
  std::uint64_t warps = 0;
  std::uint64_t divergent_warps = 0;  // warps that diverged at some branch
  // Compulsory traffic of global memory in bytes of whole sectors: the minimum for any cache size.
  // Per launch; excludes bulk and tensor copies.
  std::uint64_t distinct_load_bytes = 0;
  std::uint64_t distinct_store_bytes = 0;
  // Dirty bytes in L2 at the end of a launch, according to the cache model.
  std::uint64_t dirty_bytes = 0;
  bool caches_known = true;    // false: a launch was too large to replay
  std::uint64_t l1_bytes = 0;  // L1 size per SM without shared memory; last launch
  // Basic blocks entered by warps: total, of the busiest thread block, of the busiest warp; and the
  // ratio of busiest to mean in the launch with the worst balance. 0: unknown.
  std::uint64_t visits = 0;
  std::uint64_t longest_block = 0, longest_warp = 0;
  double block_imbalance = 0, warp_imbalance = 0;
  Counters totals;
  Arithmetic arithmetic;
  Waits waits;
};
struct LaunchWork : Work {
  dialect::dim3 grid, block;
  std::uint64_t shared_bytes = 0;
};

/// Totals of all recorded launches of one kernel.
struct Kernel : Work {
  std::string name;
  std::uint64_t launches = 0;
  std::uint64_t unrecorded_launches = 0;  // excluded from all other figures
  std::uint64_t blocks = 0;
  std::uint64_t threads = 0;
  std::uint64_t block_threads = 0;  // maximum over all launches
  std::uint64_t shared_bytes = 0;   // per block, dynamic and static; maximum over all launches
  // True if binutils are installed and the kernel has hooks at its basic blocks.
  bool arithmetic_known = false;
  // False if some counts are estimates, because code lacks hooks.
  bool arithmetic_exact = true;
  std::vector<Line> lines;  // by file and line
  static constexpr std::size_t max_listed = 64;
  std::vector<LaunchWork> each;  // the first launches only

  /// Returns the mean number of active lanes per request.
  [[nodiscard]] double active_lanes() const {
    const auto requests = static_cast<double>(totals.requests());
    return requests == 0 ? 0 : static_cast<double>(totals.active_lanes) / requests;
  }
  /// Returns smsp__thread_inst_executed_per_inst_executed.ratio over the recorded instructions
  /// (requests, and one instruction per basic block entered by a warp); 0 if none were recorded.
  [[nodiscard]] double lanes_per_instruction() const {
    const auto seen = static_cast<double>(totals.requests() + totals.basic_blocks);
    const auto lanes = static_cast<double>(totals.active_lanes + totals.basic_block_lanes);
    return seen == 0 ? 0 : lanes / seen;
  }
  /// Returns the fraction of branches that did not diverge; 1 if there were none.
  [[nodiscard]] double branch_efficiency() const {
    if (totals.branches == 0) return 1;
    const auto parted = static_cast<double>(totals.divergent_branches);
    return 1 - parted / static_cast<double>(totals.branches);
  }
  /// Returns the ratio of bytes read from shared memory to bytes loaded from global memory; 0 if
  /// none were loaded.
  [[nodiscard]] double reuse() const {
    const auto loaded = static_cast<double>(totals.global_load_bytes + totals.bulk_load_bytes);
    return loaded == 0 ? 0 : static_cast<double>(totals.shared_load_bytes) / loaded;
  }
};

}  // namespace rung::simt::record
