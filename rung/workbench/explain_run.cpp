// SPDX-License-Identifier: Apache-2.0
// Running a rung under the simulated GPU's counters.
#include <fmt/format.h>

#include <algorithm>

#include "rung/workbench/bench.hpp"
#include "rung/workbench/explain.hpp"
#include "rung/workbench/recording.hpp"

namespace rung::workbench {
namespace {

#if defined(RUNG_WATCHES)

void count(Explained& one, Instance& instance) {
  Context context = Context::on(Backend::simt);
  if (const Support takes = instance.supports(*one.rung, context); !takes) {
    one.why_not_run = fmt::format("does not take this problem: {}", takes.why);
    return;
  }
  instance.inputs.reset();
  Recording recording({.counters = true, .checks = false});
  instance.run(*one.rung, context);
  context.synchronize();
  one.kernels = recording.end().kernels;
  for (const simt::record::Kernel& kernel : one.kernels) {
    one.total.launches += kernel.launches;
    one.total.blocks += kernel.blocks;
    one.total.threads += kernel.threads;
    one.total.shared_bytes = std::max(one.total.shared_bytes, kernel.shared_bytes);
    one.total.warps += kernel.warps;
    one.total.divergent_warps += kernel.divergent_warps;
    one.total.totals += kernel.totals;
    one.total.distinct_load_bytes += kernel.distinct_load_bytes;
    one.total.distinct_store_bytes += kernel.distinct_store_bytes;
    one.total.dirty_bytes += kernel.dirty_bytes;
    one.total.arithmetic += kernel.arithmetic;
  }
}

#else

void count(Explained& one, Instance&) {
  one.why_not_run = "this program was built without the simulated GPU's counters";
}

#endif

}  // namespace

Explained explain_rung(const RungInfo& rung, const Problem& problem, Instance& instance) {
  Explained one;
  one.rung = &rung;
  one.problem = problem;
  if (const auto source = find_source(std::string(rung.file))) {
    one.header = parse_rung_header(*source);
  }
  one.compulsory = instance.cost();
  one.declared = instance.traffic(rung);
  if (!rung.declares_traffic) one.declared.bytes = 0;
  one.written = written_share(instance);
  if (rung.backend == Backend::simt) {
    count(one, instance);
  } else {
    one.why_not_run =
        rung.backend == Backend::cpu ? "a CPU has no such counters" : "counted on simt alone";
  }
  return one;
}

const RungInfo* rung_before(const AnyOperator& op, const RungInfo& rung) {
  const RungInfo* before = nullptr;
  for (const RungInfo* one : op.rungs()) {
    if (one->backend != rung.backend || one->peer || one == &rung) continue;
    if (one->name == rung.after) return one;
    if (one->step < rung.step) before = one;  // they are sorted by step
  }
  return rung.peer ? nullptr : before;
}

double counted_bytes(const simt::record::Counters& c) {
  constexpr double sector = 32;
  const std::uint64_t sectors = c.global_load_sectors + c.global_store_sectors + c.atomic_sectors;
  return sector * static_cast<double>(sectors) +
         static_cast<double>(c.bulk_load_bytes + c.bulk_store_bytes);
}

namespace {

double shared_wavefronts(const simt::record::Counters& c) {
  return static_cast<double>(c.shared_load_wavefronts + c.shared_store_wavefronts +
                             c.shared_atomic_wavefronts);
}

/// One for each request, and for each four sectors, which are 128 bytes.
double l1_wavefronts(const simt::record::Counters& c) {
  const auto of = [](std::uint64_t requests, std::uint64_t sectors) {
    return std::max(static_cast<double>(requests), static_cast<double>(sectors) / 4);
  };
  return of(c.global_load_requests, c.global_load_sectors) +
         of(c.global_store_requests, c.global_store_sectors) +
         of(c.atomic_requests, c.atomic_sectors);
}

}  // namespace

std::vector<Position> positions(const Explained& one) {
  std::vector<Position> all = {{"compulsory", "that must move", one.compulsory},
                               {"declared", "declared by the rung", one.declared}};
  if (one.counted()) {
    const simt::record::Kernel& total = one.total;
    const double shared = shared_wavefronts(total.totals);
    const double l1 = l1_wavefronts(total.totals);
    const auto distinct =
        static_cast<double>(total.distinct_load_bytes + total.distinct_store_bytes);
    all.push_back({each_sector_once,
                   "counted, each sector once",
                   {std::max(one.compulsory.bytes, distinct), one.declared.operations},
                   shared,
                   l1});
    all.push_back({"counted",
                   "counted, were nothing cached",
                   {counted_bytes(total.totals), one.declared.operations},
                   shared,
                   l1});
  }
  std::erase_if(all, [](const Position& p) { return p.cost.bytes <= 0; });
  return all;
}

AtBest at_best(const Position& position, const Chip& chip) {
  AtBest best{.seconds = bench::seconds_at_best(position.cost, chip.ceiling)};
  if (best.seconds <= 0) return best;
  best.by_memory = bench::bound_by_memory(position.cost, chip.ceiling);
  best.bound = best.by_memory ? chip.ceiling.memory : "arithmetic";
  if (chip.cycles_per_second <= 0) return best;
  const double wavefronts = position.shared_wavefronts + position.l1_wavefronts;
  if (wavefronts <= best.seconds * chip.cycles_per_second) return best;
  return {.seconds = wavefronts / chip.cycles_per_second,
          .bound = position.shared_wavefronts >= position.l1_wavefronts ? "shared memory" : "L1"};
}

AtBest at_best(const Explained& one) {
  const std::vector<Position> all = positions(one);
  if (all.empty()) return {};
  const auto once = std::find_if(all.begin(), all.end(), [](const Position& p) {
    return std::string_view(p.key) == each_sector_once;
  });
  return at_best(once != all.end() ? *once : all.back(), one.chip);
}

}  // namespace rung::workbench
