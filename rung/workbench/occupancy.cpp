// SPDX-License-Identifier: Apache-2.0
// rung occupancy: the number of resident blocks of a kernel per SM, and the limiting resource.
#include "rung/workbench/occupancy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "rung/bench/data_sheets.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

using bench::Occupancy;
using nlohmann::ordered_json;

struct Options {
  std::string capability = "9.0";
  int threads = 0;  // 0: every block size
  int registers = 32;
  std::string registers_per_block;
  std::string shared = "0";
  std::string sm;
  std::string gpus;
  bool json = false;
};

std::string allowed(int blocks) {
  return blocks == Occupancy::no_limit ? "any" : std::to_string(blocks);
}

double best_of(const std::vector<bench::BlockSize>& sizes) {
  double best = 0;
  for (const bench::BlockSize& size : sizes) best = std::max(best, size.occupancy.occupancy);
  return best;
}

std::string given_or_any(int there) { return there == 0 ? "any" : std::to_string(there); }

std::string limits_table(const bench::Multiprocessor& chip, const Occupancy& one) {
  Table limits({{"resource"}, {"per block", true}, {"per SM", true}, {"blocks", true}});
  limits.add({"warps", std::to_string(one.warps_per_block), std::to_string(chip.warps),
              allowed(one.by_warps)});
  limits.add({"blocks", "1", given_or_any(chip.blocks), allowed(one.by_blocks)});
  limits.add({"registers", std::to_string(one.registers_per_block), given_or_any(chip.registers),
              allowed(one.by_registers)});
  limits.add({"bytes of shared memory", std::to_string(one.shared_bytes_per_block),
              given_or_any(chip.shared_bytes), allowed(one.by_shared)});
  return limits.text();
}

/// Explains the allocation granularity of registers, if it affects the number of blocks.
std::string allocation_text(const bench::Multiprocessor& chip, const bench::BlockNeeds& block,
                            const Occupancy& one) {
  if (one.registers_per_warp == 0 || chip.register_portion <= 1) return "";
  const bool is_rounded = one.registers_per_block != block.threads * block.registers;
  if (!is_rounded && one.by_registers != one.blocks) return "";
  const int in_partition = chip.registers / chip.partitions;
  std::string text = fmt::format(
      "Registers are allocated per warp, in units of {}: {} x 32 take {}. Each of the SM's {} "
      "partitions has {} of its {} and holds {} such warps, {} in all: {} of {}.",
      chip.register_portion, block.registers, whole(one.registers_per_warp), chip.partitions,
      whole(in_partition), whole(chip.registers), in_partition / one.registers_per_warp,
      one.warps_by_registers, count_of(one.by_registers, "block"),
      count_of(one.warps_per_block, "warp"));
  const int rounded_warps = one.registers_per_block / one.registers_per_warp;
  if (rounded_warps != one.warps_per_block) {
    text += fmt::format(
        " The {} per block above are those of {} warps, a multiple of the partitions: so many a "
        "launch may not exceed, and an SM gives none to warps that are not there.",
        whole(one.registers_per_block), rounded_warps);
  }
  return text;
}

void add_one(const bench::Multiprocessor& chip, const bench::BlockNeeds& block,
             const Occupancy& one, Sheet& sheet) {
  sheet.let("most warps", chip.warps, Unit::count, "warps per SM");
  sheet.result("warps per block", "{threads} / 32, rounded up", one.warps_per_block, Unit::count);
  sheet.result("blocks", "the least of the last column", one.blocks, Unit::count);
  sheet.result("warps", "{blocks} x {warps per block}", one.warps, Unit::count);
  sheet.result("occupancy", "{warps} / {most warps}", one.occupancy, Unit::part);
  const std::string limits = fmt::format("{}", fmt::join(one.limited_by(), " and "));
  sheet.plain_result("limited by", limits, limits);
  sheet.picture(limits_table(chip, one));
  if (const std::string how = allocation_text(chip, block, one); !how.empty()) sheet.remark(how);
  const int idle = one.warps_per_block * 32 - block.threads;
  if (idle != 0) {
    sheet.remark(
        fmt::format("Without a thread: {} of each block's last warp.", count_of(idle, "lane")));
  }
  const double best = best_of(bench::every_block_size(chip, block));
  if (best > one.occupancy) {
    sheet.remark(fmt::format("Another size of block reaches {}: leave --threads out to see which.",
                             percent_of_sm(best)));
  }
}

