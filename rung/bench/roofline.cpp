// SPDX-License-Identifier: Apache-2.0
// Selection of the ceilings of a problem.
#include "rung/bench/roofline.hpp"

#include <algorithm>

namespace rung::bench {
namespace {

/// Returns the rate with `threads` threads: the measured one, or else the rate of one thread times
/// `threads`, clamped to the largest measured rate.
template <class Rate, class Matches, class Value>
double with_threads(const std::vector<Rate>& rates, int threads, Matches matches, Value value) {
  double one = 0;
  double all = 0;
  for (const Rate& rate : rates) {
    if (!matches(rate)) continue;
    if (rate.threads == 1) one = value(rate);
    if (rate.threads == threads) return value(rate);
    all = std::max(all, value(rate));
  }
  return std::min(one * threads, all);
}

/// Returns the rate of a mix of reads and copies by linear interpolation of seconds per byte.
double mixed(double read, double copy, double written) {
  if (read <= 0 || copy <= 0) return std::max(read, copy);
  const double copied = std::clamp(2 * written, 0.0, 1.0);
  return 1 / ((1 - copied) / read + copied / copy);
}

double arithmetic(const Machine& machine, std::string_view isa, std::string_view element,
                  int threads) {
  return with_threads(
      machine.arithmetic, threads,
      [&](const ArithmeticRate& rate) { return rate.isa == isa && rate.element == element; },
      [](const ArithmeticRate& rate) { return rate.operations_per_second; });
}

/// Returns whether bandwidth is the bottleneck although no arithmetic rate was measured, as for
/// integers.
bool arithmetic_is_free(const Cost& cost, const Ceiling& ceiling) {
  return ceiling.operations_per_second <= 0 && ceiling.bytes_per_second > 0 &&
         cost.operations <= cost.bytes;
}

}  // namespace

Ceiling cpu_ceiling(const Machine& machine, std::string_view isa, std::string_view element,
                    int threads, double bytes, double written) {
  Ceiling ceiling;
  // Small floats are widened to f32, unless the CPU multiplies them natively.
  std::string_view computed = element;
  if (element == "bf16" || element == "f16" || element == "e4m3" || element == "e5m2") {
    computed = arithmetic(machine, isa, element, threads) > 0 ? element : "f32";
  }
  ceiling.operations_per_second = arithmetic(machine, isa, computed, threads);
  ceiling.element = computed;
  ceiling.arithmetic = std::string(isa) + " multiply-adds in " + ceiling.element;

  const struct {
    const char* name;
    double holds;
  } levels[] = {{"L1", machine.l1_bytes * threads},
                {"L2", machine.l2_bytes * threads},
                {"L3", machine.l3_bytes}};
  ceiling.memory = "memory";
  for (const auto& [name, holds] : levels) {
    if (bytes > holds) continue;
    ceiling.memory = name;
    break;
  }
  const auto bandwidth = [&](std::string_view access) {
    return with_threads(
        machine.bandwidth, threads,
        [&](const BandwidthRate& rate) {
          return rate.level == ceiling.memory && rate.access == access;
        },
        [](const BandwidthRate& rate) { return rate.bytes_per_second; });
  };
  ceiling.bytes_per_second = mixed(bandwidth("read"), bandwidth("copy"), written);
  return ceiling;
}

Ceiling gpu_ceiling(const Gpu& gpu, std::string_view element, double written) {
  Ceiling ceiling;
  for (const GpuRate& rate : gpu.arithmetic) {
    if (rate.element == element) ceiling.operations_per_second = rate.operations_per_second;
  }
  ceiling.element = element;
  ceiling.arithmetic = "multiply-adds in " + ceiling.element;
  ceiling.bytes_per_second = mixed(gpu.read_bytes_per_second, gpu.copy_bytes_per_second, written);
  ceiling.memory = "memory";
  return ceiling;
}

double seconds_at_best(const Cost& cost, const Ceiling& ceiling) {
  double seconds = 0;
  if (cost.operations > 0 && !arithmetic_is_free(cost, ceiling)) {
    if (ceiling.operations_per_second <= 0) return 0;
    seconds = cost.operations / ceiling.operations_per_second;
  }
  if (ceiling.bytes_per_second > 0) {
    seconds = std::max(seconds, cost.bytes / ceiling.bytes_per_second);
  }
  return seconds;
}

bool bound_by_memory(const Cost& cost, const Ceiling& ceiling) {
  if (cost.operations <= 0 || arithmetic_is_free(cost, ceiling)) return true;
  if (ceiling.operations_per_second <= 0 || ceiling.bytes_per_second <= 0) return false;
  return cost.bytes / ceiling.bytes_per_second > cost.operations / ceiling.operations_per_second;
}

}  // namespace rung::bench
