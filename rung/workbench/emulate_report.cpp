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
  std::string text = fmt::format(
      "{}\n  {} launch{}, {} blocks of {} threads at most, {} warps, of which {} diverged\n"
      "  active lanes {} per request, {} per instruction; branch efficiency {}\n"
      "  global memory: {} bytes loaded, {} sectors per request\n"
      "                 {} bytes stored, {} sectors per request\n"
      "                 {} bytes moved in sectors, {} of them distinct\n",
      kernel.at("name").get<std::string>(), count("launches"), count("launches") == 1 ? "" : "es",
      count("blocks"), count("block_threads"), count("warps"), count("divergent_warps"),
      number(kernel.at("active_lanes")),
      number(kernel.at("thread_inst_executed_per_inst_executed")),
      number(kernel.at("branch_efficiency")), exact(total, "global_load_bytes"),
      number(kernel.at("global_load_sectors_per_request")), exact(total, "global_store_bytes"),
      number(kernel.at("global_store_sectors_per_request")), exact(level, "global_moved"),
      exact(level, "global_distinct"));
  if (level.at("shared") != 0) {
    text += fmt::format(
        "  shared memory: {} bytes loaded, {} bank conflicts\n"
        "                 {} bytes stored, {} bank conflicts\n"
        "                 {} wavefronts per request; reuse {}\n",
        exact(total, "shared_load_bytes"), exact(total, "shared_load_conflicts"),
        exact(total, "shared_store_bytes"), exact(total, "shared_store_conflicts"),
        number(kernel.at("shared_wavefronts_per_request")), number(kernel.at("reuse")));
  }
  if (total.at("bulk_copies") != 0) {
    text +=
        fmt::format("  {} bulk copies: {} bytes loaded, {} stored\n", exact(total, "bulk_copies"),
                    exact(total, "bulk_load_bytes"), exact(total, "bulk_store_bytes"));
  }
  if (total.at("matrix_products") != 0) {
    text += fmt::format("  tensor cores: {} products, {} operations\n",
                        exact(total, "matrix_products"), exact(total, "matrix_operations"));
  }
  if (const std::uint64_t recorded = count("recorded_launches"); recorded < count("launches")) {
    text += fmt::format("  all but the first figure are of the {} launches that were recorded\n",
                        recorded);
  }
  const ordered_json& held = kernel.at("occupancy");
  if (held.is_null()) return text;
  std::string limits;
  for (const ordered_json& limit : held.at("limited_by")) {
    limits += (limits.empty() ? "" : ", ") + limit.get<std::string>();
  }
  return text + fmt::format(
                    "  occupancy {:.3g} %: {} blocks, {} warps; limited by {} (registers "
                    "are not known)\n",
                    100 * held.at("occupancy").get<double>(), held.at("blocks").get<int>(),
                    held.at("warps").get<int>(), limits);
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
