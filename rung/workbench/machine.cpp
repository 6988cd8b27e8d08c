// SPDX-License-Identifier: Apache-2.0
// rung machine: what this machine is and how fast it can be at best.
#include "rung/bench/machine.hpp"

#include <fmt/format.h>

#include <memory>

#include "rung/workbench/command.hpp"
#include "rung/workbench/progress.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

struct Options {
  bool refresh = false;
  bool json = false;
};

std::string rate(double per_second, const char* unit) {
  return fmt::format("{} G{}", format_number(per_second * 1e-9), unit);
}

void print_cpu(const bench::Machine& machine) {
  Table arithmetic({{"multiply-adds"}, {"type"}, {"threads", true}, {"rate", true}});
  for (const bench::ArithmeticRate& one : machine.arithmetic) {
    arithmetic.add({one.isa, one.element, std::to_string(one.threads),
                    rate(one.operations_per_second, "FLOP/s")});
  }
  fmt::print("\n{}", arithmetic.text());
  Table bandwidth({{"memory"}, {"buffers", true}, {"access"}, {"threads", true}, {"rate", true}});
  for (const bench::BandwidthRate& one : machine.bandwidth) {
    bandwidth.add({one.level, format_bytes(one.bytes), one.access, std::to_string(one.threads),
                   rate(one.bytes_per_second, "B/s")});
  }
  fmt::print("\n{}", bandwidth.text());
}

void print_gpu(const bench::Gpu& gpu) {
  fmt::print("\n{}: {} multiprocessors, {} L2, {} memory\n", gpu.name, gpu.multiprocessors,
             format_bytes(gpu.l2_bytes), format_bytes(gpu.memory_bytes));
  Table rates({{"measured"}, {"rate", true}});
  if (gpu.read_bytes_per_second > 0) {
    rates.add({"read", rate(gpu.read_bytes_per_second, "B/s")});
    rates.add({"copy", rate(gpu.copy_bytes_per_second, "B/s")});
  }
  for (const bench::GpuRate& one : gpu.arithmetic) {
    rates.add({one.element, rate(one.operations_per_second, "FLOP/s")});
  }
  fmt::print("{}", rates.text());
}

int run(const Options& options) {
  bench::Machine machine;
  {
    Progress progress(1);
    machine = bench::known_machine(options.refresh, [&](std::string_view doing) {
      progress.say(fmt::format("measuring this machine once: {}", doing));
    });
  }
  if (options.json) {
    fmt::print("{}\n", bench::machine_to_json(machine));
    return exit_good;
  }
  fmt::print("{}, {} cores, {}\n", machine.cpu, machine.cores, machine.isa);
  fmt::print("L1 {}, L2 {} a core, L3 {}, memory {}\n", format_bytes(machine.l1_bytes),
             format_bytes(machine.l2_bytes), format_bytes(machine.l3_bytes),
             format_bytes(machine.memory_bytes));
  fmt::print("rung {}, {}, measured {}\n", machine.version, machine.compiler, machine.date);
  print_cpu(machine);
  for (const bench::Gpu& gpu : machine.gpus) print_gpu(gpu);
  fmt::print("\nremembered in {}; --refresh measures again\n", bench::machine_cache_path());
  return exit_good;
}

CommandSpec::Action setup(Parser app) {
  auto options = std::make_shared<Options>();
  app.add_flag("--refresh", options->refresh, "measure again, whatever is remembered");
  app.add_flag("--json", options->json, "one object");
  app.footer(
      "Measures the ceilings that `rung bench` holds kernels against: multiply-adds a second for\n"
      "each instruction set, bytes a second from each level of memory (copy counts what is read\n"
      "and what is written), and the same of each GPU. Takes seconds, once a machine.");
  return [options] { return run(*options); };
}

const Command self{{.name = "machine",
                    .order = 40,
                    .summary = "what this machine is, and its measured ceilings",
                    .setup = setup}};

}  // namespace
}  // namespace rung::workbench
