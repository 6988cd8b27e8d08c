// SPDX-License-Identifier: Apache-2.0
// What `rung bench` measures: one row a version of one problem.
#pragma once

#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rung/bench/alternate.hpp"
#include "rung/bench/machine.hpp"
#include "rung/bench/roofline.hpp"
#include "rung/harness/any_operator.hpp"
#include "rung/workbench/progress.hpp"

namespace rung::workbench {

/// Numbers that were not measured are NaN, null in JSON.
inline constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();

struct BenchRow {
  std::string op;
  std::string rung;
  int step = 0;
  std::string kind;       // "step", "shape", "type" or "peer"; "" of the public call
  std::string step_text;  // as tables show it
  Backend backend = Backend::cpu;
  bool peer = false;
  std::string problem;
  std::string device;                // its name, "" of the CPU and of the simulated GPU
  int threads = 1;                   // that it may use
  int threads_used = 0;              // most that took part; 0: not known, of peers
  double seconds = not_measured;     // median
  double spread = not_measured;      // (third quartile - first) / median
  double rate = not_measured;        // useful work a second, in `unit`
  std::string unit;                  // GFLOP/s, or GB/s where memory is the limit
  double of_ceiling = not_measured;  // seconds at best / seconds, above 1 too: see share_shown()
  double vs_peer = not_measured;     // seconds of the fastest peer / seconds
  int rounds = 0;
  std::string chosen;  // for the public call: the rung it picked
  std::string note;
  bool failed = false;  // the check before timing
};

/// The rows of one problem, and the limit they are held against.
struct BenchTable {
  std::string title;
  std::vector<BenchRow> rows;
  /// Versions without a time, with the reason as their note: peers, and what was named, that do not
  /// take the problem or are not installed.
  std::vector<BenchRow> not_timed;
  std::string no_ceiling;  // why there is none; "" where there is one
};

struct BenchPlan {
  bench::Plan timing;
  std::vector<std::string> rungs;  // empty: all of them, and the public call
  double longest_call = 2.5;       // seconds: what would take longer is timed on a smaller problem
};

/// A share of the ceiling as people are told it: never above 1. Up to 3 % more is what ceilings
/// themselves spread by, and counts as all of it. Anything above is not_measured: the ceiling, of
/// memory say, does not bound data that stay in a cache.
constexpr double ceiling_spread = 0.03;
inline double share_shown(double of_ceiling) {
  return of_ceiling > 1 + ceiling_spread ? not_measured : std::min(of_ceiling, 1.0);
}

/// Checks, then times every version of `problem` that runs in this context; on the simulated GPU
/// checks only.
BenchTable bench_problem(const AnyOperator& op, const Problem& problem, Context& context,
                         const BenchPlan& plan, const bench::Machine& machine, Progress& progress);

/// The share of a problem's bytes that is written: reading and writing have different ceilings.
double written_share(const Instance& instance);
/// Returns the element type whose peak rate bounds the problem: its own, or tf32, which other units
/// of a GPU compute.
std::string computing_element(const Problem& problem);

/// The machine with its ceilings; where they must be measured first, says so - unless `quiet` -
/// because it takes a while.
bench::Machine machine_with_ceilings(bool quiet);
/// Returns the ceiling of the problem in this context.
bench::Ceiling ceiling_of(const Problem& problem, const Instance& instance, const Context& context,
                          const bench::Machine& machine);
/// The problem's further sets for a GPU; none for a CPU, where warm caches are the usual case and
/// what `of_ceiling` assumes.
std::vector<std::unique_ptr<Instance>> more_sets(const AnyOperator& op, const Problem& problem,
                                                 const Context& context, const Instance& first,
                                                 const bench::Machine& machine);
/// A rung - or the public call when it is null - that takes turns on the sets of one problem.
bench::Contender contender(const std::vector<Instance*>& sets, const RungInfo* rung,
                           Context& context);

/// Returns whether a version is to be timed: a rung's name, or public_call.
bool is_wanted(const BenchPlan& plan, std::string_view rung);

/// Returns the figures' meaning and reasons to doubt them, as wrapped paragraphs.
std::string bench_remarks(const std::vector<BenchTable>& tables, const bench::Machine& machine,
                          const std::string& rounds);
/// The warning that more threads were asked for than the machine has cores; "" otherwise.
std::string oversubscribed_text(int threads, const bench::Machine& machine);

std::string bench_text(const std::vector<BenchTable>& tables);
/// The meaning of the columns that bench_text() has at this width of the terminal. `rounds`: "15
/// rounds", and what else is to be said of their number.
std::string bench_legend(const std::vector<BenchTable>& tables, const std::string& rounds);
/// `complete`: no problem is missing, as one is after a Ctrl-C.
std::string bench_json(const std::vector<BenchTable>& tables, const bench::Machine& machine,
                       bool complete);

/// Predicted run time of a rung on a problem.
struct RuntimeEstimate {
  double seconds = 0;   // expected for the whole problem
  std::string smaller;  // the largest problem tried; "" when none was needed
  double smaller_seconds = 0;
  double smaller_operations = 0;
};

class Halving;

/// Smaller problems of the same kind, on which versions are tried before the whole one, so that no
/// call that takes minutes is ever made. The first has its extents halved, and so numbers of
/// iterations and the like, none below 16, until the product of the extents is at most 2e6 and
/// there are at most 5e7 operations: of which even a textbook loop is through in a moment.
class SmallerProblems {
 public:
  /// `cost`: of the whole problem. References are kept.
  SmallerProblems(const AnyOperator& op, const Problem& problem, const Cost& cost,
                  Context& context);
  ~SmallerProblems();
  SmallerProblems(const SmallerProblems&) = delete;
  SmallerProblems& operator=(const SmallerProblems&) = delete;

