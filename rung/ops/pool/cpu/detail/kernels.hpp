// SPDX-License-Identifier: Apache-2.0
// Kernels of pool used by several rungs, each defined in the rung that introduces it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rung/cpu/team.hpp"
#include "rung/ops/pool/op/pool.hpp"

namespace rung::pool_cpu {

/// Padding at the end of a thread's lines, in elements, so that full vectors may be loaded past the
/// end: at most 16 f32, or 32 with a stride of 2.
inline constexpr std::int64_t slack = 64;
/// Maximum length of a line, or of a window's lines, per thread, and of a copy of weights, in
/// elements.
inline constexpr std::int64_t max_line_elements = 1 << 17;
/// Number of windows, or channels, whose results are stored together.
inline constexpr std::int64_t block_results = 1 << 12;

/// Kernel that computes units of work, output rows of one channel or of all, on the calling thread.
/// `weights` are contiguous, in the arithmetic type; null if there are none. Scratch memory is
/// bounded by a constant: x and weights may be broadcast, so extents do not bound the memory that
/// is read.
struct Kernel {
  void (*make)(const Pool::Args& args, const void* weights, cpu::Range units, std::byte* scratch);
  std::int64_t units;
  std::int64_t scratch_elements;  // per thread, in elements of the arithmetic type
  bool copies_weights = true;
};
/// Returns the kernel of 015_clipped, which supports every call.
Kernel clipped(const Pool::Args& args);
/// Returns the kernel of 025_separable, for calls whose lines fit and whose weights are finite:
/// padding times a weight must be 0.
Kernel separable(const Pool::Args& args);
/// Returns the kernel of shapes/contiguous_channels, for at most max_line_elements weights.
Kernel contiguous_channels(const Pool::Args& args);
inline bool has_contiguous_channels(const Pool::Args& args) {
  constexpr std::int64_t min_channels = 8;  // fewer leave most of a vector idle
  return args.x.strides[1] == 1 && args.y.strides[1] == 1 && args.channels() >= min_channels;
}

/// Three functions of a call: the fastest kernel, its work for the time model, and the number of
/// threads that amortize their wake-up. Defined in 025.
Kernel kernel_for(const Pool::Args& args);
Work facts(const Pool::Args& args, int threads);
int threads_of(const Pool::Args& args, const Context& context);

/// Runs a kernel on `threads` threads.
void run_kernel(const Kernel& kernel, const Pool::Args& args, Context& context, int threads);

}  // namespace rung::pool_cpu
