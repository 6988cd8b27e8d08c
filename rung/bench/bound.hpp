// SPDX-License-Identifier: Apache-2.0
// The least time in which a GPU can do counted work: a roof for each unit of the chip, of which the
// slowest binds, and one for the latencies that follow each other in a block.
#pragma once

#include <array>
#include <string_view>

#include "rung/bench/machine.hpp"

namespace rung::bench {

/// Rates of a GPU per cycle, and latencies. 0: not known, and no bound.
struct GpuPace {
  double multiprocessors = 0;
  double cycles_per_second = 0;
  double bytes_per_second = 0;       // of memory
  double operations_per_second = 0;  // of the arithmetic that the problem allows
  double schedulers = 4;             // per SM: each issues one instruction of a warp per cycle
  double port_bytes = 64;            // between an SM and L2, per cycle
  double l2_store_sectors = 0;       // of all SMs, per cycle
  double cycles_per_block = 0;       // between two launches of blocks, wherever they run
  // Latencies in cycles.
  struct Latency {
    double block = 0, block_per_warp = 0;  // from the end of a block to that of an empty one
    double memory = 0, cache = 0, shared = 0;
    double barrier = 0, barrier_per_warp = 0;
    double exchange = 0;  // a shuffle
  } latency;
};
/// Adds what was measured on GPUs of this compute capability (90 for 9.0), if it was.
void add_measured_pace(GpuPace& pace, int capability);
/// Returns the pace of a GPU by its data sheet, without rates of memory and arithmetic: SMs, the
/// clock that reaches the sheet's f32 rate, and what was measured.
GpuPace pace_of(const Gpu& gpu);

/// The work of all launches of a kernel.
struct CountedWork {
  double launches = 1, blocks = 0;
  double warps_per_block = 1;
  double blocks_per_sm = 1;  // that are resident at once
  double bytes = 0;          // that memory must move
  double operations = 0;
  double instructions = 0;  // that are known: loads, stores, barriers, multiply-adds
  double shared_wavefronts = 0;
  double l1_wavefronts = 0;  // of the data of global memory
  double lines = 0;          // that L1 looks up
  double store_sectors = 0;  // stores and atomics, which go through to L2
  // In the longest warp of each block, summed over the blocks.
  double memory_trips = 0, cache_trips = 0, shared_trips = 0, barriers = 0, exchanges = 0;
};

/// A unit of the chip that can bind; the index of Bound::seconds.
enum class Roof { memory, arithmetic, issue, shared_memory, l1, l2, launches, latency };
inline constexpr std::size_t roof_count = 8;
std::string_view to_string(Roof roof);

/// `as_is`: SMs may be idle in the last wave. `large`: the blocks are part of a grid that keeps all
/// SMs busy.
enum class GridSize { as_is, large };

struct Bound {
  std::array<double, roof_count> seconds{};  // by Roof
  double total = 0;                          // the largest; of several kernels, the sum of those
  Roof by = Roof::memory;
  double waves = 0;  // blocks over those that are resident at once

  [[nodiscard]] double of(Roof roof) const { return seconds[static_cast<std::size_t>(roof)]; }
  /// Adds a kernel that runs after the others. The roof of the slowest kernel becomes that of all.
  Bound& operator+=(const Bound& next);

 private:
  double slowest_ = 0;
  friend Bound bound_of(const CountedWork& work, const GpuPace& pace, GridSize size);
};
Bound bound_of(const CountedWork& work, const GpuPace& pace, GridSize size);

}  // namespace rung::bench
