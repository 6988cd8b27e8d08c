// SPDX-License-Identifier: Apache-2.0
// Lower bound on the time of counted work on a GPU: one bound (roof) per hardware unit, and one for
// the chain of latencies within a block. The largest is the bottleneck.
#pragma once

#include <array>
#include <string_view>

#include "rung/bench/machine.hpp"

namespace rung::bench {

/// Rates and latencies of a GPU. 0: unknown, no bound.
struct GpuPace {
  double multiprocessors = 0;
  double cycles_per_second = 0;
  double bytes_per_second = 0;       // memory bandwidth
  double operations_per_second = 0;  // rate of the arithmetic that the problem allows
  double schedulers = 4;             // per SM: each issues one warp instruction per cycle
  double port_bytes = 64;            // per cycle, between an SM and L2
  double l2_store_sectors = 0;       // per cycle, from all SMs
  double cycles_per_block = 0;       // between the starts of two blocks, over all SMs
  // Latencies in cycles.
  struct Latency {
    double block = 0, block_per_warp = 0;  // of an empty block that replaces a finished one
    double memory = 0, cache = 0, shared = 0;
    double barrier = 0, barrier_per_warp = 0;
    double exchange = 0;  // a shuffle
  } latency;
};
/// Adds the rates and latencies measured for a compute capability (90 for 9.0), if there are any.
void add_measured_pace(GpuPace& pace, int capability);
/// Returns the pace of a GPU except for its memory and arithmetic rates: number of SMs, the clock
/// at which the FMA units reach the GPU's f32 rate, and the measured values of its compute
/// capability.
GpuPace pace_of(const Gpu& gpu);

/// Counts of all launches of a kernel.
struct CountedWork {
  double launches = 1, blocks = 0;
  double warps_per_block = 1;
  double blocks_per_sm = 1;  // resident at once
  double bytes = 0;          // compulsory memory traffic
  double operations = 0;
  double instructions = 0;  // known instructions: loads, stores, barriers, multiply-adds
  double shared_wavefronts = 0;
  double l1_wavefronts = 0;  // data of global memory
  double lines = 0;          // tag lookups in L1
  double store_sectors = 0;  // stores and atomics, which bypass L1
  // Counts of the longest warp of each block, summed over the blocks.
  double memory_trips = 0, cache_trips = 0, shared_trips = 0, barriers = 0, exchanges = 0;
};

/// A possible bottleneck; index of Bound::seconds.
enum class Roof { memory, arithmetic, issue, shared_memory, l1, l2, launches, latency };
inline constexpr std::size_t roof_count = 8;
std::string_view to_string(Roof roof);

/// `as_is`: SMs may be idle in the last wave. `large`: the blocks are part of a grid that keeps all
/// SMs busy.
enum class GridSize { as_is, large };

struct Bound {
  std::array<double, roof_count> seconds{};  // by Roof
  double total = 0;                          // the largest, summed over kernels
  Roof by = Roof::memory;                    // the bottleneck
  double waves = 0;                          // blocks / blocks resident at once

  [[nodiscard]] double of(Roof roof) const { return seconds[static_cast<std::size_t>(roof)]; }
  /// Adds a kernel that runs after the others; `by` becomes the bottleneck of the slowest kernel.
  Bound& operator+=(const Bound& next);

 private:
  double slowest_ = 0;
  friend Bound bound_of(const CountedWork& work, const GpuPace& pace, GridSize size);
};
Bound bound_of(const CountedWork& work, const GpuPace& pace, GridSize size);

}  // namespace rung::bench
