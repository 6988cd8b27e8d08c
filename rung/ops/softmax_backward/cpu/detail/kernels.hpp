// SPDX-License-Identifier: Apache-2.0
// The interface between how a call is divided (040_threads.cpp) and its kernels, which are compiled
// once for each instruction set (030_row_pipeline.cpp).
#pragma once

#include "rung/cpu/row_work.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/softmax_backward/op/softmax_backward.hpp"

namespace rung::softmax_backward_cpu {

/// A call as the kernels see it.
struct GradientCall {
  const SoftmaxBackward::Args* args;
  bool stream;  // dx would not stay in the caches: non-temporal stores
};

/// A kernel does one thread's share of a call. `scratch` is the thread's, `shared` a sum per piece
/// of a long row.
using Kernel = void(const GradientCall& call, const cpu::RowWork& work, const cpu::Team& team,
                    void* scratch, void* shared);
/// Returns the kernel for y of type T (float, double, f16 or bf16) and the type of dx.
template <class T>
Kernel* kernel_for(DType dx);

/// Returns how many of `threads` the call has work for.
int useful_threads(const SoftmaxBackward::Args& args, int threads);

/// Runs the whole call on up to so many threads.
void run(const SoftmaxBackward::Args& args, Context& context, int threads);

/// Estimates the time of a call. Of a 2-core Zen 5 vCPU: what an element costs in L2, and what
/// waking a second thread does.
inline double seconds(const SoftmaxBackward::Args& args, int threads) {
  constexpr double seconds_per_element = 0.12e-9;
  constexpr double seconds_to_join = 4e-6;
  const double elements = static_cast<double>(args.length()) * static_cast<double>(args.count());
  const double wide = args.y.dtype == DType::f64 ? 3 : 1;
  return elements * wide * seconds_per_element / threads + (threads > 1 ? seconds_to_join : 0);
}

}  // namespace rung::softmax_backward_cpu
