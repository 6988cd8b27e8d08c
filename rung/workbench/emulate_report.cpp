// SPDX-License-Identifier: Apache-2.0
// Occupancy and totals of the kernels of an emulated program.
#include "rung/workbench/emulate_report.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>

#include "rung/bench/occupancy.hpp"
#include "rung/core/error.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

using nlohmann::ordered_json;

/// The closest that is known and no newer, as the simulated device chooses its model.
const bench::Multiprocessor& multiprocessor(int capability) {
  const bench::Multiprocessor* best = &bench::multiprocessors().front();
  for (const bench::Multiprocessor& one : bench::multiprocessors()) {
    if (one.capability <= capability) best = &one;
  }
  return *best;
}

ordered_json occupancy_of(const ordered_json& kernel, const bench::Multiprocessor& chip) {
  const bench::BlockNeeds block{.threads = kernel.at("block_threads").get<int>(),
                                .shared_bytes = kernel.at("shared_bytes").get<int>()};
  try {
    const bench::Occupancy one = bench::occupancy(chip, block);
    ordered_json limits = {{"warps", one.by_warps}, {"blocks", one.by_blocks}};
    if (one.by_shared != bench::Occupancy::no_limit) limits["shared memory"] = one.by_shared;
    return {{"compute_capability", bench::capability_name(chip.capability)},
            {"blocks", one.blocks},
            {"warps", one.warps},
            {"occupancy", one.occupancy},
            {"limited_by", one.limited_by()},
            {"blocks_by", limits}};
  } catch (const Error&) {
    return {};  // no such block fits
  }
}

std::string number(const ordered_json& value) {
  return value.is_null() ? "-" : fmt::format("{:.3g}", value.get<double>());
}

std::string one_summary(const ordered_json& kernel) {
  const auto count = [&](const char* name) { return kernel.at(name).get<std::uint64_t>(); };
  const auto exact = [](const ordered_json& of, const char* name) {
    return whole(of.at(name).get<double>());
  };
  const ordered_json& level = kernel.at("bytes");
  const ordered_json& total = kernel.at("totals");
  const auto per_request = [&](const char* name, const char* noun) {
    return count_of(number(kernel.at(name)), noun) + " per request";
  };
  std::string text = fmt::format(
      "{}\n  {}, {} of {} at most, {}, of which {} diverged\n"
      "  active lanes {} per request, {} per instruction; branch efficiency {}\n"
      "  global memory: {} loaded, {}\n"
      "                 {} stored, {}\n"
      "                 {} moved in sectors, {} of them distinct\n",
      kernel.at("name").get<std::string>(), count_of(count("launches"), "launch"),
      count_of(count("blocks"), "block"), count_of(count("block_threads"), "thread"),
      count_of(count("warps"), "warp"), count("divergent_warps"), number(kernel.at("active_lanes")),
      number(kernel.at("thread_inst_executed_per_inst_executed")),
      number(kernel.at("branch_efficiency")), count_of(exact(total, "global_load_bytes"), "byte"),
      per_request("global_load_sectors_per_request", "sector"),
      count_of(exact(total, "global_store_bytes"), "byte"),
      per_request("global_store_sectors_per_request", "sector"),
      count_of(exact(level, "global_moved"), "byte"), exact(level, "global_distinct"));
  if (level.at("shared") != 0) {
    text += fmt::format(
        "  shared memory: {} loaded, {}\n"
        "                 {} stored, {}\n"
        "                 {}; reuse {}\n",
        count_of(exact(total, "shared_load_bytes"), "byte"),
        count_of(exact(total, "shared_load_conflicts"), "bank conflict"),
        count_of(exact(total, "shared_store_bytes"), "byte"),
        count_of(exact(total, "shared_store_conflicts"), "bank conflict"),
        per_request("shared_wavefronts_per_request", "wavefront"), number(kernel.at("reuse")));
  }
  if (total.at("bulk_copies") != 0) {
    text += fmt::format("  bulk copies: {}, {} loaded, {} stored\n", exact(total, "bulk_copies"),
                        count_of(exact(total, "bulk_load_bytes"), "byte"),
                        exact(total, "bulk_store_bytes"));
  }
  if (total.at("matrix_products") != 0) {
    text += fmt::format("  tensor cores: {}, {}\n",
                        count_of(exact(total, "matrix_products"), "product"),
                        count_of(exact(total, "matrix_operations"), "operation"));
  }
  if (const std::uint64_t recorded = count("recorded_launches"); recorded < count("launches")) {
    text += fmt::format("  all but the first figure are of the {} recorded\n",
                        count_of(recorded, "launch"));
  }
  const ordered_json& held = kernel.at("occupancy");
  if (held.is_null()) return text;
  std::string limits;
  for (const ordered_json& limit : held.at("limited_by")) {
    limits += (limits.empty() ? "" : ", ") + limit.get<std::string>();
  }
  return text +
         fmt::format("  occupancy {:.3g} %: {}, {}; limited by {} (registers are not known)\n",
                     100 * held.at("occupancy").get<double>(),
                     count_of(held.at("blocks").get<int>(), "block"),
                     count_of(held.at("warps").get<int>(), "warp"), limits);
}

}  // namespace

void add_occupancy(ordered_json& kernels, int capability) {
  for (ordered_json& kernel : kernels) {
    kernel["occupancy"] = occupancy_of(kernel, multiprocessor(capability));
  }
}

std::string kernel_summary(const ordered_json& kernels) {
  if (kernels.empty()) return "no kernel ran\n";
  std::string text;
  for (const ordered_json& kernel : kernels) text += one_summary(kernel);
  return text;
}

}  // namespace rung::workbench
