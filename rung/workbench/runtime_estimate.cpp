// SPDX-License-Identifier: Apache-2.0
// Predicts the run time of a rung from smaller problems: a textbook loop that takes a second for
// 1024 cubed takes minutes for 4096 cubed.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "rung/bench/clock.hpp"
#include "rung/core/error.hpp"
#include "rung/workbench/bench.hpp"
#include "rung/workbench/compare.hpp"
#include "rung/workbench/selection.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

/// Limits of the first, smallest problem: the product of its extents, and its operations or bytes,
/// which iterations, batches and masks multiply.
struct FirstProblem {
  double elements;
  double work;
  double textbook_rate;  // operations or bytes per second of the slowest rungs, roughly

  /// Returns the work above which a problem that cannot be made smaller is not run: its time is
  /// estimated from its work.
  [[nodiscard]] double too_much_to_try() const { return 100 * work; }
};
constexpr FirstProblem first_problem{2e6, 5e7, 1e9};
constexpr FirstProblem first_simulated{3e4, 1e6, 1e7};
/// Operations per second of oracles, which use up to long double and unoptimized loops.
constexpr double oracle_rate = 3e8;
constexpr std::int64_t min_extent = 16;
constexpr int max_halvings = 40;
/// Safety factor: a smaller problem may fit a cache that the whole one exceeds.
constexpr double caution = 4;

FirstProblem first_of(const Context& context) {
  return context.backend() == Backend::simt ? first_simulated : first_problem;
}

double product(const Problem& problem) {
  double all = 1;
  for (const std::int64_t extent : problem.extents) all *= static_cast<double>(extent);
  return all;
}

double work(const Cost& cost) { return std::max({cost.operations, cost.bytes, 1.0}); }

std::int64_t halved_extent(std::int64_t extent, int times) {
  return std::max(extent >> times, std::min(extent, min_extent));
}

/// Halves each number of "1000" or "31x31" `times` times; other text is unchanged.
std::string halved_numbers(const std::string& text, int times) {
  std::string result;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (;;) {
    std::int64_t number = 0;
    const auto [behind, error] = std::from_chars(at, end, number);
    if (error != std::errc() || number < 0) return text;
    result += std::to_string(halved_extent(number, times));
    if (behind == end) return result;
    if (*behind != 'x') return text;
    result += 'x';
    at = behind + 1;
  }
}

}  // namespace

/// A problem with its extents halved, none below 16, and with the options that multiply its work
/// halved too: iterations, batches, mask extents.
class Halving {
 public:
  Halving(const AnyOperator& op, const Problem& problem, const Context& context)
      : op_(op), problem_(problem), context_(context) {
    const double whole = work(op.outline(problem, context)->cost());
    for (std::size_t i = 0; i < problem.options.size(); ++i) {
      Problem smaller = problem;
      smaller.options[i].value = halved_numbers(problem.options[i].value, 1);
      constexpr double less = 0.6;
      const double some = work_of(smaller);
      if (smaller != problem && some > 0 && some < less * whole) options_.push_back(i);
    }
  }

  [[nodiscard]] Problem operator()(int times) const {
    Problem smaller = problem_;
    for (std::int64_t& extent : smaller.extents) extent = halved_extent(extent, times);
    for (const std::size_t i : options_) {
      smaller.options[i].value = halved_numbers(problem_.options[i].value, times);
    }
    return smaller;
  }

  /// Returns the number of halvings that bring the problem within the first problem's limits, or
  /// after which halving has no effect.
  [[nodiscard]] int times() const {
    const FirstProblem limit = first_of(context_);
    int times = 0;
    for (Problem now = (*this)(0); times < max_halvings; ++times) {
      if (product(now) <= limit.elements && work_of(now) <= limit.work) break;
      Problem next = (*this)(times + 1);
      if (next == now) break;
      now = std::move(next);
    }
    return times;
  }

  /// Returns null if extents depend on each other, such as groups and channels, and halving makes
  /// them inconsistent.
  [[nodiscard]] std::unique_ptr<Instance> make(int times) const {
    try {
      return op_.make((*this)(times), {}, 1, context_.device());
    } catch (const Error&) {
      if (times == 0) throw;
      return nullptr;
    }
  }

  /// Returns operations or bytes, whichever are more; 0 if halving makes the extents inconsistent.
  [[nodiscard]] double work_of(int times) const { return work_of((*this)(times)); }

 private:
  [[nodiscard]] double work_of(const Problem& problem) const {
    try {
      return work(op_.outline(problem, context_)->cost());
    } catch (const Error&) {
      return 0;
    }
  }

