// SPDX-License-Identifier: Apache-2.0
// Expected time of a rung, from smaller problems: a textbook loop that needs a second for a 1024
// cube needs minutes for a 4096 cube, and nobody wants to wait for them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rung/bench/clock.hpp"
#include "rung/core/error.hpp"
#include "rung/workbench/bench.hpp"
#include "rung/workbench/selection.hpp"

namespace rung::workbench {
namespace {

constexpr double first_elements = 2e6;   // product of the extents of the first, smallest problem
constexpr double first_simulated = 3e4;  // of that on the simulated GPU
constexpr std::int64_t min_extent = 16;
/// A smaller problem may fit a cache that the whole one does not.
constexpr double caution = 4;

Problem halved(const Problem& problem, int times) {
  Problem smaller = problem;
  for (std::int64_t& extent : smaller.extents) {
    extent = std::max(extent >> times, std::min(extent, min_extent));
  }
  return smaller;
}

double product(const Problem& problem) {
  double all = 1;
  for (const std::int64_t extent : problem.extents) all *= static_cast<double>(extent);
  return all;
}

/// None where sizes depend on each other, as groups and channels do, and the halves do not match.
std::unique_ptr<Instance> make_halved(const AnyOperator& op, const Problem& problem, int times,
                                      Context& context) {
  try {
    return op.make(halved(problem, times), {}, 1, context.device());
  } catch (const Error&) {
    if (times == 0) throw;
    return nullptr;
  }
}

double work(const Cost& cost) { return std::max({cost.operations, cost.bytes, 1.0}); }

/// How often the extents must be halved until the product of the extents is at most `elements`.
int halvings(const Problem& problem, double elements) {
  int times = 0;
  while (product(halved(problem, times)) > elements && times < 30) ++times;
  return times;
}

}  // namespace

SmallerProblems::SmallerProblems(const AnyOperator& op, const Problem& problem, const Cost& cost,
                                 Context& context)
    : op_(op),
      problem_(problem),
      cost_(cost),
      context_(context),
      max_halvings_(halvings(problem, first_elements)) {
  made_.resize(static_cast<std::size_t>(max_halvings_));
}
SmallerProblems::~SmallerProblems() = default;

Instance* SmallerProblems::made(int halvings) {
  auto& instance = made_[static_cast<std::size_t>(halvings - 1)];
  if (!instance) instance = make_halved(op_, problem_, halvings, context_);
  return instance.get();
}

RuntimeEstimate SmallerProblems::predict(const RungInfo& rung, double longest_call) {
  constexpr double short_call = 0.1;  // of which the first may have loaded a library
  RuntimeEstimate estimate;
  for (int times = max_halvings_; times > 0; --times) {
    const Problem smaller = halved(problem_, times);
    Instance* const instance = made(times);
    if (instance == nullptr || !instance->supports(rung, context_)) continue;
    const auto timed = [&] {
      const double begin = bench::now();
      instance->run(rung, context_);
      context_.synchronize();
      return bench::now() - begin;
    };
    double seconds = timed();
    if (seconds < short_call) seconds = std::min(seconds, timed());
    const Cost cost = instance->cost();
    estimate = {seconds * work(cost_) / work(cost), smaller.to_string(), seconds, cost.operations};
    if (estimate.seconds * caution < longest_call) break;
    // The next step costs about eight times as much: when that is too long already, so is the rest.
    const Problem next = halved(problem_, times - 1);
    const double next_seconds = seconds * product(next) / std::max(product(smaller), 1.0);
    if (next_seconds > longest_call) break;
  }
  return estimate;
}

namespace {

/// Seconds of one call. The first may load a library or start threads: when it is short, the mean
/// of a few more counts.
double first_timing(Instance& instance, const RungInfo* rung, Context& context) {
  constexpr double long_enough = 0.1;
  constexpr int more_calls = 3;
  const auto timed = [&](int calls) {
    const double begin = bench::now();
    for (int i = 0; i < calls; ++i) {
      rung != nullptr ? instance.run(*rung, context) : instance.call(context);
    }
    context.synchronize();
    return (bench::now() - begin) / calls;
  };
  const double first = timed(1);
  const bool simulated = context.backend() == Backend::simt;  // nothing to load, and slow
  return simulated || first >= long_enough ? first : timed(more_calls);
}

/// What bench_problem() spends on a version whose call takes so long; `predicted`: on a problem so
/// large that smaller ones are tried first.
double seconds_of_version(double call, Backend backend, bool predicted, const BenchPlan& plan) {
  if (backend == Backend::simt) return call;
  // The calls on smaller problems, each an eighth of the next one.
  const double predicting = predicted ? std::min(call / 7, plan.longest_call / 7) : 0;
  if (predicted && call > plan.longest_call) return predicting;
  constexpr double calls = 3;  // two of the check, one to find the number of repeats
  const double sample = std::max(call, 1.2 * plan.timing.sample_seconds);
  const double warming = std::max(call, plan.timing.warm_up_seconds + 2 * sample);
  return (call > plan.longest_call / caution ? predicting : 0) + (calls - 1) * call + warming +
         bench::rounds_of(call, plan.timing) * sample;
}

}  // namespace

BenchEstimate estimate_bench(const AnyOperator& op, const Problem& problem, Context& context,
                             const BenchPlan& plan) {
  const bool simulated = context.backend() == Backend::simt;
  int times = halvings(problem, simulated ? first_simulated : first_elements);
  double begin = bench::now();
  auto instance = make_halved(op, problem, times, context);
  while (!instance) {
    begin = bench::now();
    instance = make_halved(op, problem, --times, context);
  }
  const double made = bench::now();
  instance->inputs.reset();
  const double making = made - begin;
  const double renewing = bench::now() - made;
  // What each halving saves, from the costs of this problem and of one that is smaller still.
  double work_growth = product(problem) / product(halved(problem, times));
  double byte_growth = work_growth;
  if (const auto smaller = times > 0 ? make_halved(op, problem, times + 1, context) : nullptr) {
    const Cost cost = instance->cost();
    const Cost less = smaller->cost();
    work_growth = std::pow(std::max(work(cost) / work(less), 1.0), times);
    byte_growth = std::pow(std::max(cost.bytes / std::max(less.bytes, 1.0), 1.0), times);
  }

  BenchEstimate estimate;
  const auto add = [&](const RungInfo* rung) {
    if (!is_wanted(plan, rung != nullptr ? rung->name : public_call)) return;
    if (rung != nullptr && !instance->supports(*rung, context)) return;
    ++estimate.versions;
    try {
      const double call = work_growth * first_timing(*instance, rung, context);
      const bool predicted = times > 0 && rung != nullptr;
      // Before each of two checked calls outputs are filled; that they are compared costs as much.
      estimate.seconds +=
          seconds_of_version(call, context.backend(), predicted, plan) + 4 * renewing * byte_growth;
    } catch (const std::exception&) {
      --estimate.versions;  // its check will fail, or nothing takes this problem
    }
  };
  for (const RungInfo* rung : op.rungs()) {
    if (rung->backend == context.backend() && rung_availability(*rung)) add(rung);
  }
  add(nullptr);
  if (estimate.versions > 0) estimate.seconds += 2 * making * byte_growth;
  return estimate;
}

std::string format_estimate(double seconds) {
  if (seconds < 1.5) return "about a second";
  if (seconds < 10) return fmt::format("about {:.0f} s", seconds);
  if (seconds < 90) return fmt::format("about {:.0f} s", 5 * std::round(seconds / 5));
  if (seconds < 5400) return fmt::format("about {:.0f} min", seconds / 60);
  return fmt::format("about {:.0f} h", seconds / 3600);
}

}  // namespace rung::workbench
