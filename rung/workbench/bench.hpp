// SPDX-License-Identifier: Apache-2.0
// Measurements of `rung bench`: one row per version and problem.
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

/// Value of numbers that were not measured: NaN, in JSON null.
inline constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();

struct BenchRow {
  std::string op;
  std::string rung;
  int step = 0;
  std::string kind;       // "step", "shape", "type" or "peer"; "" for the public call
  std::string step_text;  // as shown in tables
  Backend backend = Backend::cpu;
  bool peer = false;
  std::string problem;
  std::string device;                // device name; "" for the CPU and the simulated GPU
  int threads = 1;                   // maximum
  int threads_used = 0;              // most that took part; 0: unknown (peers)
  double seconds = not_measured;     // median
  double spread = not_measured;      // (third quartile - first) / median
  double rate = not_measured;        // useful work per second, in `unit`
  std::string unit;                  // GFLOP/s, or GB/s if memory is the bound
  double of_ceiling = not_measured;  // seconds at best / seconds; may exceed 1: see share_shown()
  double vs_peer = not_measured;     // seconds of the fastest peer / seconds
  int rounds = 0;
  std::string chosen;  // for the public call: the rung it picked
  std::string note;
  bool failed = false;  // wrong result in the check before timing
};

/// Results of one problem; its ceiling, if there is one, is part of `title`.
struct BenchTable {
  std::string title;
  std::vector<BenchRow> rows;
  /// Versions without a time, with the reason as note: peers and explicitly requested versions that
  /// do not support the problem or are not installed.
  std::vector<BenchRow> not_timed;
  std::string no_ceiling;  // reason if there is no ceiling; "" otherwise
};

struct BenchPlan {
  bench::SamplingPlan timing;
  std::vector<std::string> rungs;  // empty: all rungs and the public call
  double longest_call = 2.5;       // seconds; longer calls are timed on a smaller problem
};

/// Returns the fraction of the ceiling as shown to users, at most 1. Up to 3 % above the ceiling,
/// the uncertainty of ceilings themselves, counts as 1. Larger fractions become not_measured: the
/// ceiling (of memory, for example) does not apply to data that stay in a cache.
constexpr double ceiling_spread = 0.03;
inline double share_shown(double of_ceiling) {
  return of_ceiling > 1 + ceiling_spread ? not_measured : std::min(of_ceiling, 1.0);
}

/// Checks and times every version of `problem` that this context can run; on the simulated GPU,
/// checks only.
BenchTable bench_problem(const AnyOperator& op, const Problem& problem, Context& context,
                         const BenchPlan& plan, const bench::Machine& machine, Progress& progress);

/// Returns the fraction of a problem's bytes that is written: reads and writes have different
/// ceilings.
double written_share(const Instance& instance);
/// Returns the element type whose peak rate bounds the problem: its own, or tf32, which runs on
/// tensor cores.
std::string computing_element(const Problem& problem);

/// Returns the machine with its ceilings. If they must be measured first, which takes a while,
/// announces it unless `quiet`.
bench::Machine machine_with_ceilings(bool quiet);
/// Returns the ceiling of the problem in this context.
bench::Ceiling ceiling_of(const Problem& problem, const Instance& instance, const Context& context,
                          const bench::Machine& machine);
/// Returns further buffer sets of the problem for a GPU, so that calls do not find their data in
/// L2. None for a CPU, for which warm caches are the usual case and the assumption of `of_ceiling`.
std::vector<std::unique_ptr<Instance>> more_sets(const AnyOperator& op, const Problem& problem,
                                                 const Context& context, const Instance& first,
                                                 const bench::Machine& machine);
/// Returns a contender that cycles through the buffer sets of one problem: a rung, or the public
/// call if `rung` is null.
bench::Contender contender(const std::vector<Instance*>& sets, const RungInfo* rung,
                           Context& context);

/// Returns true if a version (a rung, or public_call) is to be timed.
bool is_wanted(const BenchPlan& plan, std::string_view rung);

