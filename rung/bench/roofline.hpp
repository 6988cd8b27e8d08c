// SPDX-License-Identifier: Apache-2.0
// The roofline: how fast a problem could run at best on a machine whose ceilings were measured.
#pragma once

#include <string>
#include <string_view>

#include "rung/bench/machine.hpp"
#include "rung/core/operator.hpp"

namespace rung::bench {

struct Ceiling {
  double operations_per_second = 0;  // 0: not known
  double bytes_per_second = 0;       // 0: not known
  std::string element;               // what is computed in: "f32"
  std::string arithmetic;            // what the rates are of: "avx512 multiply-adds in f32"
  std::string memory;                // "L2"
};

/// Returns the ceiling of a problem on the CPU: multiply-adds of `isa`, and bandwidth of the level
/// of memory that holds `bytes`. `written` is the share of the bytes that is written: the ceilings
/// of reading and copying are interpolated.
Ceiling cpu_ceiling(const Machine& machine, std::string_view isa, std::string_view element,
                    int threads, double bytes, double written);

/// Returns the ceiling of a problem on a GPU; buffers are assumed not to stay in its cache.
Ceiling gpu_ceiling(const Gpu& gpu, std::string_view element, double written);

/// Seconds that the costlier of the two takes at its ceiling; 0 when no ceiling is known for it.
/// Of integers no rate is measured: up to one operation a byte is taken to cost less than the byte.
double seconds_at_best(const Cost& cost, const Ceiling& ceiling);
/// Returns whether moving the bytes takes longer than the operations.
bool bound_by_memory(const Cost& cost, const Ceiling& ceiling);

// The roofline model for numbers given by hand. Source: Williams, Waterman & Patterson, CACM 52(4),
// 2009.

/// FLOP per byte where both operands of a multiply-add, of `element` bytes each, serve `reuse` of
/// them once loaded: 2 reuse / (2 element).
constexpr double intensity_of_reuse(double reuse, double element) { return reuse / element; }
/// The intensity from which on the peak binds.
constexpr double ridge_point(double peak, double bytes_per_second) {
  return peak / bytes_per_second;
}
/// Operations per second at most: min(intensity x bandwidth, peak).
constexpr double roofline_rate(double intensity, double bytes_per_second, double peak) {
  const double fed = intensity * bytes_per_second;
  return fed < peak ? fed : peak;
}

}  // namespace rung::bench
