// SPDX-License-Identifier: Apache-2.0
// rung occupancy: how many blocks of a kernel an SM holds at once, and which resource limits it.
#include "rung/bench/occupancy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "rung/workbench/command.hpp"
#include "rung/workbench/quantity.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

using bench::Occupancy;
using nlohmann::ordered_json;

struct Options {
  std::string capability = "9.0";
  int threads = 0;  // 0: every size
  int registers = 32;
  std::string shared = "0";
  bool json = false;
};

std::string allowed(int blocks) {
  return blocks == Occupancy::no_limit ? "any" : std::to_string(blocks);
}

std::string percent(double part) { return fmt::format("{:.3g} %", 100 * part); }

ordered_json limit_to_json(int blocks) {
  return blocks == Occupancy::no_limit ? ordered_json() : ordered_json(blocks);
}

ordered_json to_json(int threads, const Occupancy& one) {
  return {{"threads", threads},
          {"blocks", one.blocks},
          {"warps", one.warps},
          {"active_threads", one.blocks * threads},
          {"occupancy", one.occupancy},
          {"limited_by", one.limited_by()},
          {"limits",
           {{"warps", one.by_warps},
            {"blocks", one.by_blocks},
            {"registers", limit_to_json(one.by_registers)},
            {"shared_memory", limit_to_json(one.by_shared)}}},
          {"registers_per_block", one.registers_per_block},
          {"shared_bytes_per_block", one.shared_bytes_per_block}};
}

double best_of(const std::vector<bench::BlockSize>& sizes) {
  double best = 0;
  for (const bench::BlockSize& size : sizes) best = std::max(best, size.occupancy.occupancy);
  return best;
}

void print_one(const bench::Multiprocessor& chip, const bench::BlockNeeds& block,
               const Occupancy& one) {
  Table limits({{"resource"}, {"a block takes", true}, {"there are", true}, {"blocks", true}});
  limits.add({"warps", std::to_string(one.warps_per_block), std::to_string(chip.warps),
              allowed(one.by_warps)});
  limits.add({"blocks", "1", std::to_string(chip.blocks), allowed(one.by_blocks)});
  limits.add({"registers", std::to_string(one.registers_per_block), std::to_string(chip.registers),
              allowed(one.by_registers)});
  limits.add({"bytes of shared memory", std::to_string(one.shared_bytes_per_block),
              std::to_string(chip.shared_bytes), allowed(one.by_shared)});
  fmt::print("{}\n", limits.text());
  say(fmt::format("{} block{} of {} threads: {} of {} warps, occupancy {}", one.blocks,
                  one.blocks == 1 ? "" : "s", block.threads, one.warps, chip.warps,
                  percent(one.occupancy)));
  say(fmt::format("limited by {}", fmt::join(one.limited_by(), " and ")));
  const int idle = one.warps_per_block * 32 - block.threads;
  if (idle != 0) fmt::print("{} lanes of each block's last warp have no thread\n", idle);
  const double best = best_of(bench::every_block_size(chip, block));
  if (best > one.occupancy) {
    say(fmt::format("another size of block reaches {}: leave --threads out to see which",
                    percent(best)));
  }
}

void print_sweep(const std::vector<bench::BlockSize>& sizes) {
  const double best = best_of(sizes);
  Table table(
      {{"threads", true}, {"blocks", true}, {"warps", true}, {"occupancy", true}, {"limited by"}});
  std::string most;
  for (const auto& [threads, one] : sizes) {
    table.add({std::to_string(threads), std::to_string(one.blocks), std::to_string(one.warps),
               percent(one.occupancy), fmt::format("{}", fmt::join(one.limited_by(), ", "))});
    if (one.occupancy == best) most += fmt::format("{}{}", most.empty() ? "" : ", ", threads);
  }
  fmt::print("{}\n", table.text());
  fmt::print("{}",
             wrapped(fmt::format("most, {}: {} threads", percent(best), most), terminal_width()));
}

int run(const Options& options) {
  const bench::Multiprocessor& chip =
      bench::find_multiprocessor(bench::parse_capability(options.capability));
  const bench::BlockNeeds block{.threads = options.threads,
                                .registers = options.registers,
                                .shared_bytes = parse_bytes("shared", options.shared)};
  // First, so that what is refused is refused before anything is printed.
  const std::vector<bench::BlockSize> sizes =
      options.threads != 0
          ? std::vector<bench::BlockSize>{{options.threads, bench::occupancy(chip, block)}}
          : bench::every_block_size(chip, block);
  ordered_json json = {{"compute_capability", bench::capability_name(chip.capability)},
                       {"registers", block.registers},
                       {"shared_bytes", block.shared_bytes}};
  if (!options.json) {
    say(fmt::format("compute capability {}, {} registers per thread, {} of shared memory per block",
                    bench::capability_name(chip.capability),
                    block.registers == 0 ? "any" : std::to_string(block.registers),
                    format_bytes(block.shared_bytes)));
    fmt::print("\n");
  }
  if (options.threads != 0) {
    const Occupancy& one = sizes.front().occupancy;
    if (!options.json) {
      print_one(chip, block, one);
      return exit_good;
    }
    json.update(to_json(block.threads, one));
  } else {
    if (!options.json) {
      print_sweep(sizes);
      return exit_good;
    }
    ordered_json sweep = ordered_json::array();
    for (const auto& [threads, one] : sizes) sweep.push_back(to_json(threads, one));
    json["sweep"] = std::move(sweep);
  }
  fmt::print("{}\n", json.dump(2));
  return exit_good;
}

CommandSpec::Action setup(Parser app) {
  auto options = std::make_shared<Options>();
  app.add_option("--compute-capability", options->capability,
                 "1.3 to 12.1, as in 8.6 or sm_86; default: 9.0")
      .type_name("X.Y");
  app.add_option("--threads", options->threads, "per block; default: every size, one line each")
      .between(1, 1 << 20);
  app.add_option("--registers", options->registers,
                 "per thread, as nvcc -Xptxas -v reports; 0: no limit; default: 32");
  app.add_option("--shared", options->shared,
                 "bytes of shared memory per block, as in 48K; default: 0")
      .type_name("BYTES");
  app.add_flag("--json", options->json, "one object");
  app.purpose(
      "Computes how many blocks of a kernel a streaming multiprocessor (SM) holds at once, and "
      "which resource limits it. An SM hides the latency of memory by switching between warps. It "
      "holds as many full blocks as its warps, blocks, registers and shared memory suffice for, "
      "each allocated in units. Occupancy is the share of its warps that are then in use. More is "
      "not always faster: a thread with more registers reuses more.");
  app.example("rung occupancy --compute-capability 8.6 --registers 40", "each block size");
  app.example("rung occupancy --threads 256 --registers 128 --shared 96K", "one block size");
  app.exit_codes({{exit_good, "good"}, {exit_usage, "no launch may have such blocks"}});
  return [options] { return run(*options); };
}

const Command self{{.name = "occupancy",
                    .order = 80,
                    .summary = "how many blocks of a kernel an SM holds, and why",
                    .setup = setup}};

}  // namespace
}  // namespace rung::workbench
