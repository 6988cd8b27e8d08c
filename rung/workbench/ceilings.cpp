// SPDX-License-Identifier: Apache-2.0
// The machine's measured ceilings, and the ceiling of a problem.
#include <fmt/format.h>

#include <cstdio>
#include <map>

#include "rung/bench/roofline.hpp"
#include "rung/cpu/isa.hpp"
#include "rung/opencl/ceiling.hpp"
#include "rung/workbench/bench.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

/// Returns the rates of an OpenCL device, measured once per process. The memory rate is that of
/// large buffers: 0, unknown, for a problem that may fit its caches.
bench::Gpu opencl_device(Device device, double bytes) {
  static std::map<int, opencl::MeasuredRates> known;
  Context context = Context::on_device(device);
  const auto found = known.find(device.index);
  const opencl::MeasuredRates rates =
      found != known.end()
          ? found->second
          : known.emplace(device.index, opencl::measure_rates(context)).first->second;
  bench::Gpu gpu;
  gpu.name = context.info().name;
  gpu.arithmetic.push_back({"f32", rates.f32_operations_per_second});
  constexpr double beyond_caches = 2;
  if (bytes > beyond_caches * static_cast<double>(context.info().l2_bytes)) {
    gpu.read_bytes_per_second = gpu.copy_bytes_per_second = rates.copy_bytes_per_second;
  }
  return gpu;
}

}  // namespace

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
  if (context.backend() == Backend::opencl) {
    return bench::gpu_ceiling(opencl_device(context.device(), instance.cost().bytes), element,
                              written);
  }
  const auto device = static_cast<std::size_t>(context.device().index);
  if (device >= machine.gpus.size()) return {};
  return bench::gpu_ceiling(machine.gpus[device], element, written);
}

}  // namespace rung::workbench
