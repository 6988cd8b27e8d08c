// SPDX-License-Identifier: Apache-2.0
// Detection of the machine, and the order in which its ceilings are measured.
#include "rung/bench/machine.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <ctime>
#include <fstream>

#include "rung/bench/cpu_rates.hpp"
#include "rung/bench/statistics.hpp"
#include "rung/core/context.hpp"
#include "rung/core/error.hpp"
#include "rung/cpu/isa.hpp"

namespace rung::bench {
namespace {

constexpr double mebibyte = 1024.0 * 1024.0;

GpuMeter::Measure gpu_meter = nullptr;
GpuMeter::Measure gpu_latency_meter = nullptr;

/// Returns the first value of a key in a file such as /proc/cpuinfo ("model name : AMD EPYC").
std::string value_of(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t colon = line.find(':');
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    if (colon != std::string::npos && begin != std::string::npos) return line.substr(begin);
  }
  return "";
}

/// Returns the bytes of the data cache at `level` from sysfs; 0 if unknown.
double cache_bytes(int level) {
  for (int index = 0; index < 8; ++index) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", index);
    std::string type;
    int found = 0;
    double size = 0;
    std::string unit;
    std::ifstream(folder + "level") >> found;
    std::ifstream(folder + "type") >> type;
    std::ifstream(folder + "size") >> size >> unit;
    if (found == level && type != "Instruction") {
      return size * (unit == "K" ? 1024 : unit == "M" ? mebibyte : 1);
    }
  }
  return 0;
}

/// Returns the CPU's instruction set, ignoring the cap by RUNG_CPU_TARGET.
cpu::Isa best_isa() {
  const cpu::Isa usual = cpu::isa();
  cpu::cap_isa(cpu::Isa::avx512);
  const cpu::Isa found = cpu::isa();
  cpu::cap_isa(usual);
  return found;
}

std::vector<int> thread_counts(int cores) {
  return cores > 1 ? std::vector<int>{1, cores} : std::vector<int>{1};
}

void measure_arithmetic(Machine& machine, const MachineProgress& progress,
                        std::vector<double>& noise) {
  for (const cpu::Isa isa : {cpu::Isa::scalar, cpu::Isa::avx2, cpu::Isa::avx512}) {
    if (isa > best_isa()) break;
    for (const char* element : {"f32", "f64", "bf16"}) {
      for (const int threads : thread_counts(machine.cores)) {
        progress(fmt::format("multiply-adds, {} {}", cpu::to_string(isa), element));
        const Rate rate = arithmetic_rate(isa, element, threads);
        if (rate.per_second <= 0) continue;
        machine.arithmetic.push_back({cpu::to_string(isa), element, threads, rate.per_second});
        noise.push_back(rate.noise);
      }
    }
  }
}

struct MemoryLevel {
  std::string name;
  double bytes = 0;  // of the buffer that measures the level
};

/// Returns buffer sizes per memory level. A cache level uses half of the cache, because the rest of
/// the program shares it. Sizes are per thread for L1 and L2, and of all threads together for L3
/// and memory, which all cores share. Memory: much larger than the last-level cache.
std::vector<MemoryLevel> memory_levels(const Machine& machine) {
  const double last = std::max({machine.l3_bytes, machine.l2_bytes, 1 * mebibyte});
  return {{"L1", machine.l1_bytes / 2},
          {"L2", machine.l2_bytes / 2},
          {"L3", machine.l3_bytes / 2},
          {"memory", std::min(std::max(8 * last, 256 * mebibyte), machine.memory_bytes / 4)}};
}

void measure_bandwidth(Machine& machine, const MachineProgress& progress,
                       std::vector<double>& noise) {
  for (const int threads : thread_counts(machine.cores)) {
    for (const auto& [name, bytes] : memory_levels(machine)) {
      const double each = name == "L1" || name == "L2" ? bytes : bytes / threads;
      if (each == 0) continue;
      for (const Access access : {Access::read, Access::copy}) {
        const char* word = access == Access::read ? "read" : "copy";
        progress(fmt::format("{} of {}", word, name));
        const bool streaming = name == "memory";
        const Rate rate =
            bandwidth_rate(access, static_cast<std::size_t>(each), threads, streaming);
        machine.bandwidth.push_back({name, word, threads, each * threads, rate.per_second});
        noise.push_back(rate.noise);
      }
    }
  }
}

