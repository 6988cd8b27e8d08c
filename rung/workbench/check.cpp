// SPDX-License-Identifier: Apache-2.0
// rung check: checks every rung of every available backend on the operator's problems, in every
// layout and with every kind of values, against the oracle.
#include "rung/workbench/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "rung/bench/clock.hpp"
#include "rung/workbench/bench.hpp"
#include "rung/workbench/command.hpp"
#include "rung/workbench/crash.hpp"
#include "rung/workbench/interrupt.hpp"
#include "rung/workbench/progress.hpp"
#include "rung/workbench/selection.hpp"
#include "rung/workbench/table.hpp"
#include "rung/workbench/verify_simulated.hpp"

namespace rung::workbench {
namespace {

/// Number of failures after which a rung is skipped: the cause is plain, more failures are noise.
constexpr std::int64_t enough_failures = 50;
constexpr const char* given_up = "not tried: this rung has failed 50 times already";

struct Options {
  std::string target;
  std::string backend;
  std::string problem;
  std::string variant;
  std::uint64_t seed = 0;  // 0: the default seeds
  int threads = 0;         // 0: all cores, and further counts
  int device = 0;
  double max_seconds = 600;
  bool json = false;
  bool no_races = false;
  bool first_failure = false;
  bool brief = false;
};

/// A seed and a number of threads.
struct Trial {
  std::uint64_t seed;
  int threads;
};

/// Returns the trials of a problem: one, with the seed and threads of the options. If these give
/// neither, a CPU uses all cores (at least two threads), and the plain variant also runs on one and
/// on three threads (more than some machines have cores), because uneven partitions expose errors.
std::vector<Trial> trials(const Options& options, Backend backend, const Variant& variant) {
  if (options.seed != 0) return {{options.seed, options.threads}};
  if (backend != Backend::cpu || options.threads != 0) return {{1, options.threads}};
  const int all = std::max(2, Context::cpu().threads());
  if (variant == Variant{}) return {{1, all}, {2, 1}, {3, 3}};
  return {{1, all}};
}

class Checker {
 public:
  Checker(const Options& options, Target target, std::vector<Backend> backends)
      : options_(options), target_(std::move(target)), backends_(std::move(backends)) {
    if (!options_.problem.empty()) problems_ = parse_problems({options_.problem});
    variants_ =
        options_.variant.empty() ? all_variants() : std::vector{parse_variant(options_.variant)};
  }

  CheckReport run() {
    std::int64_t steps = 0;
    for (const AnyOperator* op : target_.operators) {
      for (const Backend backend : backends_) {
        if (rungs(*op, backend).empty()) continue;
        const std::size_t variants = options_.brief ? 1 : variants_.size();
        steps += static_cast<std::int64_t>(problems(*op, backend).size() * variants);
      }
    }
    if (steps == 0) {
      throw Error(ErrorCode::not_available,
                  fmt::format("{} has no rung on {}", target_.operators.front()->name(),
                              to_string(backends_.front())));
    }
    for (const Backend backend : backends_) {
      const Context context = context_on(backend, 0, options_.device);
      report_.note_device(context);
      expect_valid(context);
    }
    try {
      expect_in_time();
      Progress progress(steps);
      for (const AnyOperator* op : target_.operators) {
        for (const Backend backend : backends_) {
          if (!is_over()) check(*op, backend, progress);
        }
      }
    } catch (const Interrupted&) {  // NOLINT(bugprone-empty-catch): the cases so far are reported
    }
    return std::move(report_);
  }

 private:
  [[nodiscard]] bool is_over() const { return options_.first_failure && !report_.good(); }

  /// Validates the user's problem before any rung runs.
  void expect_valid(const Context& context) const {
    for (const AnyOperator* op : target_.operators) {
      for (const Problem& problem : problems_) static_cast<void>(op->examine(problem, context));
    }
  }

  /// Throws if checking the user's problem would take too long; an operator's own problems are not
  /// limited.
  void expect_in_time() const {
    for (const AnyOperator* op : target_.operators) {
      for (const Problem& problem : problems_) {
        BenchEstimate all;
        for (const Backend backend : backends_) {
          Context context = context_on(backend, options_.threads, options_.device);
          if (is_quick(*op, problem, context)) continue;
          const bool twice = is_twice(backend, variants_.front());
          BenchEstimate one = estimate_check(*op, problem, context, rungs(*op, backend), twice);
          // Slowdown of a kernel under race detection.
          constexpr double watching = 4;
          if (backend == Backend::simt && !options_.no_races) one.seconds *= watching;
          std::size_t cases = 0;
          for (const Variant& variant : variants_) {
            cases += trials(options_, backend, variant).size();
          }
          all.versions += one.versions;
          all.seconds += static_cast<double>(cases) * one.seconds;
        }
        workbench::expect_in_time(
            *op, '\'' + problem.to_string() + '\'', "check", all, options_.max_seconds,
            "one rung, one --variant, one --backend or a smaller problem take "
            "less");
      }
    }
  }

