// SPDX-License-Identifier: Apache-2.0
// Measuring the CPU's ceilings: see machine.hpp for what the numbers mean.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "rung/bench/alternate.hpp"
#include "rung/cpu/isa.hpp"

namespace rung::bench {

/// The best of several samples, and how far they were apart: median time / least time - 1.
struct Rate {
  double per_second = 0;
  double noise = 0;
};

/// Multiply-adds per second, times two, of `threads` threads. Element: f32, f64 or bf16. 0 when
/// the CPU lacks the instructions.
Rate arithmetic_rate(cpu::Isa isa, std::string_view element, int threads);

/// The arithmetic's ceiling as one more contender: a machine's rate may change between the day its
/// ceilings were measured and the race, so what is held against the ceiling takes turns with it.
struct Pace {
  Contender contender;
  double operations = 0;  // of one repeat; 0: the CPU lacks the instructions
};

/// Multiply-adds of the instruction set in use; a repeat does about as many operations as are
/// asked for, but no more than 2e9 a thread: some 20 ms at 1e11 a second.
Pace arithmetic_pace(std::string_view element, int threads, double operations);

enum class Access { read, copy };

/// Bytes per second of `threads` threads, each on its own `bytes_each` bytes (for copy: half of
/// them source, half destination). `streaming`: stores are non-temporal.
Rate bandwidth_rate(Access access, std::size_t bytes_each, int threads, bool streaming);

/// Loads per second of one thread that follows a chain through `bytes`, rounded down to a power of
/// two of lines: one over the latency of a level.
Rate latency_rate(std::size_t bytes);

/// Atomic additions per second of `threads` threads together, to one address or each to a line of
/// its own.
Rate atomic_rate(bool one_address, int threads);

/// Returns the best rate of samples that took `seconds` each for `work`.
Rate best_rate(const std::vector<double>& seconds, double work);

/// Runs work(rank, repeats) on every thread at once, with so many repeats that it takes a few
/// hundredths of a second, several times; returns the seconds per repeat of each.
std::vector<double> time_on_threads(int threads, void (*work)(int rank, long repeats, void* data),
                                    void* data);

}  // namespace rung::bench
