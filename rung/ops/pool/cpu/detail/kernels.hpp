// SPDX-License-Identifier: Apache-2.0
// Kernels of pool that several rungs run, each defined in the rung that introduces it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rung/cpu/team.hpp"
#include "rung/ops/pool/op/pool.hpp"

namespace rung::pool_cpu {

/// Elements of a thread's lines beyond what they hold, so that full vectors may be loaded behind
/// their end: 16 f32 at most, twice as many where every second element is taken.
inline constexpr std::int64_t slack = 64;
/// Largest line, or lines of a window, per thread, and largest copy of weights, in elements.
inline constexpr std::int64_t max_line_elements = 1 << 17;
/// Windows, or channels, whose results are kept together.
inline constexpr std::int64_t block_results = 1 << 12;

/// A kernel makes units of work, output rows of one channel or of all, on the calling thread.
/// `weights`: in the arithmetic type, contiguous; null where there are none. Scratch memory is
/// bounded by a constant, whatever the extents are: x and weights may be broadcast, so that a
/// multiple of an extent is no multiple of what is read.
struct Kernel {
  void (*make)(const Pool::Args& args, const void* weights, cpu::Range units, std::byte* scratch);
  std::int64_t units;
  std::int64_t scratch_elements;  // of the arithmetic type, per thread
  bool copies_weights = true;
};
/// 015: any call.
Kernel clipped(const Pool::Args& args);
/// 025: calls whose lines fit, with finite weights, as padding times a weight must be 0.
Kernel separable(const Pool::Args& args);
/// shapes/contiguous_channels: at most max_line_elements weights.
Kernel contiguous_channels(const Pool::Args& args);
inline bool has_contiguous_channels(const Pool::Args& args) {
  constexpr std::int64_t min_channels = 8;  // fewer leave most of a vector idle
  return args.x.strides[1] == 1 && args.y.strides[1] == 1 && args.channels() >= min_channels;
}

/// 025: the fastest of them for a call, its facts, and how many threads it has work for.
Kernel kernel_for(const Pool::Args& args);
Work facts(const Pool::Args& args, int threads);
int threads_of(const Pool::Args& args, const Context& context);

/// Runs a kernel on so many threads.
void run_kernel(const Kernel& kernel, const Pool::Args& args, Context& context, int threads);

}  // namespace rung::pool_cpu
