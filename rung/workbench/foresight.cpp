// SPDX-License-Identifier: Apache-2.0
// Expected time of a rung, from smaller problems: a textbook loop that needs a second for a 1024
// cube needs minutes for a 4096 cube, and nobody wants to wait for them.
#include <algorithm>

#include "rung/bench/clock.hpp"
#include "rung/workbench/bench.hpp"

namespace rung::workbench {
namespace {

constexpr double first_elements = 2e6;  // product of the extents of the first, smallest problem
constexpr std::int64_t least_extent = 16;
/// A smaller problem may fit a cache that the whole one does not.
constexpr double caution = 4;

Problem halved(const Problem& problem, int times) {
  Problem smaller = problem;
  for (std::int64_t& extent : smaller.extents) {
    extent = std::max(extent >> times, std::min(extent, least_extent));
  }
  return smaller;
}

double product(const Problem& problem) {
  double all = 1;
  for (const std::int64_t extent : problem.extents) all *= static_cast<double>(extent);
  return all;
}

double work(const Cost& cost) { return std::max({cost.operations, cost.bytes, 1.0}); }

}  // namespace

Foresight foresee(const AnyOperator& op, const RungInfo& rung, const Problem& problem,
                  const Cost& cost, Context& context, double longest_call) {
  int times = 0;
  while (product(halved(problem, times)) > first_elements && times < 30) ++times;
  Foresight foresight;
  for (; times > 0; --times) {
    const Problem smaller = halved(problem, times);
    const auto instance = op.make(smaller, {}, 1, context.device());
    if (!instance->supports(rung, context)) continue;
    const double begin = bench::now();
    instance->run(rung, context);
    context.synchronize();
    const double seconds = bench::now() - begin;
    const Cost smaller_cost = instance->cost();
    foresight = {seconds * work(cost) / work(smaller_cost), smaller.to_string(), seconds,
                 smaller_cost.operations};
    if (foresight.seconds * caution < longest_call) break;
    // The next step costs about eight times as much: when that is too long already, so is the rest.
    const Problem next = halved(problem, times - 1);
    const double next_seconds = seconds * product(next) / std::max(product(smaller), 1.0);
    if (next_seconds > longest_call) break;
  }
  return foresight;
}

}  // namespace rung::workbench
