// SPDX-License-Identifier: Apache-2.0
// Occupancy and totals of an emulated program's kernels.
#include "rung/workbench/emulate_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "rung/bench/data_sheets.hpp"
#include "rung/bench/occupancy.hpp"
#include "rung/bench/roofline.hpp"
#include "rung/core/error.hpp"
#include "rung/core/text.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

using nlohmann::ordered_json;

/// Returns the SM model of the newest known compute capability up to `capability`, else the oldest;
/// the simulated device chooses its model in the same way.
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
    return {};  // the block does not fit
  }
}

/// Returns the number of waves of the largest launch; null if it is unknown.
ordered_json waves_of(const ordered_json& kernel, int multiprocessors) {
  const ordered_json& held = kernel.at("occupancy");
  if (held.is_null() || multiprocessors == 0) return {};
  std::uint64_t blocks = 0;
  for (const ordered_json& launch : kernel.at("each_launch")) {
    std::uint64_t of_grid = 1;
    for (const ordered_json& extent : launch.at("grid")) of_grid *= extent.get<std::uint64_t>();
    blocks = std::max(blocks, of_grid);
  }
  const double at_once = held.at("blocks").get<double>() * multiprocessors;
  return static_cast<double>(blocks) / at_once;
}

/// Returns the roofline position; null if operations or caches are unknown.
ordered_json roofline_of(const ordered_json& kernel, const bench::Gpu& gpu) {
  const ordered_json& done = kernel.at("operations");
  const ordered_json& caches = kernel.at("caches");
  const ordered_json& total = kernel.at("totals");
  if (done.is_null() || caches.is_null()) return {};
  const double f64 = done.at("f64").get<double>();
  const double f32 = done.at("total").get<double>() - f64;
  const double products = total.at("matrix_operations").get<double>();
  const double bulk =
      total.at("bulk_load_bytes").get<double>() + total.at("bulk_store_bytes").get<double>();
  // Dirty data left in L2 is eventually written to memory.
  const double bytes = caches.at("dram_read_bytes").get<double>() +
                       caches.at("dram_write_bytes").get<double>() +
                       caches.at("dirty_bytes").get<double>() + bulk;
  const auto rate = [&](const char* element) {
    return bench::gpu_ceiling(gpu, element, 0).operations_per_second;
  };
  const double arithmetic = f32 / rate("f32") + f64 / rate("f64") + products / rate("f16");
  const double bandwidth = bench::gpu_ceiling(gpu, "f32", 0).bytes_per_second;
  const double memory = bytes / bandwidth;
  const double seconds = std::max(arithmetic, memory);
  if (seconds == 0) return {};
  const double operations = f32 + f64 + products;
  const ordered_json none;
  return {{"gpu", gpu.name},
          {"operations", operations},
          {"bytes", bytes},
          {"operations_per_byte", bytes == 0 ? none : ordered_json(operations / bytes)},
          {"ridge_point", rate(f64 > f32 ? "f64" : "f32") / bandwidth},
          {"bound_seconds", seconds},
          {"bound_operations_per_second", operations / seconds},
          {"limiter", memory >= arithmetic ? "memory" : "arithmetic"}};
}

std::string number(const ordered_json& value) {
  return value.is_null() ? "-" : fmt::format("{:.3g}", value.get<double>());
}

/// Formats a fraction: 0.203 as "20.3 %"; null (zero denominator) as "-".
std::string percent(const ordered_json& share) {
  return share.is_null() ? "-" : fmt::format("{:.3g} %", 100 * share.get<double>());
}

std::string rate_text(double per_second) {
  return per_second >= 1e12 ? fmt::format("{:.3g} TFLOP/s", per_second * 1e-12)
                            : fmt::format("{:.3g} GFLOP/s", per_second * 1e-9);
}

std::string seconds_text(double seconds) {
  return seconds >= 1e-3 ? fmt::format("{:.3g} ms", seconds * 1e3)
                         : fmt::format("{:.3g} us", seconds * 1e6);
}

/// Lists the lines with the most L2 traffic, by the cache model.
std::string cache_lines(const ordered_json& kernel) {
  constexpr std::size_t most = 4;
  const auto sectors = [](const ordered_json& line) { return line.at("l2_sectors").get<double>(); };
  std::vector<const ordered_json*> lines;
  for (const ordered_json& line : kernel.at("lines")) {
    if (sectors(line) != 0) lines.push_back(&line);
  }
  std::stable_sort(lines.begin(), lines.end(), [&](const ordered_json* a, const ordered_json* b) {
    return sectors(*a) > sectors(*b);
  });
  std::string text;
  for (std::size_t i = 0; i < lines.size() && i < most; ++i) {
    const ordered_json& line = *lines[i];
    const auto count = [&](const char* name) { return line.at(name).get<double>(); };
    std::string hits;
    if (const double loaded = count("global_load_sectors"); loaded != 0) {
      hits = fmt::format("L1 hits {:.3g} %, ", 100 * count("l1_load_hits") / loaded);
    }
    const std::string file = printable(line.at("file").get<std::string>());
    text += fmt::format("    line {} of {}: {}L2 {:.3g} %; {} bytes read\n",
                        line.at("line").get<int>(), file.substr(file.rfind('/') + 1), hits,
                        100 * count("l2_hits") / sectors(line), whole(count("dram_read_bytes")));
  }
  return text;
}

