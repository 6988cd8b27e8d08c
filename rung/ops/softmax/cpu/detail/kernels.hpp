// SPDX-License-Identifier: Apache-2.0
// The interface between how a call is divided (090_threads.cpp) and its kernels, which are compiled
// once for each instruction set (080_row_pipeline.cpp).
#pragma once

#include <cstdint>

#include "rung/cpu/row_work.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/softmax/op/softmax.hpp"

namespace rung::softmax_cpu {

/// A call as the kernels see it.
struct Call {
  const Softmax::Args* args;
  bool stream;  // y would not stay in the caches: non-temporal stores
};

/// Prefetch distance in bytes (4096x4096 f32 on a 2-core Zen 5 vCPU, one thread: 2.7 ms with 4 KiB,
/// 2.5 with 8, 2.7 with 16).
inline constexpr std::int64_t prefetch_distance = 8 << 10;

/// Elements from one row's exponentials to the next row's, where both are kept: full cache lines.
inline std::int64_t padded_length(std::int64_t length) { return (length + 15) / 16 * 16; }

/// What several threads share for a long row: a maximum and a sum per piece.
inline std::int64_t shared_elements(const Softmax::Args& args) {
  return 2 * cpu::row_pieces(args.length());
}

/// A kernel does one thread's share of a call; which one depends on its types and the instruction
/// set (080_row_pipeline.cpp).
using Work = void(const Call& call, const cpu::RowWork& plan, const cpu::Team& team, void* scratch,
                  void* shared);
/// For x of type T: float, double, f16 or bf16.
template <class T>
Work* kernel_for(DType y);

/// How many of `threads` the call has work for.
int useful_threads(const Softmax::Args& args, int threads);

/// The whole call, on up to so many threads.
void run(const Softmax::Args& args, Context& context, int threads);

}  // namespace rung::softmax_cpu