void add_sweep(const std::vector<bench::BlockSize>& sizes, Sheet& sheet) {
  const double best = best_of(sizes);
  Table table(
      {{"threads", true}, {"blocks", true}, {"warps", true}, {"occupancy", true}, {"limited by"}});
  std::string most;
  std::string both;
  for (const auto& [threads, one] : sizes) {
    table.add({std::to_string(threads), std::to_string(one.blocks), std::to_string(one.warps),
               percent_of_sm(one.occupancy), fmt::format("{}", fmt::join(one.limited_by(), ", "))});
    if (one.occupancy == best) most += fmt::format("{}{}", most.empty() ? "" : ", ", threads);
    if (one.by_warps == one.blocks && one.by_blocks == one.blocks) {
      both += fmt::format("{}{}", both.empty() ? "" : ", ", threads);
    }
  }
  sheet.picture(table.text());
  sheet.remark(fmt::format("most, {}: {} threads", percent_of_sm(best), most));
  if (!both.empty()) {
    sheet.remark(fmt::format("at the limits of warps and of blocks: {} threads", both));
  }
}

/// Parses an SM: "warps=32,blocks=8,registers=16K". A resource that is left out is unlimited.
bench::Multiprocessor parse_sm(const std::string& text) {
  bench::OwnMultiprocessor own;
  const struct {
    const char* key;
    int bench::OwnMultiprocessor::*member;
  } members[] = {{"warps", &bench::OwnMultiprocessor::warps},
                 {"blocks", &bench::OwnMultiprocessor::blocks},
                 {"threads", &bench::OwnMultiprocessor::threads},
                 {"registers", &bench::OwnMultiprocessor::registers},
                 {"shared", &bench::OwnMultiprocessor::shared_bytes},
                 {"threads-per-block", &bench::OwnMultiprocessor::threads_per_block}};
  const auto refuse = [](std::string_view given, std::string_view accepted) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--sm: '{}' given; accepted: {}", given, accepted));
  };
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view one = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    const std::size_t equals = std::min(one.find('='), one.size());
    const auto* const found =
        std::find_if(std::begin(members), std::end(members),
                     [&](const auto& member) { return member.key == one.substr(0, equals); });
    if (found == std::end(members) || equals == one.size()) {
      refuse(one, "warps=, blocks=, threads=, registers=, shared=, threads-per-block=");
    }
    const std::string name = fmt::format("--sm {}", found->key);
    const std::string_view value = one.substr(equals + 1);
    own.*(found->member) = std::string_view(found->key) == "shared"
                               ? std::max(1, parse_bytes(name, value))
                               : parse_kibi_count(name, value);
  }
  if (own.warps == 0 && own.threads == 0) refuse(text, "warps= or threads= among others");
  constexpr int most = 1 << 15;  // warps; a million threads
  if (own.threads % 32 != 0 || std::max(own.warps, own.threads / 32) > most) {
    refuse(text, "threads that are whole warps of 32, at most 2^20");
  }
  return bench::own_multiprocessor(own);
}

bench::BlockNeeds needs_of(const Options& options) {
  bench::BlockNeeds block{.threads = options.threads,
                          .registers = options.registers,
                          .shared_bytes = parse_bytes("shared", options.shared)};
  if (!options.registers_per_block.empty()) {
    block.registers = 0;
    block.registers_per_block =
        parse_kibi_count("--registers-per-block", options.registers_per_block);
  }
  return block;
}

