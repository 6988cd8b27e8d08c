// SPDX-License-Identifier: Apache-2.0
// reduce / pairwise
//
// Idea     the sum of n numbers is that of the first half and that of the second: an addend takes
//          part in log2(n) additions instead of n. Below 1024 elements the halves are no longer cut
//          but added up in vectors.
// Changes  against simd: the error bound. (log2(n / 1024) + 24) u with AVX-512, at most 45 u for
//          any n that fits a memory, where simd's grows with n / 64.
// Cost     a call for every 1024 elements: nothing beside loading them.
// Limits   sums and means of contiguous rows of f32 and f64.
// Source   N. Higham, "The accuracy of floating point summation", SIAM J. Sci. Comput. 14 (1993).
#include "rung/ops/reduce/cpu/detail/kernels.hpp"
#include "rung/ops/reduce/cpu/detail/textbook.hpp"

namespace rung {
namespace {
using namespace reduce_cpu;

constexpr std::int64_t leaf = 1024;

/// T is what partial sums are rounded to.
template <class T, class Leaf>
T pairwise(const T* x, std::int64_t n, const Leaf& leaf_sum) {
  if (n <= leaf) return static_cast<T>(leaf_sum(x, n));
  const std::int64_t half = n / 2 / leaf * leaf + (n / 2 < leaf ? leaf : 0);
  return pairwise(x, half, leaf_sum) + pairwise(x + half, n - half, leaf_sum);
}

double estimate(const Reduce::Args& args, const Context&) {
  return 2e-7 + Reduce::cost(args).bytes / 35e9;
}

void run(const Reduce::Args& args, Context&) {
  visit<float, double>(args.x.dtype, [&]<class T>() {
    const auto leaf_sum = [&](const T* x, std::int64_t n) {
      double value = 0;
      double rest = 0;
      fold_rows(args.x.dtype, Fold::sum,
                {.x = x, .stride = 0, .rows = 1, .length = n, .value = &value, .rest = &rest});
      return value;
    };
    for_each_result<T>(args, [&](const T* x, std::int64_t n) {
      return static_cast<double>(pairwise(x, n, leaf_sum));
    });
  });
}

const Rung<Reduce> self{{.name = "pairwise",
                         .step = 40,
                         .after = "simd",
                         .supports = require_contiguous_rows,
                         .estimate = estimate,
                         .run = run}};
}  // namespace
}  // namespace rung
