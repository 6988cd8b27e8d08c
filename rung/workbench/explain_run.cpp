// SPDX-License-Identifier: Apache-2.0
// Runs a rung under the simulated GPU's counters.
#include <fmt/format.h>

#include <algorithm>

#include "rung/core/error.hpp"
#include "rung/workbench/bench.hpp"
#include "rung/workbench/explain.hpp"
#include "rung/workbench/recording.hpp"

namespace rung::workbench {
namespace {

void refuse(Explained& one, const std::string& why) {
  one.refused = true;
  one.why_not_run = "does not take this problem: " + why;
}

#if defined(RUNG_WATCHES)

void count(Explained& one, Instance& instance) {
  Context context = Context::on(Backend::simt);
  if (const Support takes = instance.supports(*one.rung, context); !takes) {
    refuse(one, takes.why);
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
    one.total.waits += kernel.waits;
    one.total.each.insert(one.total.each.end(), kernel.each.begin(), kernel.each.end());
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
    if (rung.peer || !available(rung.backend)) return one;
    const Support takes = instance.supports(rung, Context::on(rung.backend));
    if (!takes) refuse(one, takes.why);
  }
  return one;
}

void check_simulated(const AnyOperator& op, Explained& one) {
  if (one.rung->backend != Backend::cuda || one.rung->peer || one.refused) return;
  for (const RungInfo* twin : op.rungs()) {
    if (twin->backend != Backend::simt || twin->name != one.rung->name) continue;
    const Context context = Context::on(Backend::simt);
    const Support takes = op.outline(one.problem, context)->supports(*twin, context);
    if (!takes) refuse(one, takes.why);
  }
}

const RungInfo* rung_before(const AnyOperator& op, const RungInfo& rung) {
  const RungInfo* before = nullptr;
  for (const RungInfo* one : op.rungs()) {
    if (one->backend != rung.backend || one->peer || one == &rung) continue;
    if (one->name == rung.after) return one;
    if (one->kind == rung.kind && one->step < rung.step) before = one;  // sorted by step
  }
  return rung.peer ? nullptr : before;
}

double counted_bytes(const simt::record::Counters& c) {
  constexpr double sector = 32;
  const std::uint64_t sectors = c.global_load_sectors + c.global_store_sectors + c.atomic_sectors;
  return sector * static_cast<double>(sectors) +
         static_cast<double>(c.bulk_load_bytes + c.bulk_store_bytes);
}

std::vector<Position> positions(const Explained& one) {
  if (one.at) {
    double bytes = 0;
    for (const bench::CountedWork& work : counted_work(one)) bytes += work.bytes;
    return {{"compulsory", "that must move", one.cost_at},
            {each_sector_once, "counted, each sector once", {bytes, one.cost_at.operations}}};
  }
  std::vector<Position> all = {{"compulsory", "that must move", one.compulsory},
                               {"declared", "declared by the rung", one.declared}};
  if (one.counted()) {
    const simt::record::Kernel& total = one.total;
    const auto distinct =
        static_cast<double>(total.distinct_load_bytes + total.distinct_store_bytes);
    all.push_back({each_sector_once,
                   "counted, each sector once",
                   {std::max(one.compulsory.bytes, distinct), one.declared.operations}});
    all.push_back({counted_sectors,
                   "counted, were nothing cached",
                   {counted_bytes(total.totals), one.declared.operations}});
  }
  std::erase_if(all, [](const Position& p) { return p.cost.bytes <= 0; });
  return all;
}

}  // namespace rung::workbench
