// SPDX-License-Identifier: Apache-2.0
// JSON output of `rung explain --json`.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "rung/workbench/explain.hpp"
#include "rung/workbench/recording.hpp"
#include "rung/workbench/registers.hpp"
#include "rung/workbench/selection.hpp"

namespace rung::workbench {
namespace {

using nlohmann::ordered_json;

ordered_json known(double value) { return value > 0 ? ordered_json(value) : ordered_json(); }

ordered_json roofline(const Explained& one) {
  ordered_json points = ordered_json::array();
  for (const Position& p : positions(one)) {
    const AtBest best = at_best(p, one);
    points.push_back(
        {{"bytes_are", p.key},
         {"bytes", p.cost.bytes},
         {"operations", p.cost.operations},
         {"operations_per_byte", p.intensity()},
         {"seconds_at_best", known(best.seconds)},
         {"operations_per_second_at_best",
          best.seconds > 0 ? ordered_json(p.cost.operations / best.seconds) : ordered_json()},
         {"bound_by", best.bound},
         {"bound_by_memory", best.by_memory}});
  }
  return points;
}

/// Returns the bound; null if nothing was counted.
ordered_json bound_to_json(const Explained& one) {
  const std::optional<bench::Bound> bound = bound_of(one);
  if (!bound) return {};
  ordered_json roofs = ordered_json::object();
  for (std::size_t i = 0; i < bench::roof_count; ++i) {
    roofs[std::string(to_string(static_cast<bench::Roof>(i)))] = bound->seconds[i];
  }
  ordered_json work = ordered_json::array();
  for (const bench::CountedWork& kernel : counted_work(one)) {
    work.push_back({{"launches", kernel.launches},
                    {"blocks", kernel.blocks},
                    {"blocks_per_multiprocessor", kernel.blocks_per_sm},
                    {"instructions", kernel.instructions},
                    {"shared_wavefronts", kernel.shared_wavefronts},
                    {"l1_wavefronts", kernel.l1_wavefronts},
                    {"l1_lines", kernel.lines},
                    {"l2_store_sectors", kernel.store_sectors},
                    {"memory_trips", kernel.memory_trips},
                    {"cache_trips", kernel.cache_trips},
                    {"shared_trips", kernel.shared_trips},
                    {"barriers", kernel.barriers},
                    {"exchanges", kernel.exchanges}});
  }
  return {{"problem", (one.at ? *one.at : one.problem).to_string()},
          {"extrapolated", one.at.has_value()},
          {"seconds", bound->total},
          {"bound_by", to_string(bound->by)},
          {"waves", one.at ? ordered_json(bound->waves) : ordered_json()},
          {"roofs", roofs},
          {"kernels", work}};
}

ordered_json chip_to_json(const Chip& chip) {
  return {
      {"name", chip.name},
      {"bytes_per_second", known(chip.ceiling.bytes_per_second)},
      {"operations_per_second", known(chip.ceiling.operations_per_second)},
      {"of", chip.ceiling.arithmetic},
      {"wavefronts_per_second", known(chip.pace.cycles_per_second * chip.pace.multiprocessors)}};
}

/// Returns the kernels in the recorder's format, with resource usage from ptxas or null.
ordered_json kernels_with_usage(const Explained& one) {
  ordered_json kernels = kernels_to_json(one.kernels);
  for (ordered_json& kernel : kernels) {
    const KernelUsage* const usage = find_usage(kernel.at("name"), one.chip.capability());
    kernel["registers"] = ordered_json();
    if (usage == nullptr) continue;
    kernel["registers"] = {{"compute_capability", bench::capability_name(usage->capability)},
                           {"per_thread", usage->registers},
                           {"stack_bytes", usage->stack_bytes},
                           {"spill_store_bytes", usage->spill_store_bytes},
                           {"spill_load_bytes", usage->spill_load_bytes}};
  }
  return kernels;
}

ordered_json one_to_json(const AnyOperator& op, const Explained& one) {
  const RungInfo& rung = *one.rung;
  ordered_json header = ordered_json::object();
  for (const RungHeader::Field& field : one.header.fields) header[field.name] = field.text;
  ordered_json counters = ordered_json::object();
  if (one.counted()) {
    for (const Metric& metric : metrics()) counters[metric.key] = metric.of(one.total);
    counters["global_bytes"] = counted_bytes(one.total.totals);
  }
  const RungInfo* before = rung_before(op, rung);
  return {
      {"rung", rung.name},
      {"step", rung.step},
      {"kind", kind_name(rung)},
      {"backend", to_string(rung.backend)},
      {"file", rung.file},
      {"problem", one.problem.to_string()},
      {"before", before != nullptr ? ordered_json(before->name) : ordered_json()},
      {"header", header},
      {"compulsory", {{"bytes", one.compulsory.bytes}, {"operations", one.compulsory.operations}}},
      {"declared", {{"bytes", known(one.declared.bytes)}, {"operations", one.declared.operations}}},
      {"counted", one.counted()},
      {"why_not", one.why_not_run},
      {"counters", counters},
      {"chip", chip_to_json(one.chip)},
      {"roofline", roofline(one)},
      {"bound", bound_to_json(one)},
      {"times_the_rung_before", known(one.gain)},
      {"kernels", kernels_with_usage(one)}};
}

}  // namespace

nlohmann::json kernels_to_json(const std::vector<simt::record::Kernel>& kernels) {
#if defined(RUNG_WATCHES)
  simt::record::Report report;
  report.kernels = kernels;
  return nlohmann::json::parse(simt::record::to_json(report)).at("kernels");
#else
  static_cast<void>(kernels);
  return nlohmann::json::array();
#endif
}

std::string explain_json(const AnyOperator& op, const Problem& problem,
                         const std::vector<Explained>& rungs) {
  ordered_json all = ordered_json::array();
  for (const Explained& one : rungs) all.push_back(one_to_json(op, one));
  const auto first = std::find_if(rungs.begin(), rungs.end(),
                                  [&](const Explained& one) { return one.problem == problem; });
  const ordered_json json = {
      {"op", op.name()},
      {"problem", problem.to_string()},
      {"chip", chip_to_json(first != rungs.end() ? first->chip : rungs.front().chip)},
      {"rungs", all}};
  return json.dump(2);
}

}  // namespace rung::workbench
