// SPDX-License-Identifier: Apache-2.0
// What recording counts: events by line, launch and kernel. Part of rung/simt/record.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rung/core/export.hpp"
#include "rung/simt/record/waits.hpp"
#include "rung/simt/types.hpp"

namespace rung::simt::record {

/// Counted events, named after Nsight Compute's. A request is one instruction of one warp.
struct Counters {
  std::uint64_t global_load_requests = 0;   // l1tex__t_requests_pipe_lsu_mem_global_op_ld
  std::uint64_t global_load_sectors = 0;    // l1tex__t_sectors_pipe_lsu_mem_global_op_ld, of 32 B
  std::uint64_t global_store_requests = 0;  // ..._op_st
  std::uint64_t global_store_sectors = 0;
  std::uint64_t global_load_bytes = 0;  // that the threads asked for
  std::uint64_t global_store_bytes = 0;
  // Bytes of those sectors that any lane asked for, each once per request.
  std::uint64_t global_load_used_bytes = 0;
  std::uint64_t global_store_used_bytes = 0;
  std::uint64_t shared_load_requests = 0;
  std::uint64_t shared_load_wavefronts = 0;  // l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld
  std::uint64_t shared_store_requests = 0;
  std::uint64_t shared_store_wavefronts = 0;
  // Wavefronts that another layout would not need: l1tex__data_bank_conflicts_pipe_lsu_mem_shared.
  std::uint64_t shared_load_conflicts = 0;
  std::uint64_t shared_store_conflicts = 0;
  std::uint64_t shared_load_bytes = 0;
  std::uint64_t shared_store_bytes = 0;
  std::uint64_t atomic_requests = 0;  // on global memory
  std::uint64_t atomic_sectors = 0;
  std::uint64_t atomic_bytes = 0;
  std::uint64_t atomic_rounds =
      0;  // lanes on the address that most share, summed over the requests
  std::uint64_t shared_atomic_requests = 0;
  std::uint64_t shared_atomic_wavefronts = 0;
  std::uint64_t shared_atomic_bytes = 0;
  std::uint64_t shared_atomic_rounds = 0;
  std::uint64_t constant_requests = 0;
  std::uint64_t constant_bytes = 0;
  std::uint64_t constant_rounds = 0;   // addresses that differ, summed over the requests
  std::uint64_t texture_requests = 0;  // fetches from textures
  std::uint64_t local_requests = 0;    // arrays of a thread that do not fit its registers
  std::uint64_t local_bytes = 0;       // that they were asked for, reads and writes
  std::uint64_t active_lanes = 0;      // lanes that took part in all these requests
  std::uint64_t barriers = 0;          // warps that came to a barrier of their block
  // Only of code that is compiled to tell (docs/simulated-gpu.md): basic blocks that warps entered,
  // and lanes in them; branches that warps came to, of those that went both ways in this launch;
  // and those at which a warp's lanes parted.
  std::uint64_t basic_blocks = 0;
  std::uint64_t basic_block_lanes = 0;
  std::uint64_t branches = 0;
  std::uint64_t divergent_branches = 0;

  // By the model of the caches (cache_replay.hpp), in sectors; evictions are of lines.
  std::uint64_t l1_load_hits = 0;   // of global_load_sectors
  std::uint64_t l1_store_hits = 0;  // of global_store_sectors
  std::uint64_t l1_evictions = 0;
  std::uint64_t l2_sectors = 0;  // loads that miss L1, stores and atomics
  std::uint64_t l2_hits = 0;
  std::uint64_t l2_evictions = 0;
  std::uint64_t dram_read_bytes = 0;
  std::uint64_t dram_write_bytes = 0;  // of lines that were evicted from L2

  // By the copy engine and the tensor cores, which are no requests of a warp.
  std::uint64_t bulk_copies = 0;        // bulk and tensor copies, stores and reductions
  std::uint64_t bulk_load_bytes = 0;    // from global memory, that land in shared memory
  std::uint64_t bulk_store_bytes = 0;   // of shared memory, that go to global memory
  std::uint64_t matrix_products = 0;    // wmma and mma.sync of a warp, wgmma of a warpgroup
  std::uint64_t matrix_operations = 0;  // 2 m n k of each