  /// Returns true if a run is repeated. On the simulated GPU, whose thread order is fixed, only the
  /// plain variant is.
  static bool is_twice(Backend backend, const Variant& variant) {
    return backend != Backend::simt || variant == Variant{};
  }

  /// Returns the rungs to check, followed by null for the public call; empty if the operator has no
  /// rung on this backend.
  [[nodiscard]] std::vector<const RungInfo*> rungs(const AnyOperator& op, Backend backend) const {
    std::vector<const RungInfo*> rungs;
    bool has_any = false;
    for (const RungInfo* rung : op.rungs()) {
      if (rung->backend != backend) continue;
      has_any = true;
      if (target_.rung.empty() || rung->name == target_.rung) rungs.push_back(rung);
    }
    const bool is_public = target_.rung.empty() || target_.rung == public_call;
    if (is_public && has_any) rungs.push_back(nullptr);
    return rungs;
  }

  [[nodiscard]] std::vector<Problem> problems(const AnyOperator& op, Backend backend) const {
    return problems_.empty() ? op.check_problems(backend) : problems_;
  }

  void check(const AnyOperator& op, Backend backend, Progress& progress) {
    const std::vector<const RungInfo*> rungs = this->rungs(op, backend);
    if (rungs.empty()) return;
    std::size_t turn = 0;
    for (const Problem& problem : problems(op, backend)) {
      if (options_.brief) {
        check_in_turn(op, rungs, backend, problem, turn++, progress);
        if (is_over()) return;
        continue;
      }
      for (const Variant& variant : variants_) {
        step(progress, op, backend, problem, variant);
        for (const Trial& trial : trials(options_, backend, variant)) {
          check(op, rungs, backend, problem, variant, trial, progress);
          if (is_over()) return;
        }
      }
    }
    if (options_.problem.empty() && options_.variant.empty()) expect_reached(op, rungs, backend);
  }

  /// Checks each rung on the problem, with one trial, in the variant of index `turn` modulo their
  /// number: every operator is checked in all variants and thread counts, but not on each problem.
  /// Rungs that do not support the variant are checked in the plain one.
  void check_in_turn(const AnyOperator& op, const std::vector<const RungInfo*>& rungs,
                     Backend backend, const Problem& problem, std::size_t turn,
                     Progress& progress) {
    const Variant& variant = variants_[turn % variants_.size()];
    const std::vector<Trial> plain_trials = trials(options_, backend, Variant{});
    const Trial& trial = plain_trials[turn % plain_trials.size()];
    step(progress, op, backend, problem, variant);
    const auto left = check(op, rungs, backend, problem, variant, trial, progress);
    if (!left.empty() && options_.variant.empty() && !(variant == Variant{}) && !is_over()) {
      check(op, left, backend, problem, Variant{}, trial, progress);
    }
  }

  static void step(Progress& progress, const AnyOperator& op, Backend backend,
                   const Problem& problem, const Variant& variant) {
    progress.step(fmt::format("{} {} {} {}", op.name(), to_string(backend), problem.to_string(),
                              to_string(variant)));
  }

  /// Reports a rung that supports none of the problems: it would otherwise pass unchecked.
  void expect_reached(const AnyOperator& op, const std::vector<const RungInfo*>& rungs,
                      Backend backend) {
    for (const RungInfo* rung : rungs) {
      if (rung == nullptr || rung->peer) continue;
      if (rung->present != nullptr && !rung->present()) continue;
      Case where;
      where.op = op.name();
      where.rung = rung->name;
      where.backend = backend;
      const RungTally& tally = report_.tally(where);
      if (tally.passed + tally.failed > 0) continue;
      where.problem = "every problem";
      where.variant = "every variant";
      where.seed = 0;
      report_.add(where,
                  {Verdict::Kind::failed,
                   "never ran: it supports none of the problems that check knows; add one"},
                  0);
    }
  }

  /// Checks the rungs; returns those that do not support the problem in this variant.
  std::vector<const RungInfo*> check(const AnyOperator& op,
                                     const std::vector<const RungInfo*>& rungs, Backend backend,
                                     const Problem& problem, const Variant& variant,
                                     const Trial& trial, Progress& progress) {
    std::vector<const RungInfo*> skipped;
    Context context = context_on(backend, trial.threads, options_.device);
    Verifier verifier(op, problem, variant, trial.seed, context.device());
    const bool twice = is_twice(backend, variant);
    for (const RungInfo* rung : rungs) {
      InterruptGuard::check();
      Case where;
      where.op = op.name();
      where.rung = rung != nullptr ? rung->name : public_call;
      where.backend = backend;
      where.problem = problem.to_string();
      where.variant = to_string(variant);
      where.seed = trial.seed;
      where.threads = context.threads();
      where.device = options_.device;
      if (report_.tally(where).failed >= enough_failures) {
        report_.add(where, {Verdict::Kind::skipped, given_up}, 0);
        continue;
      }
      progress.mention(fmt::format("{}/{} {} {} {}", op.name(), where.rung, to_string(backend),
                                   where.problem, where.variant));
      const CrashNote note(where.command());
      const double begin = bench::now();
      const auto verdict_of = [&] { return verifier.verify(rung, context, twice); };
      const bool watch = backend == Backend::simt && !options_.no_races;
      const Verdict verdict = watch ? verify_simulated(verdict_of) : verdict_of();
      report_.add(where, verdict, bench::now() - begin);
      if (verdict.kind == Verdict::Kind::skipped) skipped.push_back(rung);
      if (is_over()) break;
    }
    return skipped;
  }

