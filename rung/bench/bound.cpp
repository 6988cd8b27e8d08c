// SPDX-License-Identifier: Apache-2.0
// Lower bounds on the time of counted work.
#include "rung/bench/bound.hpp"

#include <algorithm>
#include <cmath>

#include "rung/bench/roofline.hpp"

namespace rung::bench {
namespace {

double over(double amount, double rate) { return rate > 0 ? amount / rate : 0; }

/// Returns the average number of busy SMs: fewer than all if the last wave leaves SMs idle.
double busy_multiprocessors(const CountedWork& work, const GpuPace& pace, GridSize size) {
  if (size == GridSize::large || work.blocks <= 0 || work.launches > 1) {
    return pace.multiprocessors;
  }
  return work.blocks / std::ceil(work.blocks / pace.multiprocessors);
}

/// Returns the cycles from a block's launch to the end of its longest warp, if it runs alone.
double block_cycles(const CountedWork& work, const GpuPace::Latency& latency) {
  const double trips =
      work.memory_trips * latency.memory + work.cache_trips * latency.cache +
      work.shared_trips * latency.shared + work.exchanges * latency.exchange +
      work.barriers * (latency.barrier + latency.barrier_per_warp * work.warps_per_block);
  return latency.block + latency.block_per_warp * work.warps_per_block + over(trips, work.blocks);
}

}  // namespace

void add_measured_pace(GpuPace& pace, int capability) {
  if (capability != 90) return;
  // Measured on an H200 by tools/gpu_pace.cu.
  pace.l2_store_sectors = 53;
  pace.cycles_per_block = 1.24;
  pace.latency = {.block = 300,
                  .block_per_warp = 1.9,
                  .memory = 689,
                  .cache = 41,
                  .shared = 29,
                  .barrier = 12.7,
                  .barrier_per_warp = 2,
                  .exchange = 25};
}

GpuPace pace_of(const Gpu& gpu) {
  // Each lane does one multiply-add per cycle.
  const double lanes = gpu.compute_capability <= 80 ? 64 : 128;  // 7.x, 8.0; 8.6 and newer
  GpuPace pace;
  pace.multiprocessors = gpu.multiprocessors;
  pace.cycles_per_second =
      gpu_ceiling(gpu, "f32", 0).operations_per_second / (2 * lanes * gpu.multiprocessors);
  add_measured_pace(pace, gpu.compute_capability);
  return pace;
}

std::string_view to_string(Roof roof) {
  switch (roof) {
    case Roof::memory:
      return "memory";
    case Roof::arithmetic:
      return "arithmetic";
    case Roof::issue:
      return "issue";
    case Roof::shared_memory:
      return "shared memory";
    case Roof::l1:
      return "L1";
    case Roof::l2:
      return "L2";
    case Roof::launches:
      return "launches";
    case Roof::latency:
      return "latency";
  }
  return "";
}

Bound& Bound::operator+=(const Bound& next) {
  for (std::size_t i = 0; i < roof_count; ++i) seconds[i] += next.seconds[i];
  total += next.total;
  waves = std::max(waves, next.waves);
  if (next.slowest_ > slowest_) {
    slowest_ = next.slowest_;
    by = next.by;
  }
  return *this;
}

Bound bound_of(const CountedWork& work, const GpuPace& pace, GridSize size) {
  Bound bound;
  const double busy = busy_multiprocessors(work, pace, size);
  const double idle = over(pace.multiprocessors, busy);  // slowdown by idle SMs
  const double cycles_per_second = busy * pace.cycles_per_second;
  const double capacity = pace.multiprocessors * std::max(work.blocks_per_sm, 1.0);
  bound.waves = over(work.blocks, capacity);
  const auto set = [&](Roof roof, double seconds) {
    bound.seconds[static_cast<std::size_t>(roof)] = seconds;
    if (seconds <= bound.total) return;
    bound.total = bound.slowest_ = seconds;
    bound.by = roof;
  };
  set(Roof::arithmetic, over(work.operations, pace.operations_per_second) * idle);
  set(Roof::memory, std::max(over(work.bytes, pace.bytes_per_second),
                             over(work.bytes, cycles_per_second * pace.port_bytes)));
  const double data = work.shared_wavefronts + work.l1_wavefronts;
  // L1 and shared memory are one unit; the roof is named after the larger load.
  const bool by_shared = work.shared_wavefronts >= work.l1_wavefronts;
  set(by_shared ? Roof::shared_memory : Roof::l1, over(data, cycles_per_second));
  const double l1 = std::max(by_shared ? 0 : data, work.lines);
  set(Roof::l1, over(l1, cycles_per_second));
  set(Roof::l2, over(work.store_sectors, pace.l2_store_sectors * pace.cycles_per_second));
  set(Roof::issue, over(work.instructions, cycles_per_second * pace.schedulers));
  set(Roof::launches, over(work.blocks * pace.cycles_per_block, pace.cycles_per_second));
  const bool as_is = size == GridSize::as_is && work.launches <= 1;
  const double rounds = as_is ? std::ceil(bound.waves) : bound.waves;
  set(Roof::latency, over(rounds * block_cycles(work, pace.latency), pace.cycles_per_second));
  return bound;
}

}  // namespace rung::bench