  const AnyOperator& op_;
  const Problem& problem_;
  const Context& context_;
  std::vector<std::size_t> options_;
};

SmallerProblems::SmallerProblems(const AnyOperator& op, const Problem& problem, const Cost& cost,
                                 Context& context)
    : halving_(std::make_unique<Halving>(op, problem, context)),
      cost_(cost),
      context_(context),
      max_halvings_(halving_->times()) {
  made_.resize(static_cast<std::size_t>(max_halvings_));
}
SmallerProblems::~SmallerProblems() = default;

Instance* SmallerProblems::made(int halvings) {
  auto& instance = made_[static_cast<std::size_t>(halvings - 1)];
  if (!instance) instance = halving_->make(halvings);
  return instance.get();
}

RuntimeEstimate SmallerProblems::predict(const RungInfo& rung, double longest_call) {
  constexpr double short_call = 0.1;  // below this, loading a library may dominate the first call
  RuntimeEstimate estimate;
  for (int times = max_halvings_; times > 0; --times) {
    Instance* const instance = made(times);
    if (instance == nullptr || !instance->supports(rung, context_)) continue;
    const Cost cost = instance->cost();
    const std::string smaller = (*halving_)(times).to_string();
    if (const FirstProblem limit = first_of(context_); work(cost) > limit.too_much_to_try()) {
      // No smaller problem was conclusive.
      if (estimate.smaller.empty()) estimate.seconds = work(cost_) / limit.textbook_rate;
      break;
    }
    const auto timed = [&] {
      const double begin = bench::now();
      instance->run(rung, context_);
      context_.synchronize();
      return bench::now() - begin;
    };
    double seconds = timed();
    if (seconds < short_call) seconds = std::min(seconds, timed());
    estimate = {seconds * work(cost_) / work(cost), smaller, seconds, cost.operations};
    if (estimate.seconds * caution < longest_call) break;
    // The next problem takes about eight times as long: stop if that exceeds the limit already.
    if (seconds * halving_->work_of(times - 1) / work(cost) > longest_call) break;
  }
  return estimate;
}

namespace {

/// Returns the seconds of one call. The first call may load a library or start threads: if it is
/// short, returns the mean of a few more.
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
  const bool simulated = context.backend() == Backend::simt;  // slow, with nothing to load
  return simulated || first >= long_enough ? first : timed(more_calls);
}

/// Returns the seconds that bench_problem() spends on a version, given the seconds of a call;
/// `predicted`: the problem is large enough that smaller ones are timed first.
double seconds_of_version(double call, Backend backend, bool predicted, const BenchPlan& plan) {
  if (backend == Backend::simt) return call;
  // Calls on smaller problems, each about an eighth of the next.
  const double predicting = predicted ? std::min(call / 7, plan.longest_call / 7) : 0;
  if (predicted && call > plan.longest_call) return predicting;
  constexpr double calls = 3;  // two by the check, one to calibrate repeats
  const double sample = std::max(call, 1.2 * plan.timing.sample_seconds);
  const double warming = std::max(call, plan.timing.warm_up_seconds + 2 * sample);
  return (call > plan.longest_call / caution ? predicting : 0) + (calls - 1) * call + warming +
         bench::rounds_of(call, plan.timing) * sample;
}

/// Returns the fraction of rows that the oracle computes, of the output with the largest fraction.
double judged_share(const Instance& instance) {
  const double operations = instance.cost().operations;
  double most = 0;
  for (const Inputs::Entry& entry : instance.inputs.entries()) {
    if (!entry.written || entry.tensor.empty()) continue;
    const Extents& shape = entry.tensor.shape;
    const auto rows = static_cast<double>(shape.product() / row_length(shape));
    most = std::max(most, static_cast<double>(rows_to_judge(shape, operations, 1).size()) / rows);
  }
  return most;
}

/// Makes and times a problem, or a smaller one of its kind, and extrapolates to the whole.
class FirstTrial {
 public:
  FirstTrial(const AnyOperator& op, const Problem& problem, Context& context)
      : context_(context), whole_(op.outline(problem, context)), cost_(whole_->cost()) {
    const Halving halving(op, problem, context);
    times_ = halving.times();
    double begin = bench::now();
    while (!(instance_ = halving.make(times_))) {
      --times_;
      begin = bench::now();
    }
    const double made = bench::now();
    instance_->inputs.reset();
    const Cost tried = instance_->cost();
    const double byte_growth = cost_.bytes / std::max(tried.bytes, 1.0);
    growth_ = work(cost_) / work(tried);
    making_ = (made - begin) * byte_growth;
    renewing_ = (bench::now() - made) * byte_growth;
  }

