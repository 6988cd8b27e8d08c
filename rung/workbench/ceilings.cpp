// SPDX-License-Identifier: Apache-2.0
// The machine's measured ceilings, and which of them bounds a problem.
#include <fmt/format.h>

#include <cstdio>

#include "rung/bench/roofline.hpp"
#include "rung/cpu/isa.hpp"
#include "rung/workbench/bench.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {

bench::Machine machine_with_ceilings(bool quiet) {
  Progress progress(1);
  bool told = quiet;
  return bench::known_machine(false, [&](std::string_view doing) {
    if (!told) say("measuring this machine once, which takes some seconds");
    std::fflush(stdout);
    told = true;
    progress.say(fmt::format("measuring this machine once: {}", doing));
  });
}

bench::Ceiling ceiling_of(const Problem& problem, const Instance& instance, const Context& context,
                          const bench::Machine& machine) {
  const std::string element = computing_element(problem);
  const double written = written_share(instance);
  if (context.backend() == Backend::cpu) {
    return bench::cpu_ceiling(machine, cpu::to_string(cpu::isa()),
                              element == "tf32" ? "f32" : element, context.threads(),
                              instance.cost().bytes, written);
  }
  const auto device = static_cast<std::size_t>(context.device().index);
  if (device >= machine.gpus.size()) return {};
  return bench::gpu_ceiling(machine.gpus[device], element, written);
}

}  // namespace rung::workbench
