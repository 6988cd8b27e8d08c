// SPDX-License-Identifier: Apache-2.0
// reduce / naive
//
// Idea     The definition: one loop over the terms of each result, a single accumulator.
// Changes  Baseline.
// Cost     Each element is loaded once, but each addition depends on the previous one: 2 to 4
//          cycles per element, in which memory could deliver ten.
// Limits   Sums of f32 and f64, terms at a constant stride. The error bound is n u for n terms: an
//          f32 sum of 2^25 ones stops at 2^24.
// Source   any textbook.
#include "rung/ops/reduce/cpu/detail/textbook.hpp"

namespace rung {
namespace {

template <class T>
void naive(const Reduce::Args& args) {
  const std::int64_t n = args.terms.size();
  const std::int64_t stride = args.terms.rank == 0 ? 1 : args.terms.strides[0][0];
  for (std::int64_t result = 0; result < args.kept.size(); ++result) {
    std::int64_t at[2];  // element offsets: first term in x, result in y
    args.kept.offsets(result, at);
    const T* x = static_cast<const T*>(args.x.data) + at[0];
    T sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += x[i * stride];
    static_cast<T*>(args.y.data)[at[1]] = sum;
  }
}

void run(const Reduce::Args& args, Context&) {
  visit<float, double>(args.x.dtype, [&]<class T>() { naive<T>(args); });
}

Support supports(const Reduce::Args& args, const Context& context) {
  if (args.terms.rank > 1) return unsupported("the terms of a result must be at one stride");
  return reduce_cpu::require_float_sums(args, context);
}

const Rung<Reduce> self{
    {.name = "naive", .step = 10, .teaching = true, .supports = supports, .run = run}};
}  // namespace
}  // namespace rung