/// Formats operations, cache traffic and roofline position.
std::string work_text(const ordered_json& kernel) {
  std::string text;
  const ordered_json& done = kernel.at("operations");
  if (!done.is_null()) {
    const auto count = [&](const char* name) { return whole(done.at(name).get<double>()); };
    text += fmt::format(
        "  operations of all threads: {} floating{}\n"
        "    {} additions, {} multiplications, {} divisions; {} in f64; {} functions\n"
        "    {} integer\n",
        count("total"), done.at("exact").get<bool>() ? "" : ", an estimate", count("additions"),
        count("multiplications"), count("divisions"), count("f64"), count("functions"),
        count("integer"));
  }
  const ordered_json& caches = kernel.at("caches");
  if (!caches.is_null()) {
    const auto hits = [&](const char* name) { return number(caches.at(name)); };
    const auto bytes = [&](const char* name) { return whole(caches.at(name).get<double>()); };
    text += fmt::format(
        "  caches, modeled: L1 hits {} % of sectors, {} % of loaded ones; L2 {} %\n"
        "    memory: {} bytes read, {} written, {} left to write in L2\n",
        hits("l1tex__t_sector_hit_rate.pct"),
        hits("l1tex__t_sector_pipe_lsu_mem_global_op_ld_hit_rate.pct"),
        hits("lts__t_sector_hit_rate.pct"), bytes("dram_read_bytes"), bytes("dram_write_bytes"),
        bytes("dirty_bytes"));
    const ordered_json& total = kernel.at("totals");
    text += fmt::format("    lines evicted: {} from L1, {} from L2\n",
                        whole(total.at("l1_evictions").get<double>()),
                        whole(total.at("l2_evictions").get<double>()));
    text += cache_lines(kernel);
  }
  if (!kernel.contains("roofline") || kernel.at("roofline").is_null()) return text;
  const ordered_json& roof = kernel.at("roofline");
  return text + fmt::format(
                    "  roofline, {}: bound by {}: {} at least, {} at most\n    {} operations "
                    "per byte, ridge {:.3g}\n",
                    roof.at("gpu").get<std::string>(), roof.at("limiter").get<std::string>(),
                    seconds_text(roof.at("bound_seconds").get<double>()),
                    rate_text(roof.at("bound_operations_per_second").get<double>()),
                    number(roof.at("operations_per_byte")), roof.at("ridge_point").get<double>());
}

/// Formats serialization: rounds of lanes that access one address atomically, or different
/// constants; "" if there are none.
std::string rounds_text(const ordered_json& kernel) {
  std::string text;
  const auto add = [&](const char* what, const char* name) {
    const ordered_json& rounds = kernel.at(name);
    if (rounds.is_null()) return;
    text += fmt::format("  {}: {} per request\n", what, count_of(number(rounds), "round"));
  };
  add("atomics on global memory", "atomic_rounds_per_request");
  add("atomics on shared memory", "shared_atomic_rounds_per_request");
  add("constant memory", "constant_rounds_per_request");
  return text;
}

std::string balance_text(const ordered_json& kernel) {
  const ordered_json& balance = kernel.at("balance");
  const ordered_json& waves = kernel.at("waves");
  std::string text;
  if (!waves.is_null()) text = fmt::format("{} of blocks", count_of(number(waves), "wave"));
  if (!balance.at("block_longest_over_mean").is_null()) {
    text += fmt::format("{}longest block {} x the mean, longest warp {} x",
                        text.empty() ? "" : "; ", number(balance.at("block_longest_over_mean")),
                        number(balance.at("warp_longest_over_mean")));
  }
  return text.empty() ? "" : "  " + text + "\n";
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
      "{}"
      "  global memory: {} loaded, {}, {} of them used\n"
      "                 {} stored, {}, {} of them used\n"
      "                 {} moved in sectors, {} of them distinct\n",
      kernel.at("name").get<std::string>(), count_of(count("launches"), "launch"),
      count_of(count("blocks"), "block"), count_of(count("block_threads"), "thread"),
      count_of(count("warps"), "warp"), count("divergent_warps"), number(kernel.at("active_lanes")),
      number(kernel.at("thread_inst_executed_per_inst_executed")),
      number(kernel.at("branch_efficiency")), balance_text(kernel),
      count_of(exact(total, "global_load_bytes"), "byte"),
      per_request("global_load_sectors_per_request", "sector"),
      percent(kernel.at("global_load_efficiency")),
      count_of(exact(total, "global_store_bytes"), "byte"),
      per_request("global_store_sectors_per_request", "sector"),
      percent(kernel.at("global_store_efficiency")), count_of(exact(level, "global_moved"), "byte"),
      exact(level, "global_distinct"));
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
  text += rounds_text(kernel) + work_text(kernel);
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

void add_occupancy(ordered_json& kernels, int capability, int multiprocessors) {
  for (ordered_json& kernel : kernels) {
    kernel["occupancy"] = occupancy_of(kernel, multiprocessor(capability));
    kernel["waves"] = waves_of(kernel, multiprocessors);
  }
}

const bench::Gpu* find_gpu(const std::string& name, int capability) {
  if (!name.empty()) {
    const bench::Gpu* const gpu = bench::published_gpu(name);
    if (gpu != nullptr) return gpu;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--gpu: given \"{}\", accepted are {}", printable(name),
                            bench::published_gpu_names()));
  }
  for (const char* key : {"h200", "a100", "a40", "rtx4090"}) {
    const bench::Gpu* const one = bench::published_gpu(key);
    if (one->compute_capability == capability) return one;
  }
  return nullptr;
}

void add_roofline(ordered_json& kernels, const bench::Gpu* gpu) {
  if (gpu == nullptr) return;
  for (ordered_json& kernel : kernels) kernel["roofline"] = roofline_of(kernel, *gpu);
}

std::string kernel_summary(const ordered_json& kernels) {
  if (kernels.empty()) return "no kernel ran\n";
  std::string text;
  for (const ordered_json& kernel : kernels) text += one_summary(kernel);
  return text;
}

}  // namespace rung::workbench