/// Returns the meaning of the figures and caveats, as wrapped paragraphs.
std::string bench_remarks(const std::vector<BenchTable>& tables, const bench::Machine& machine,
                          const std::string& rounds);
/// Returns a warning if more threads than cores were requested, else "".
std::string oversubscribed_text(int threads, const bench::Machine& machine);

std::string bench_text(const std::vector<BenchTable>& tables);
/// Returns the meaning of the columns that bench_text() shows at the current terminal width.
/// `rounds`: "15 rounds", with any remark on their number.
std::string bench_legend(const std::vector<BenchTable>& tables, const std::string& rounds);
/// Returns the tables as JSON. `complete`: false if a Ctrl-C left out problems.
std::string bench_json(const std::vector<BenchTable>& tables, const bench::Machine& machine,
                       bool complete);

/// Predicted run time of a rung on a problem.
struct RuntimeEstimate {
  double seconds = 0;   // for the whole problem
  std::string smaller;  // largest smaller problem that was timed; "": none was needed
  double smaller_seconds = 0;
  double smaller_operations = 0;
};

class Halving;

/// Smaller problems of the same kind, on which versions are timed before the whole one, so that no
/// call takes minutes. The first has its extents, and options such as iteration counts, halved
/// (none below 16) until the product of the extents is at most 2e6 and there are at most 5e7
/// operations, which even a textbook loop finishes quickly.
class SmallerProblems {
 public:
  /// `cost`: cost of the whole problem. Stores references to its arguments.
  SmallerProblems(const AnyOperator& op, const Problem& problem, const Cost& cost,
                  Context& context);
  ~SmallerProblems();
  SmallerProblems(const SmallerProblems&) = delete;
  SmallerProblems& operator=(const SmallerProblems&) = delete;

  /// Times `rung` on ever larger problems until the whole one is certain to take less, or more,
  /// than `longest_call`. Times of small problems predict little if the launch dominates.
  RuntimeEstimate predict(const RungInfo& rung, double longest_call);

 private:
  Instance* made(int halvings);

  std::unique_ptr<Halving> halving_;
  Cost cost_;
  Context& context_;
  std::vector<std::unique_ptr<Instance>> made_;  // by number of halvings, from 1 on
  int max_halvings_;
};

/// Estimated duration of bench_problem(), and its number of versions: from a first timing of each
/// version on the problem or on a smaller one of its kind.
struct BenchEstimate {
  int versions = 0;
  double seconds = 0;
};
BenchEstimate estimate_bench(const AnyOperator& op, const Problem& problem, Context& context,
                             const BenchPlan& plan);
/// Predicts the duration of one case of `rung check`: making one variant of a problem, the oracle,
/// and one run, or two if `twice`, of each of `rungs` (null: the public call).
BenchEstimate estimate_check(const AnyOperator& op, const Problem& problem, Context& context,
                             const std::vector<const RungInfo*>& rungs, bool twice);
/// Returns the estimated seconds of one checked public call; 0 if is_quick().
double estimate_call(const AnyOperator& op, const Problem& problem, Context& context);
/// Returns true if a problem is so small that no estimate is needed.
bool is_quick(const AnyOperator& op, const Problem& problem, const Context& context);
/// Throws Error(unsupported) if the estimate exceeds `max_seconds`; names the problems, the
/// estimate and the limit. `what`: the command, "check"; `less`: advice on reducing the time.
void expect_in_time(const AnyOperator& op, std::string_view problems, std::string_view what,
                    const BenchEstimate& estimate, double max_seconds, std::string_view less);
/// Formats an estimate with its precision: "about 40 s", "about 3 min".
std::string format_estimate(double seconds);
/// Returns a warning that the machine was busy if the typical spread of times is large, or if the
/// spread of one version exceeds its median; else "".
std::string busy_text(const std::vector<BenchTable>& tables);

}  // namespace rung::workbench
