// SPDX-License-Identifier: Apache-2.0
// elementwise / simd
//
// Idea     vectors of neighboring elements: one instruction loads 16 f32, another computes on all.
// Changes  against naive: the widest vectors that the machine has, every type and function - a
//          kernel for both is looked up once - and exp, tanh, sigmoid and gelu in vector
//          arithmetic.
// Cost     every operand once and the result once; the cache line of the result is also read, as
//          an ordinary store first fetches what it overwrites.
// Limits   tensors whose elements are adjacent, in one order for all; one thread.
// Source   Intel, Optimization Reference Manual, on vectorized loops.
#include "rung/ops/elementwise/cpu/detail/estimate.hpp"
#include "rung/ops/elementwise/cpu/detail/kernels.hpp"

namespace rung {
namespace {

Support supports(const Elementwise::Args& args, const Context&) {
  return args.flat() ? supported
                     : unsupported("takes contiguous tensors of one order, without broadcasting");
}

double estimate(const Elementwise::Args& args, const Context&) {
  return elementwise_cpu::one_core_seconds(args);
}

void run(const Elementwise::Args& args, Context&) {
  const auto in = [&](int i) {
    return args.in[static_cast<std::size_t>(i < args.arity() ? i : 0)].data;
  };
  const elementwise_cpu::Kernel kernel = elementwise_cpu::find_kernel(args.function, args.z.dtype);
  kernel(in(0), in(1), in(2), args.z.data, args.size(), args.alpha, false);
}

const Rung<Elementwise> self{{.name = "simd",
                              .step = 20,
                              .after = "naive",
                              .supports = supports,
                              .estimate = estimate,
                              .run = run}};

}  // namespace
}  // namespace rung
