// SPDX-License-Identifier: Apache-2.0
// rung machine: describes this machine and its measured ceilings.
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

void print_latencies(const std::vector<bench::LatencyRate>& latencies,
                     const std::vector<bench::AtomicRate>& atomics) {
  if (latencies.empty()) return;
  Table latency(
      {{"one access after another"}, {"buffer", true}, {"latency", true}, {"cycles", true}});
  for (const bench::LatencyRate& one : latencies) {
    latency.add({one.level, one.bytes > 0 ? format_bytes(one.bytes) : "",
                 format_seconds(one.seconds), one.cycles > 0 ? format_number(one.cycles) : ""});
  }
  fmt::print("\n{}", latency.text());
  Table additions({{"atomic additions"}, {"threads", true}, {"rate", true}});
  for (const bench::AtomicRate& one : atomics) {
    additions.add(
        {one.target, std::to_string(one.threads), rate(one.operations_per_second, "op/s")});
  }
  fmt::print("\n{}", additions.text());
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
  print_latencies(machine.latencies, machine.atomics);
}

void print_gpu(const bench::Gpu& gpu) {
  fmt::print("\n{}: {} SMs, {} L2, {} memory\n", gpu.name, gpu.multiprocessors,
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
  print_latencies(gpu.latencies, gpu.atomics);
  if (gpu.link.empty()) return;
  Table link({{"copies of 256 MiB"}, {"host memory"}, {"rate", true}, {"of 4 bytes", true}});
  for (const bench::LinkRate& one : gpu.link) {
    link.add({one.direction, one.memory, rate(one.bytes_per_second, "B/s"),
              format_seconds(one.seconds)});
  }
  fmt::print("\n{}", link.text());
}

/// Returns a remark on the measurement: a warning if the machine was busy, since rates are then
/// underestimated.
std::string noise_text(const bench::Machine& machine) {
  if (!machine.noisy()) {
    return fmt::format("remembered in {}\n--refresh measures again\n", bench::machine_cache_path());
  }
  return toned(
      Tone::bad,
      wrapped(fmt::format("The machine was busy: samples of a rate were {:.0f} % apart, so "
                          "that these rates may be too low. `rung machine` measures again "
                          "until it finds the machine quiet; a quiet measurement that is "
                          "remembered stays so.",
                          100 * machine.noise),
              text_width()));
}

int run(const Options& options) {
  bench::Machine machine;
  {
    Progress progress(1);
    bool measured = false;
    const auto known = [&](bool refresh) {
      return bench::known_machine_with_latencies(refresh, [&](std::string_view doing) {
        measured = true;
        progress.say(fmt::format("measuring this machine once: {}", doing));
      });
    };
    machine = known(options.refresh);
    // Stored rates that were measured on a busy machine are measured again here.
    if (machine.noisy() && !measured) machine = known(true);
  }
  if (options.json) {
    fmt::print("{}\n", bench::machine_to_json(machine));
    return exit_good;
  }
  say(fmt::format("{}, {}, {}", machine.cpu, count_of(machine.cores, "core"), machine.isa));
  say(fmt::format("L1 {}, L2 {} per core, L3 {}, memory {}", format_bytes(machine.l1_bytes),
                  format_bytes(machine.l2_bytes), format_bytes(machine.l3_bytes),
                  format_bytes(machine.memory_bytes)));
  say(fmt::format("rung {}, {}, measured {}", machine.version, machine.compiler, machine.date));
  print_cpu(machine);
  for (const bench::Gpu& gpu : machine.gpus) print_gpu(gpu);
  fmt::print("\n{}", noise_text(machine));
  return exit_good;
}

CommandSpec::Action setup(Parser app) {
  auto options = std::make_shared<Options>();
  app.add_flag("--refresh", options->refresh, "measure again, whatever is remembered");
  app.add_flag("--json", options->json, "one object");
  app.purpose(
      "Measures the ceilings that `rung bench` holds kernels against: multiply-adds per second for "
      "each instruction set, bytes per second from each level of memory (copy counts what is read "
      "and what is written), and the same of each GPU. And what they do not tell: the latency of "
      "each level, of accesses that wait for each other, with the translation of their addresses; "
      "atomic additions to one address and to several; copies between host and GPU. It takes "
      "seconds, and the result is remembered. Samples that are far apart mean that something else "
      "was running: then it says "
      "so, and measures again at the next call.");
  app.example("rung machine", "what is remembered, or else measured now");
  app.example("rung machine --refresh", "after a change of the machine, or a busy time");
  app.exit_codes({{exit_good, "good"}});
  return [options] { return run(*options); };
}

const Command self{{.name = "machine",
                    .order = 40,
                    .summary = "what this machine is, and its measured ceilings",
                    .setup = setup}};

}  // namespace
}  // namespace rung::workbench
