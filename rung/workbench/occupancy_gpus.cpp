// SPDX-License-Identifier: Apache-2.0
// Occupancy of a block on several GPUs.
#include "rung/workbench/occupancy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "rung/bench/data_sheets.hpp"
#include "rung/core/suggestion.hpp"
#include "rung/workbench/selection.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

using bench::Occupancy;
using nlohmann::ordered_json;

ordered_json limit_to_json(int blocks) {
  return blocks == Occupancy::no_limit ? ordered_json() : ordered_json(blocks);
}

/// Occupancy on one GPU, of one block size or of every size; empty, with a reason, if it can launch
/// none.
struct OnGpu {
  NamedMultiprocessor gpu;
  std::vector<bench::BlockSize> sizes;
  std::string why_not;
};

OnGpu blocks_on(const NamedMultiprocessor& gpu, const bench::BlockNeeds& block) {
  OnGpu one{gpu, {}, ""};
  try {
    const bench::Multiprocessor& chip = *gpu.multiprocessor;
    if (block.threads == 0) {
      one.sizes = bench::every_block_size(chip, block);
    } else {
      one.sizes = {{block.threads, bench::occupancy(chip, block)}};
    }
  } catch (const Error& error) {  // too large for this GPU, perhaps not for another
    one.why_not = error.what();
  }
  return one;
}

/// Returns a table with one line per GPU, for the given block size or for the size of the highest
/// occupancy.
std::string gpus_table(const std::vector<OnGpu>& all, bool every_size) {
  Table table({{"gpu"},
               {"compute capability", true, Table::Fit::drop},
               {every_size ? "best threads" : "threads", true},
               {"blocks", true},
               {"warps", true},
               {"of", true},
               {"occupancy", true},
               {"limited by"}});
  for (const OnGpu& one : all) {
    const std::string capability = bench::capability_name(one.gpu.multiprocessor->capability);
    if (one.sizes.empty()) {
      table.add({one.gpu.name, capability, "", "", "", "", "", one.why_not});
      continue;
    }
    // The largest of several best sizes needs the fewest blocks.
    const auto best = std::max_element(
        one.sizes.rbegin(), one.sizes.rend(),
        [](const auto& a, const auto& b) { return a.occupancy.occupancy < b.occupancy.occupancy; });
    const Occupancy& fits = best->occupancy;
    table.add({one.gpu.name, capability, std::to_string(best->threads), std::to_string(fits.blocks),
               std::to_string(fits.warps), std::to_string(one.gpu.multiprocessor->warps),
               percent_of_sm(fits.occupancy),
               fmt::format("{}", fmt::join(fits.limited_by(), ", "))});
  }
  return table.text();
}

}  // namespace

std::string percent_of_sm(double part) { return fmt::format("{:.3g} %", 100 * part); }

ordered_json occupancy_to_json(int threads, const Occupancy& one) {
  return {{"threads", threads},
          {"blocks", one.blocks},
          {"warps", one.warps},
          {"active_threads", one.blocks * threads},
          {"occupancy", one.occupancy},
          {"limited_by", one.limited_by()},
          {"limits",
           {{"warps", one.by_warps},
            {"blocks", limit_to_json(one.by_blocks)},
            {"registers", limit_to_json(one.by_registers)},
            {"shared_memory", limit_to_json(one.by_shared)}}},
          {"registers_per_block", one.registers_per_block},
          {"shared_bytes_per_block", one.shared_bytes_per_block}};
}

void add_needs(const bench::BlockNeeds& block, Sheet& sheet) {
  if (block.threads != 0) {
    sheet.input("threads", "", std::to_string(block.threads), static_cast<double>(block.threads));
  }
  if (block.registers_per_block != 0) {
    sheet.input("registers per block", "", whole(block.registers_per_block), 0.0);
  } else {
    const std::string registers = block.registers == 0 ? "any" : std::to_string(block.registers);
    sheet.input("registers per thread", "", registers, registers);
  }
  sheet.input("shared memory per block", "", format_bytes(block.shared_bytes), 0.0);
}

std::vector<NamedMultiprocessor> parse_gpus(const std::string& text) {
  std::vector<NamedMultiprocessor> all;
  for (std::string name : split_commas(text)) {
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const bench::Gpu* const gpu = bench::published_gpu(name);
    if (gpu == nullptr) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("--gpu: '{}' given{}; accepted: {}", name,
                              did_you_mean(name, bench::published_gpu_keys()),
                              bench::published_gpu_names()));
    }
    all.push_back({name, &bench::find_multiprocessor(gpu->compute_capability)});
  }
  return all;
}

int occupancy_on_gpus(const std::vector<NamedMultiprocessor>& gpus, const bench::BlockNeeds& block,
                      bool json) {
  std::vector<OnGpu> all;
  all.reserve(gpus.size());
  for (const NamedMultiprocessor& gpu : gpus) all.push_back(blocks_on(gpu, block));
  if (std::all_of(all.begin(), all.end(), [](const OnGpu& one) { return one.sizes.empty(); })) {
    throw Error(ErrorCode::invalid_argument, all.front().why_not);
  }
  if (json) {
    ordered_json list = ordered_json::array();
    for (const OnGpu& one : all) {
      ordered_json line = {
          {"gpu", one.gpu.name},
          {"compute_capability", bench::capability_name(one.gpu.multiprocessor->capability)},
          {"why_not", one.why_not}};
      ordered_json sweep = ordered_json::array();
      for (const auto& [threads, fits] : one.sizes)
        sweep.push_back(occupancy_to_json(threads, fits));
      line["sweep"] = std::move(sweep);
      list.push_back(std::move(line));
    }
    const ordered_json whole_json = {
        {"registers", block.registers}, {"shared_bytes", block.shared_bytes}, {"gpus", list}};
    fmt::print("{}\n", whole_json.dump(2));
    return exit_good;
  }
  Sheet sheet;
  add_needs(block, sheet);
  sheet.picture(gpus_table(all, block.threads == 0));
  fmt::print("{}", sheet.text());
  return exit_good;
}

}  // namespace rung::workbench