  /// Tries one after the other until it is sure that the whole one takes less than `longest_call`,
  /// or more: a small problem alone tells little, where launching a kernel is most of it.
  RuntimeEstimate predict(const RungInfo& rung, double longest_call);

 private:
  Instance* made(int halvings);

  std::unique_ptr<Halving> halving_;
  Cost cost_;
  Context& context_;
  std::vector<std::unique_ptr<Instance>> made_;  // by the number of halvings, the first for 1
  int max_halvings_;
};

/// About how long bench_problem() takes, and for how many versions: from a first timing of each on
/// the problem, or on a smaller one of the same kind.
struct BenchEstimate {
  int versions = 0;
  double seconds = 0;
};
BenchEstimate estimate_bench(const AnyOperator& op, const Problem& problem, Context& context,
                             const BenchPlan& plan);
/// Predicts one case of `rung check`: a problem in one variant, made, computed by the oracle
/// and by each of `rungs` (null: the public call) once, or `twice`.
BenchEstimate estimate_check(const AnyOperator& op, const Problem& problem, Context& context,
                             const std::vector<const RungInfo*>& rungs, bool twice);
/// Seconds of one public call, checked; 0 where that is_quick().
double estimate_call(const AnyOperator& op, const Problem& problem, Context& context);
/// Returns true if a problem has so little to do that nothing need be estimated.
bool is_quick(const AnyOperator& op, const Problem& problem, const Context& context);
/// Throws Error(unsupported) that names the problems, what they take and what is accepted, if that
/// is more than `max_seconds`. `what`: "check"; `less`: what takes less.
void expect_in_time(const AnyOperator& op, std::string_view problems, std::string_view what,
                    const BenchEstimate& estimate, double max_seconds, std::string_view less);
/// "about 40 s", "about 3 min": no more exact than an estimate is.
std::string format_estimate(double seconds);
/// The warning that the machine was busy, when the times of a version are typically far apart, or
/// those of one version by more than their median; "" otherwise.
std::string busy_text(const std::vector<BenchTable>& tables);

}  // namespace rung::workbench
