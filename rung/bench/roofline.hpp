// SPDX-License-Identifier: Apache-2.0
// The roofline: a bound on the speed of a problem from the machine's measured ceilings.
#pragma once

#include <string>
#include <string_view>

#include "rung/bench/machine.hpp"
#include "rung/core/operator.hpp"

namespace rung::bench {

struct Ceiling {
  double operations_per_second = 0;  // 0: unknown
  double bytes_per_second = 0;       // 0: unknown
  std::string element;               // type of the arithmetic: "f32"
  std::string arithmetic;            // description of the rate: "avx512 multiply-adds in f32"
  std::string memory;                // memory level of the bandwidth: "L2"
};

/// Returns the ceiling of a problem on the CPU: multiply-adds of `isa`, and bandwidth of the memory
/// level that holds `bytes`, interpolated between reads and copies by `written`, the fraction of
/// the bytes that is written.
Ceiling cpu_ceiling(const Machine& machine, std::string_view isa, std::string_view element,
                    int threads, double bytes, double written);

/// Returns the ceiling of a problem on a GPU; data is assumed not to be in the cache.
Ceiling gpu_ceiling(const Gpu& gpu, std::string_view element, double written);

/// Returns the larger of the times of bytes and operations at their ceilings; 0 if the arithmetic
/// ceiling is needed but unknown. Integer rates are not measured: up to one operation per byte is
/// assumed to take less time than the byte.
double seconds_at_best(const Cost& cost, const Ceiling& ceiling);
/// Returns whether the problem is memory-bound.
bool bound_by_memory(const Cost& cost, const Ceiling& ceiling);

// The roofline model for given numbers. Source: Williams, Waterman & Patterson, CACM 52(4), 2009.

/// Returns the FLOP per byte if both operands of a multiply-add, of `element` bytes each, are used
/// `reuse` times per load: 2 reuse / (2 element).
constexpr double intensity_of_reuse(double reuse, double element) { return reuse / element; }
/// Returns the ridge point: the intensity above which a kernel is compute-bound.
constexpr double ridge_point(double peak, double bytes_per_second) {
  return peak / bytes_per_second;
}
/// Returns the maximum FLOP per second: min(intensity x bandwidth, peak).
constexpr double roofline_rate(double intensity, double bytes_per_second, double peak) {
  const double fed = intensity * bytes_per_second;
  return fed < peak ? fed : peak;
}

}  // namespace rung::bench