int run(const Options& options) {
  const bool own = !options.sm.empty();
  const std::vector<NamedMultiprocessor> gpus = parse_gpus(options.gpus);
  if (gpus.size() > 1) return occupancy_on_gpus(gpus, needs_of(options), options.json);
  const bench::Multiprocessor chip =
      own             ? parse_sm(options.sm)
      : !gpus.empty() ? *gpus.front().multiprocessor
                      : bench::find_multiprocessor(bench::parse_capability(options.capability));
  const bench::BlockNeeds block = needs_of(options);
  // First, so that invalid values are rejected before anything is printed.
  const std::vector<bench::BlockSize> sizes =
      options.threads != 0
          ? std::vector<bench::BlockSize>{{options.threads, bench::occupancy(chip, block)}}
          : bench::every_block_size(chip, block);
  if (options.json) {
    ordered_json json = {{"registers", block.registers}, {"shared_bytes", block.shared_bytes}};
    if (own) {
      json["sm"] = options.sm;
    } else {
      json["compute_capability"] = bench::capability_name(chip.capability);
    }
    if (!gpus.empty()) json["gpu"] = gpus.front().name;
    if (block.registers_per_block != 0) json["registers_per_block"] = block.registers_per_block;
    if (options.threads != 0) {
      json.update(occupancy_to_json(block.threads, sizes.front().occupancy));
    } else {
      ordered_json sweep = ordered_json::array();
      for (const auto& [threads, one] : sizes) sweep.push_back(occupancy_to_json(threads, one));
      json["sweep"] = std::move(sweep);
    }
    fmt::print("{}\n", json.dump(2));
    return exit_good;
  }
  Sheet sheet;
  const std::string name = own ? options.sm : bench::capability_name(chip.capability);
  if (!gpus.empty()) sheet.input("gpu", "", gpus.front().name, gpus.front().name);
  sheet.input(own ? "sm" : "compute capability", "", name, name);
  add_needs(block, sheet);
  if (options.threads != 0) {
    add_one(chip, block, sizes.front().occupancy, sheet);
  } else {
    add_sweep(sizes, sheet);
  }
  fmt::print("{}", sheet.text());
  return exit_good;
}

void expect_one(const char* name, const Option& option, const char* other_name,
                const Option& other) {
  if (!option.given() || !other.given()) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: given with {}; accepted: one of the two", name, other_name));
}

CommandSpec::Action setup(Parser app) {
  auto options = std::make_shared<Options>();
  const Option capability = app.add_option("--compute-capability", options->capability,
                                           "1.3 to 12.1, as in 8.6 or sm_86; default: 9.0")
                                .type_name("X.Y");
  const Option gpu =
      app.add_option("--gpu", options->gpus,
                     "whose compute capability; with commas between, a line per GPU: " +
                         bench::published_gpu_names())
          .type_name("NAMES")
          .completes([](const Completing&) { return bench::published_gpu_keys(); });
  const Option sm =
      app.add_option(
             "--sm", options->sm,
             "in its place an SM of one's own: warps=, blocks=, threads=, registers=, shared= "
             "with commas between; what is left out is no limit, and nothing is rounded up")
          .type_name("LIMITS");
  app.add_option("--threads", options->threads, "per block; default: every size, one line each")
      .between(1, 1 << 20);
  const Option registers =
      app.add_option("--registers", options->registers,
                     "per thread, as nvcc -Xptxas -v reports; 0: no limit; default: 32");
  const Option per_block = app.add_option("--registers-per-block", options->registers_per_block,
                                          "in place of --registers, as in 6K")
                               .type_name("N");
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
  app.example("rung occupancy --threads 256 --shared 64K --gpu h100,a100,rtx4090,t4");
  app.example("rung occupancy --sm threads=1536,blocks=16", "which size reaches both limits?");
  app.exit_codes({{exit_good, "good"}, {exit_usage, "no launch may have such blocks"}});
  return [=] {
    expect_one("--sm", sm, "--compute-capability", capability);
    expect_one("--gpu", gpu, "--compute-capability", capability);
    expect_one("--gpu", gpu, "--sm", sm);
    expect_one("--registers-per-block", per_block, "--registers", registers);
    return run(*options);
  };
}

const Command self{{.name = "occupancy",
                    .order = 80,
                    .summary = "how many blocks of a kernel an SM holds, and why",
                    .setup = setup}};

}  // namespace
}  // namespace rung::workbench
