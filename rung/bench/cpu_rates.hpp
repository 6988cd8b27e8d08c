// SPDX-License-Identifier: Apache-2.0
// Measurement of the CPU's ceilings (machine.hpp).
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "rung/bench/alternate.hpp"
#include "rung/cpu/isa.hpp"

namespace rung::bench {

/// Best rate of several samples, and their noise: median time / least time - 1.
struct Rate {
  double per_second = 0;
  double noise = 0;
};

/// Measures FLOP per second of multiply-adds with `threads` threads. Element: f32, f64 or bf16.
/// Returns 0 if the CPU lacks the instructions.
Rate arithmetic_rate(cpu::Isa isa, std::string_view element, int threads);

/// The arithmetic ceiling as a contender. A machine's rate may have changed since its ceilings were
/// measured; kernels are therefore timed in the same rounds as the ceiling they are compared to.
struct Pace {
  Contender contender;
  double operations = 0;  // per repeat; 0: the CPU lacks the instructions
};

/// Returns the arithmetic ceiling of the instruction set in use. A repeat runs about `operations`
/// operations, but at most 2e9 per thread, some 20 ms at 1e11 per second.
Pace arithmetic_pace(std::string_view element, int threads, double operations);

enum class Access { read, copy };

/// Measures bytes per second of `threads` threads, each on its own buffer of `bytes_each` bytes
/// (copy: half source, half destination). `streaming`: stores are non-temporal.
Rate bandwidth_rate(Access access, std::size_t bytes_each, int threads, bool streaming);

/// Measures dependent loads per second of one thread that follows a chain through `bytes`, rounded
/// down to a power of two of lines: the reciprocal of a level's latency.
Rate latency_rate(std::size_t bytes);

/// Measures atomic additions per second of all `threads` threads, to one address or each to its own
/// cache line.
Rate atomic_rate(bool one_address, int threads);

/// Returns the best rate of several samples of `work` each; `seconds` holds the time of each
/// sample.
Rate best_rate(const std::vector<double>& seconds, double work);

/// Runs work(rank, repeats, data) on all threads concurrently, with enough repeats for 20 ms, in
/// several samples; returns the seconds per repeat of each sample.
std::vector<double> time_on_threads(int threads, void (*work)(int rank, long repeats, void* data),
                                    void* data);

}  // namespace rung::bench
