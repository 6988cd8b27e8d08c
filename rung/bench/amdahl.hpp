// SPDX-License-Identifier: Apache-2.0
// Speedup by more processors, for a given parallel fraction of the work.
#pragma once

namespace rung::bench {

/// Returns the speedup by Amdahl's law if the fraction `parallel` of the time is sped up by
/// `factor`.
constexpr double amdahl_speedup(double parallel, double factor) {
  return 1 / ((1 - parallel) + parallel / factor);
}

/// Returns the limit of Amdahl's speedup for any number of processors; infinite for parallel = 1.
constexpr double amdahl_limit(double parallel) { return 1 / (1 - parallel); }

/// Returns the scaled speedup by Gustafson's law: the work grows with the processors, which spend
/// the fraction `parallel` of their time in parallel work.
constexpr double gustafson_speedup(double parallel, double processors) {
  return (1 - parallel) + parallel * processors;
}

/// Returns the serial fraction of a measured speedup (Karp-Flatt metric); more than one processor.
constexpr double karp_flatt_serial(double speedup, double processors) {
  return (1 / speedup - 1 / processors) / (1 - 1 / processors);
}

}  // namespace rung::bench
