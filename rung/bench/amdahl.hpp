// SPDX-License-Identifier: Apache-2.0
// Speedup by more processors, for a given parallel share of the work.
#pragma once

namespace rung::bench {

/// Amdahl: the same work, of which `parallel` (of its time on one processor) is sped up.
constexpr double amdahl_speedup(double parallel, double factor) {
  return 1 / ((1 - parallel) + parallel / factor);
}

/// However many processors there are; infinite when all of the work is parallel.
constexpr double amdahl_limit(double parallel) { return 1 / (1 - parallel); }

/// Gustafson: work that grows with the processors, which spend `parallel` of their time on what
/// they share; how much longer one processor would take.
constexpr double gustafson_speedup(double parallel, double processors) {
  return (1 - parallel) + parallel * processors;
}

/// Karp and Flatt: the serial part that a measured speed-up tells of. More than one processor.
constexpr double karp_flatt_serial(double speedup, double processors) {
  return (1 / speedup - 1 / processors) / (1 - 1 / processors);
}

}  // namespace rung::bench
