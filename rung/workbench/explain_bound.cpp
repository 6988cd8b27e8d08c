// SPDX-License-Identifier: Apache-2.0
// The bound of `rung explain`: converts counters to work, and work to the least time.
#include <algorithm>

#include "rung/core/error.hpp"
#include "rung/workbench/explain.hpp"
#include "rung/workbench/registers.hpp"

namespace rung::workbench {
namespace {

using bench::CountedWork;
using simt::record::Kernel;

double real(std::uint64_t count) { return static_cast<double>(count); }

/// Returns the wavefronts of L1 data: a wavefront moves up to four sectors (128 bytes), and a
/// request needs at least one.
double l1_wavefronts(const simt::record::Counters& c) {
  const auto of = [](std::uint64_t requests, std::uint64_t sectors) {
    return std::max(real(requests), real(sectors) / 4);
  };
  return of(c.global_load_requests, c.global_load_sectors) +
         of(c.global_store_requests, c.global_store_sectors) +
         of(c.atomic_requests, c.atomic_sectors);
}

/// Figures scaled with the counted problem's growth. Operations come from the operator instead.
constexpr double CountedWork::*growing[] = {
    &CountedWork::bytes,         &CountedWork::blocks,
    &CountedWork::instructions,  &CountedWork::shared_wavefronts,
    &CountedWork::l1_wavefronts, &CountedWork::lines,
    &CountedWork::store_sectors, &CountedWork::memory_trips,
    &CountedWork::cache_trips,   &CountedWork::shared_trips,
    &CountedWork::barriers,      &CountedWork::exchanges};

void grow(CountedWork& work, const Kernel& kernel, const std::vector<Explained::Doubled>& all) {
  const CountedWork base = work;
  for (const Explained::Doubled& one : all) {
    const auto same = std::find_if(one.kernels.begin(), one.kernels.end(),
                                   [&](const Kernel& k) { return k.name == kernel.name; });
    if (same == one.kernels.end()) {  // unsupported: assume proportional growth
      for (double CountedWork::*const field : growing) work.*field *= one.ratio;
      continue;
    }
    const CountedWork twice = work_of(*same);
    for (double CountedWork::*const field : growing) {
      if (base.*field <= 0) continue;
      const double growth = twice.*field / (base.*field) - 1;  // 1: doubles
      work.*field *= std::max(1 + growth * (one.ratio - 1), 0.0);
    }
  }
}

double blocks_per_sm(const Kernel& kernel, const Chip& chip) {
  if (chip.multiprocessor == nullptr) return 1;
  const KernelUsage* const usage = find_usage(kernel.name, chip.capability());
  try {
    return bench::occupancy(*chip.multiprocessor,
                            {.threads = static_cast<int>(kernel.block_threads),
                             .registers = usage != nullptr ? usage->registers : 0,
                             .shared_bytes = static_cast<int>(kernel.shared_bytes)})
        .blocks;
  } catch (const Error&) {
    return 1;  // the block does not fit this chip
  }
}

}  // namespace

CountedWork work_of(const Kernel& kernel) {
  const simt::record::Counters& c = kernel.totals;
  const simt::record::Waits& w = kernel.waits;
  CountedWork work;
  work.launches = real(kernel.launches);
  work.blocks = real(kernel.blocks);
  work.warps_per_block = kernel.blocks == 0 ? 1 : real(kernel.warps) / real(kernel.blocks);
  work.bytes = real(kernel.distinct_load_bytes + kernel.distinct_store_bytes);
  work.instructions = real(c.requests()) - real(w.merged_requests) + real(c.barriers);
  work.shared_wavefronts =
      real(w.merged_load_wavefronts) + real(c.shared_store_wavefronts + c.shared_atomic_wavefronts);
  work.l1_wavefronts = l1_wavefronts(c);
  work.lines = real(w.lines);
  work.store_sectors = real(c.global_store_sectors + c.atomic_sectors);
  work.memory_trips = real(w.longest.memory);
  work.cache_trips = real(w.longest.cache);
  work.shared_trips = real(w.longest.shared);
  work.barriers = real(w.longest.barriers);
  work.exchanges = real(w.longest.exchanges);
  return work;
}

std::vector<CountedWork> counted_work(const Explained& one) {
  std::vector<CountedWork> all;
  if (!one.counted()) return all;
  std::vector<double> bytes_counted;  // per kernel
  for (const Kernel& kernel : one.kernels) {
    all.push_back(work_of(kernel));
    bytes_counted.push_back(all.back().bytes);
    grow(all.back(), kernel, one.doubled);
    all.back().blocks_per_sm = blocks_per_sm(kernel, one.chip);
  }
  if (all.empty()) return all;
  CountedWork& largest = *std::max_element(
      all.begin(), all.end(),
      [](const CountedWork& a, const CountedWork& b) { return a.instructions < b.instructions; });
  if (one.at) {
    // The product of the growths by each extent overestimates the traffic of several matrices, of
    // which each has only some of the extents: clamp to the growth of the compulsory bytes.
    const double most = one.cost_at.bytes / one.compulsory.bytes;
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].bytes = std::min(all[i].bytes, most * bytes_counted[i]);
    }
  }
  // Distinct sectors do not include bulk copies: raise the bytes to the compulsory ones.
  const double must_move = one.at ? one.cost_at.bytes : one.compulsory.bytes;
  double moved = 0;
  for (const CountedWork& work : all) moved += work.bytes;
  largest.bytes += std::max(must_move - moved, 0.0);
  largest.operations = one.at ? one.cost_at.operations : one.declared.operations;
  const std::string& element = one.chip.ceiling.element;
  if (one.total.totals.matrix_operations == 0 && (element == "f32" || element == "f64")) {
    constexpr double lanes = 32, of_a_multiply_add = 2;
    largest.instructions += largest.operations / (lanes * of_a_multiply_add);
  }
  return all;
}

std::optional<bench::Bound> bound_of(const Explained& one) {
  const std::vector<CountedWork> all = counted_work(one);
  bench::GpuPace pace = one.chip.pace;
  pace.bytes_per_second = one.chip.ceiling.bytes_per_second;
  pace.operations_per_second = one.chip.ceiling.operations_per_second;
  if (all.empty() || pace.cycles_per_second <= 0) return std::nullopt;
  bench::Bound bound;
  for (const CountedWork& work : all) {
    bound += bench::bound_of(work, pace, one.at ? bench::GridSize::as_is : bench::GridSize::large);
  }
  return bound;
}

AtBest at_best(const Position& position, const Explained& one) {
  const bench::Ceiling& ceiling = one.chip.ceiling;
  AtBest best{.seconds = bench::seconds_at_best(position.cost, ceiling)};
  best.by_memory = bench::bound_by_memory(position.cost, ceiling);
  best.bound = best.by_memory ? ceiling.memory : "arithmetic";
  const std::string_view bytes_are = position.key;
  if (bytes_are != each_sector_once && bytes_are != counted_sectors) return best;
  const std::optional<bench::Bound> bound = bound_of(one);
  if (!bound || (bytes_are == counted_sectors && best.seconds >= bound->total)) return best;
  return {.seconds = bound->total,
          .bound = std::string(to_string(bound->by)),
          .by_memory = bound->by == bench::Roof::memory};
}

AtBest at_best(const Explained& one) {
  const std::vector<Position> all = positions(one);
  if (all.empty()) return {};
  const auto once = std::find_if(all.begin(), all.end(), [](const Position& p) {
    return std::string_view(p.key) == each_sector_once;
  });
  return at_best(once != all.end() ? *once : all.back(), one);
}

}  // namespace rung::workbench