  [[nodiscard]] std::uint64_t requests() const {
    return global_load_requests + global_store_requests + shared_load_requests +
           shared_store_requests + atomic_requests + shared_atomic_requests + constant_requests +
           texture_requests;
  }
  RUNG_API Counters& operator+=(const Counters& other);
};

/// Arithmetic of all launched threads, as g++ compiled it for this CPU: docs/simulated-gpu.md says
/// how exact that is. Tensor cores are Counters::matrix_operations.
struct Arithmetic {
  std::uint64_t additions = 0;  // floating: subtractions too
  std::uint64_t multiplications = 0;
  std::uint64_t divisions = 0;  // and square roots
  std::uint64_t f64 = 0;        // of those, how many in double precision
  std::uint64_t functions = 0;  // calls of expf, sinf ...
  std::uint64_t integer = 0;    // whole numbers: logic, shifts and addresses too

  /// Floating operations; a multiply-add is two.
  [[nodiscard]] std::uint64_t operations() const { return additions + multiplications + divisions; }
  [[nodiscard]] bool any() const { return operations() + functions + integer != 0; }
  RUNG_API Arithmetic& operator+=(const Arithmetic& other);
  /// Returns the arithmetic of so many repetitions.
  RUNG_API Arithmetic operator*(std::uint64_t times) const;
};

struct Line {
  std::string file;
  int line = 0;
  Counters counters;
  Arithmetic arithmetic;  // without whole numbers, which are told of kernels alone
  // False: lanes went different ways round a loop, so that which of their accesses made one request
  // is a guess (docs/simulated-gpu.md).
  bool exact = true;
};

/// Counts of whole launches.
struct Work {
  std::uint64_t warps = 0;
  std::uint64_t divergent_warps = 0;  // their lanes parted at some branch
  // Of global memory, what was read or written at all, in sectors: what memory has to move however
  // large the caches. Of each launch by itself; bulk and tensor copies are not in it.
  std::uint64_t distinct_load_bytes = 0;
  std::uint64_t distinct_store_bytes = 0;
  // What is written and still in L2 at a launch's end; by the model of the caches.
  std::uint64_t dirty_bytes = 0;
  bool caches_known = true;    // false: a launch was too large to be replayed
  std::uint64_t l1_bytes = 0;  // of an SM, beside the shared memory; of the last launch
  // Basic blocks that warps entered: in all, by the busiest block of threads, by the busiest warp;
  // and those over the mean, of the launch that is worst off. 0: not known.
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

/// All recorded launches of one kernel.
struct Kernel : Work {
  std::string name;
  std::uint64_t launches = 0;
  std::uint64_t unrecorded_launches = 0;  // which nothing else here includes
  std::uint64_t blocks = 0;
  std::uint64_t threads = 0;
  std::uint64_t block_threads = 0;  // the largest of all launches
  std::uint64_t shared_bytes = 0;   // of a block, dynamic and static; likewise
  bool arithmetic_known = false;    // binutils are there, and the kernel has hooks at its blocks
  bool arithmetic_exact = true;     // false: some code has no hook, and its visits are an estimate
  std::vector<Line> lines;          // by file and line
  static constexpr std::size_t max_listed = 64;
  std::vector<LaunchWork> each;  // of the first launches

  /// Lanes that take part in a request, the mean.
  [[nodiscard]] double active_lanes() const {
    const auto requests = static_cast<double>(totals.requests());
    return requests == 0 ? 0 : static_cast<double>(totals.active_lanes) / requests;
  }
  /// smsp__thread_inst_executed_per_inst_executed.ratio of the instructions that are seen: the
  /// requests, and one for each basic block that a warp enters. 0: none was seen.
  [[nodiscard]] double lanes_per_instruction() const {
    const auto seen = static_cast<double>(totals.requests() + totals.basic_blocks);
    const auto lanes = static_cast<double>(totals.active_lanes + totals.basic_block_lanes);
    return seen == 0 ? 0 : lanes / seen;
  }
  /// The share of branches that a warp's lanes went the same way; 1 when there were none.
  [[nodiscard]] double branch_efficiency() const {
    if (totals.branches == 0) return 1;
    const auto parted = static_cast<double>(totals.divergent_branches);
    return 1 - parted / static_cast<double>(totals.branches);
  }
  /// How often a byte that was loaded from global memory is read from shared memory; 0: none was.
  [[nodiscard]] double reuse() const {
    const auto loaded = static_cast<double>(totals.global_load_bytes + totals.bulk_load_bytes);
    return loaded == 0 ? 0 : static_cast<double>(totals.shared_load_bytes) / loaded;
  }
};

}  // namespace rung::simt::record
