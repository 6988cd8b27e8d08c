// SPDX-License-Identifier: Apache-2.0
// The reference chip of a rung: a published GPU, this CPU, or rates given on the command line.
#include <fmt/format.h>

#include <memory>

#include "rung/bench/data_sheets.hpp"
#include "rung/core/error.hpp"
#include "rung/cpu/isa.hpp"
#include "rung/workbench/bench.hpp"
#include "rung/workbench/explain.hpp"
#include "rung/workbench/progress.hpp"
#include "rung/workbench/quantity.hpp"

namespace rung::workbench {
namespace {

Chip this_cpu(ChipChoice& choice, const Problem& problem, const Explained& one) {
  if (choice.here == nullptr) {
    Progress progress(1);
    choice.here =
        std::make_shared<bench::Machine>(bench::known_machine(false, [&](std::string_view doing) {
          progress.say(fmt::format("measuring this machine once: {}", doing));
        }));
  }
  const bench::Machine& machine = *choice.here;
  const std::string element = computing_element(problem);
  return {.name = machine.cpu,
          .ceiling = bench::cpu_ceiling(machine, cpu::to_string(cpu::isa()),
                                        element == "tf32" ? "f32" : element, machine.cores,
                                        one.compulsory.bytes, one.written),
          .remark = "measured by `rung machine`"};
}

Chip published(const std::string& name, const Problem& problem, const Explained& one) {
  const bench::Gpu* gpu = bench::published_gpu(name);
  if (gpu == nullptr) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("gpu: '{}' given; accepted: {}, cpu, or --bandwidth and --peak", name,
                            bench::published_gpu_names()));
  }
  std::string element = computing_element(problem);
  std::string rate_of = element;
  double factor = 1;  // of the ceiling in use to the rate of `rate_of`
  if (one.total.totals.matrix_operations > 0) {
    const int capability = gpu->compute_capability;
    if (problem.has("split")) {
      element = "f32, by six products in bf16";
      rate_of = "bf16";
      factor = 1.0 / 6;
    } else if (element == "e4m3" || element == "e5m2" || element == "i8") {
      rate_of = "f16";
      factor = element == "i8" && capability == 89 ? 4 : 2;  // 8.9 accumulates f32 at half the rate
    } else if (element == "f64" && (capability == 80 || capability == 90)) {
      element = "f64, by tensor cores";
      factor = 2;
    }
  }
  Chip chip{.name = gpu->name,
            .ceiling = bench::gpu_ceiling(*gpu, rate_of, one.written),
            .pace = bench::pace_of(*gpu),
            .multiprocessor = &bench::find_multiprocessor(gpu->compute_capability),
            .remark = "by its data sheet"};
  chip.ceiling.operations_per_second *= factor;
  if (factor != 1) chip.ceiling.arithmetic = "multiply-adds in " + element;
  if (chip.ceiling.operations_per_second <= 0) {
    // Integers: data sheets give no rate; it is at most that of f32.
    chip.ceiling = bench::gpu_ceiling(*gpu, "f32", one.written);
  }
  return chip;
}

}  // namespace

Chip choose_chip(ChipChoice& choice, const Problem& problem, const Explained& one) {
  const bool by_hand = !choice.bandwidth.empty() || !choice.peak.empty();
  Chip chip;
  if (choice.gpu == "cpu") {
    chip = this_cpu(choice, problem, one);
  } else if (!choice.gpu.empty()) {
    chip = published(choice.gpu, problem, one);
  } else {
    chip.name = "a chip";
    chip.ceiling.arithmetic = "operations";
    chip.ceiling.memory = "memory";
  }
  if (!choice.bandwidth.empty()) {
    chip.ceiling.bytes_per_second = parse_rate("bandwidth", choice.bandwidth, "B/s");
  }
  if (!choice.peak.empty()) {
    chip.ceiling.operations_per_second = parse_rate("peak", choice.peak, "FLOP/s");
  }
  if (by_hand) chip.remark = "with numbers given by hand";
  return chip;
}

}  // namespace rung::workbench
