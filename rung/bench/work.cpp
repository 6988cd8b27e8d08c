// SPDX-License-Identifier: Apache-2.0
// Counts additions and steps of scans, stride by stride.
#include "rung/bench/work.hpp"

#include <cmath>

namespace rung::bench {

double ceil_log2(double n) {
  double steps = 0;
  for (double power = 1; power < n; power *= 2) ++steps;
  return steps;
}

ParallelWork kogge_stone(double n) {
  ParallelWork work;
  for (double stride = 1; stride < n; stride *= 2) {
    work.additions += n - stride;
    ++work.steps;
  }
  return work;
}

ParallelWork brent_kung(double n) {
  ParallelWork work;
  const auto add = [&](double count) {
    work.additions += count;
    if (count > 0) ++work.steps;
  };
  // Up-sweep: the last element of each group of 2 stride adds the middle one.
  double stride = 1;
  for (; stride < n; stride *= 2) add(std::floor(n / (2 * stride)));
  // Down-sweep: x[2 stride j + stride - 1] += x[2 stride j - 1], for j = 1, 2, ...
  for (; stride >= 1; stride /= 2) add(n > stride ? std::floor((n - stride) / (2 * stride)) : 0);
  return work;
}

ParallelWork tree_sum(double n) { return {n - 1, ceil_log2(n)}; }

double serialized_steps(double n, double c) { return c * ceil_log2(n); }

double coarsened_steps(double n, double c) { return 2 * (c - 1) + ceil_log2(n); }

}  // namespace rung::bench