  [[nodiscard]] bool is_smaller() const { return times_ > 0; }
  /// Returns the seconds of a rung, or of the public call if `rung` is null; empty if it fails or
  /// is not supported.
  [[nodiscard]] std::optional<double> seconds_of_call(const RungInfo* rung) {
    if (rung != nullptr && !instance_->supports(*rung, context_)) return std::nullopt;
    const FirstProblem limit = first_of(context_);
    if (work(instance_->cost()) > limit.too_much_to_try()) {
      return work(cost_) / limit.textbook_rate;
    }
    try {
      return growth_ * first_timing(*instance_, rung, context_);
    } catch (const std::exception&) {
      return std::nullopt;
    }
  }
  [[nodiscard]] double making() const { return making_; }
  /// Returns the time to refill outputs before each of two checked calls, and to compare them,
  /// which takes as long.
  [[nodiscard]] double renewing() const { return 4 * renewing_; }
  [[nodiscard]] double oracle() const {
    return whole_->reference_operations(judged_share(*whole_)) / oracle_rate;
  }

 private:
  Context& context_;
  std::unique_ptr<Instance> whole_;  // outline: no memory is allocated
  Cost cost_;
  std::unique_ptr<Instance> instance_;
  int times_ = 0;
  double growth_ = 1;
  double making_ = 0;
  double renewing_ = 0;
};

}  // namespace

BenchEstimate estimate_bench(const AnyOperator& op, const Problem& problem, Context& context,
                             const BenchPlan& plan) {
  FirstTrial trial(op, problem, context);
  BenchEstimate estimate;
  const auto add = [&](const RungInfo* rung) {
    if (!is_wanted(plan, rung != nullptr ? rung->name : public_call)) return;
    const std::optional<double> call = trial.seconds_of_call(rung);
    if (!call) return;
    ++estimate.versions;
    const bool predicted = trial.is_smaller() && rung != nullptr;
    estimate.seconds += seconds_of_version(*call, context.backend(), predicted, plan);
    if (!predicted || *call <= plan.longest_call) estimate.seconds += trial.renewing();
  };
  for (const RungInfo* rung : op.rungs()) {
    if (rung->backend == context.backend() && rung_availability(*rung)) add(rung);
  }
  add(nullptr);
  if (estimate.versions > 0) estimate.seconds += 2 * trial.making() + trial.oracle();
  return estimate;
}

BenchEstimate estimate_check(const AnyOperator& op, const Problem& problem, Context& context,
                             const std::vector<const RungInfo*>& rungs, bool twice) {
  FirstTrial trial(op, problem, context);
  BenchEstimate estimate;
  for (const RungInfo* rung : rungs) {
    if (rung != nullptr && !rung_availability(*rung)) continue;
    const std::optional<double> call = trial.seconds_of_call(rung);
    if (!call) continue;
    ++estimate.versions;
    estimate.seconds += (twice ? 2 : 1) * (*call + trial.renewing() / 2);
  }
  if (estimate.versions > 0) estimate.seconds += trial.making() + trial.oracle();
  return estimate;
}

double estimate_call(const AnyOperator& op, const Problem& problem, Context& context) {
  if (is_quick(op, problem, context)) return 0;
  FirstTrial trial(op, problem, context);
  return trial.seconds_of_call(nullptr).value_or(0) + trial.oracle();
}

bool is_quick(const AnyOperator& op, const Problem& problem, const Context& context) {
  const double limit = first_of(context).work;
  const auto outline = op.outline(problem, context);
  return work(outline->cost()) <= limit && outline->reference_operations(1) <= limit;
}

void expect_in_time(const AnyOperator& op, std::string_view problems, std::string_view what,
                    const BenchEstimate& estimate, double max_seconds, std::string_view less) {
  if (estimate.seconds <= max_seconds) return;
  throw Error(ErrorCode::unsupported,
              fmt::format("problem: {} of {} takes {} to {} ({}); accepted: {} s, or what "
                          "--max-seconds says; {}",
                          problems, op.name(), format_estimate(estimate.seconds), what,
                          count_of(estimate.versions, "version"), max_seconds, less));
}

std::string format_estimate(double seconds) {
  if (seconds < 1.5) return "about a second";
  if (seconds < 10) return fmt::format("about {:.0f} s", seconds);
  if (seconds < 90) return fmt::format("about {:.0f} s", 5 * std::round(seconds / 5));
  if (seconds < 5400) return fmt::format("about {:.0f} min", seconds / 60);
  return fmt::format("about {:.0f} h", seconds / 3600);
}

}  // namespace rung::workbench