/// Measures each GPU. If a measurement fails (for example, out of memory), `forget` clears the
/// GPU's rates; its rungs can still be timed.
template <class Forget>
void for_each_gpu(Machine& machine, const MachineProgress& progress, GpuMeter::Measure measure,
                  Forget forget) {
  for (std::size_t device = 0; device < machine.gpus.size() && measure != nullptr; ++device) {
    progress(machine.gpus[device].name);
    try {
      measure(static_cast<int>(device), machine.gpus[device]);
    } catch (const Error&) {
      forget(machine.gpus[device]);
    }
  }
}

}  // namespace

GpuMeter::GpuMeter(Measure measure) { gpu_meter = measure; }
GpuLatencyMeter::GpuLatencyMeter(GpuMeter::Measure measure) { gpu_latency_meter = measure; }

Machine describe_machine() {
  Machine machine;
  machine.cpu = value_of("/proc/cpuinfo", "model name");
  if (machine.cpu.empty()) machine.cpu = "unknown CPU";
  machine.cores = Context::cpu().threads();
  machine.isa = cpu::to_string(best_isa());
  machine.l1_bytes = cache_bytes(1);
  machine.l2_bytes = cache_bytes(2);
  machine.l3_bytes = cache_bytes(3);
  machine.memory_bytes =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (const DeviceApi* api = device_api(Backend::cuda); api != nullptr) {
    for (int device = 0; device < api->device_count(); ++device) {
      const DeviceInfo info = api->info(device);
      Gpu gpu;
      gpu.name = info.name;
      gpu.compute_capability = info.compute_capability;
      gpu.multiprocessors = info.sms;
      gpu.l2_bytes = static_cast<double>(info.l2_bytes);
      gpu.memory_bytes = static_cast<double>(info.memory_bytes);
      machine.gpus.push_back(gpu);
    }
  }
#if defined(__clang__)
  machine.compiler = "clang " __clang_version__;
#else
  machine.compiler = "g++ " __VERSION__;
#endif
  machine.version = RUNG_VERSION;
  machine.date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
  return machine;
}

void measure_machine(Machine& machine, const MachineProgress& progress) {
  machine.arithmetic.clear();
  machine.bandwidth.clear();
  std::vector<double> noise;
  measure_arithmetic(machine, progress, noise);
  measure_bandwidth(machine, progress, noise);
  machine.noise = median(noise);
  for_each_gpu(machine, progress, gpu_meter, [](Gpu& gpu) { gpu.arithmetic.clear(); });
}

void measure_latencies(Machine& machine, const MachineProgress& progress) {
  machine.latencies.clear();
  machine.atomics.clear();
  for (const auto& [name, bytes] : memory_levels(machine)) {
    progress("latency of " + name);
    // A chain of twice the last-level cache suffices, and takes a fraction of the time to link.
    const double enough = name == "memory" ? std::max(bytes / 4, 256 * mebibyte) : bytes;
    const std::size_t chain = std::bit_floor(static_cast<std::size_t>(enough));
    const Rate rate = latency_rate(chain);
    if (rate.per_second <= 0) continue;
    machine.latencies.push_back({name, static_cast<double>(chain), 1 / rate.per_second, 0});
  }
  progress("atomic additions");
  for (const int threads : thread_counts(machine.cores)) {
    for (const bool one_address : {true, false}) {
      machine.atomics.push_back({one_address ? "one address" : "an address per thread", threads,
                                 atomic_rate(one_address, threads).per_second});
    }
  }
  for_each_gpu(machine, progress, gpu_latency_meter, [](Gpu& gpu) {
    gpu.latencies.clear();
    gpu.atomics.clear();
    gpu.link.clear();
  });
}

}  // namespace rung::bench