  Options options_;
  Target target_;
  std::vector<Backend> backends_;
  std::vector<Problem> problems_;
  std::vector<Variant> variants_;
  CheckReport report_;
};

int run(const Options& options) {
  std::vector<std::string> missing;
  Target target = select_target(options.target);
  std::vector<Backend> backends = select_backends(options.backend, missing);
  if (!target.rung.empty() && !options.backend.empty()) {
    expect_rung(*target.operators.front(), target.rung, backends.front());
  }
  const InterruptGuard guard;
  const CheckReport report = Checker(options, std::move(target), std::move(backends)).run();
  if (options.json) {
    report.print_json(missing, !InterruptGuard::interrupted());
  } else {
    report.print_text();
    for (const std::string& line : missing) say("not checked on " + line);
  }
  if (InterruptGuard::interrupted()) {
    InterruptGuard::end("the cases above are those that had ended");
  }
  return report.good() ? exit_good : exit_failed;
}

CommandSpec::Action setup(Parser app) {
  auto options = std::make_shared<Options>();
  app.add_option("op", options->target, "an operator, or operator/rung; default: everything")
      .completes(complete_targets);
  const Option backend = app.add_option("--backend", options->backend,
                                        "cpu, cuda, simt or opencl; default: all that are here")
                             .completes(complete_backends);
  app.add_option("--device", options->device, device_help).between(0, max_device).needs(backend);
  app.add_option("--problem", options->problem, "only this problem, as in \"f32 17x5x64,ta\"")
      .type_name("PROBLEM");
  app.add_option("--variant", options->variant,
                 "only this layout and kind of values, as in \"plain adversarial\"; default: all")
      .type_name("VARIANT")
      .completes(complete_variants);
  app.add_option("--seed", options->seed, "only inputs from this seed; default: 1 to 3").positive();
  app.add_option("--threads", options->threads,
                 "only this number of CPU threads; default: 1, 3 and every core")
      .between(1, 4096);
  app.add_option("--max-seconds", options->max_seconds,
                 "refuse a --problem that takes longer, as concluded from a smaller one; default: "
                 "600")
      .between(1.0, 1e9);
  app.add_flag("--no-races", options->no_races,
               "do not look for data races and bad accesses on the simulated GPU");
  app.add_flag("--first-failure", options->first_failure, "end at the first case that fails");
  app.add_flag("--brief", options->brief,
               "each problem in one layout and kind of values, in turn, instead of in all: about a "
               "tenth of the time");
  app.add_flag("--json", options->json, "counts, failures and reasons as one object");
  app.purpose(
      "Runs every rung on many problems - tiny, partial, strided, transposed, with adversarial "
      "values - and holds the results to a double-precision oracle. Outputs are poisoned before "
      "each run, so that an element left out is found; canaries around and NaN inside the padding "
      "of every tensor find writes and reads out of place. Numbers are held to a bound derived "
      "from the length of the sums, not to a guess, and a second run must give the same bits. "
      "'best' is the public call, as a program makes it. On the simulated GPU every access is "
      "checked too: data races, bounds, reads of uninitialized memory. Problems that an output of "
      "zeros passes are named as mistrusted: they tell little.");
  app.example("rung check", "everything that can run here; takes minutes");
  app.example("rung check --brief", "every rung on every problem once");
  app.example("rung check gemm --backend simt", "gemm's CUDA rungs, on the simulated GPU");
  app.example("rung check gemm/best --problem \"f32 17x5x64,ta\"", "one rung on one problem");
  app.exit_codes({{exit_good, "every case passed, or was skipped for the reason given"},
                  {exit_failed, "a case failed; each comes with the command that repeats it"},
                  {exit_usage, "the command line is wrong"},
                  {exit_not_here,
                   "the backend is not available here, or the problem takes too long or too much "
                   "memory"}});
  return [options] { return run(*options); };
}

const Command self{{.name = "check",
                    .order = 20,
                    .summary = "is every rung right? against a double-precision oracle",
                    .setup = setup}};

}  // namespace
}  // namespace rung::workbench
