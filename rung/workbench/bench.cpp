// SPDX-License-Identifier: Apache-2.0
// rung bench: times all rungs of an operator on given problems, beside vendor libraries and the
// machine's measured ceilings.
#include "rung/workbench/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>

#include "rung/workbench/command.hpp"
#include "rung/workbench/files.hpp"
#include "rung/workbench/gate.hpp"
#include "rung/workbench/interrupt.hpp"
#include "rung/workbench/selection.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

/// Largest problem for the simulated GPU, which executes some ten million simple steps per second:
/// larger problems take minutes.
constexpr double max_simulated = 1e6;  // product of the extents

struct Options {
  std::string op;
  std::vector<std::string> problems;
  std::string backend;
  std::string rungs;
  std::string threads;
  std::string output;
  int device = 0;
  int pairs = 0;  // 0: the plan's
  double max_seconds = 3600;
  bool json = false;
  bool gate = false;
};

std::vector<int> thread_counts(const std::string& text) {
  std::vector<int> counts;
  for (const std::string& word : split_commas(text)) {
    std::size_t end = 0;
    int count = 0;
    try {
      count = std::stoi(word, &end);
    } catch (const std::exception&) {
      end = 0;
    }
    if (end != word.size() || count < 1 || count > 4096) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("threads: '{}' given; accepted: numbers from 1 to 4096, as in 1,2", word));
    }
    counts.push_back(count);
  }
  if (counts.empty()) counts.push_back(0);  // every core
  return counts;
}

/// Returns the backends to time. Two are included only on request: the simulated GPU, on which
/// nothing is timed, and OpenCL, whose first device may be the CPU, which is timed anyway.
std::vector<Backend> backends_to_bench(const std::string& requested,
                                       std::vector<std::string>& missing) {
  std::vector<Backend> backends = select_backends(requested, missing);
  if (!requested.empty()) return backends;
  for (const Backend backend : {Backend::simt, Backend::opencl}) {
    std::erase(backends, backend);
    std::erase_if(missing, [&](const std::string& line) {
      return line.starts_with(std::string(to_string(backend)) + ":");
    });
  }
  return backends;
}

/// Throws if the simulated GPU would take minutes for the problem.
void expect_quick(const Problem& problem) {
  double product = 1;
  for (const std::int64_t extent : problem.extents) product *= static_cast<double>(extent);
  if (product <= max_simulated) return;
  throw Error(ErrorCode::unsupported,
              fmt::format("problem: '{}' takes the simulated GPU minutes, with a product of the "
                          "extents of {:.2g}; accepted: up to {:.2g}",
                          problem.to_string(), product, max_simulated));
}

std::vector<Problem> problems_for(const AnyOperator& op, Backend backend,
                                  const std::vector<Problem>& given) {
  if (given.empty()) return op.bench_problems(backend);
  if (backend == Backend::simt) std::for_each(given.begin(), given.end(), expect_quick);
  return given;
}

/// Returns true if the backend has one of `rungs`; if the list is empty or has public_call, any
/// rung but a peer suffices.
bool has_any(const AnyOperator& op, Backend backend, const std::vector<std::string>& rungs) {
  bool has_rungs = false;
  for (const RungInfo* rung : op.rungs()) {
    if (rung->backend != backend) continue;
    has_rungs = has_rungs || !rung->peer;
    if (std::find(rungs.begin(), rungs.end(), rung->name) != rungs.end()) return true;
  }
  return has_rungs &&
         (rungs.empty() || std::find(rungs.begin(), rungs.end(), public_call) != rungs.end());
}

/// Throws an Error that none of the requested rungs is on a timed backend, with advice.
[[noreturn]] void refuse_nothing(const AnyOperator& op, const std::vector<std::string>& rungs,
                                 const std::string& backend,
                                 const std::vector<std::string>& missing) {
  std::vector<std::string> elsewhere;
  bool is_simulated = false;
  for (const Backend one : all_backends) {
    if (!has_any(op, one, rungs)) continue;
    elsewhere.emplace_back(to_string(one));
    is_simulated = is_simulated || (one == Backend::simt && available(one));
  }
  const std::string what = rungs.empty() ? std::string(op.name()) + "'s rungs" : join(rungs);
  std::string why = backend.empty() ? "" : "; --backend " + backend + " is given";
  if (backend.empty()) {
    for (const std::string& line : missing) why += "; " + line;
  }
  if (elsewhere.empty()) elsewhere.emplace_back("what this build has not");
  throw Error(ErrorCode::not_available,
              fmt::format("{}: nothing to time here: {} need {}{}{}", op.name(), what,
                          fmt::join(elsewhere, " or "), why,
                          is_simulated ? fmt::format("; `rung check {} --backend simt` checks "
                                                     "them on the simulated GPU",
                                                     op.name())
                                       : ""));
}

struct Race {
  Backend backend;
  int threads;
  int device;
  Problem problem;

  [[nodiscard]] Context context() const { return context_on(backend, threads, device); }
};

/// Prints the estimated duration of the races. Throws if it is too long.
void announce(const AnyOperator& op, const std::vector<Race>& races, const BenchPlan& plan,
              const Options& options) {
  FILE* const to = options.json ? stderr : stdout;
  // With --json, prints nothing unless standard error is a terminal. If nothing is printed, quick
  // problems and the operator's own problems need no estimate.
  const bool quiet = options.json && !is_terminal(STDERR_FILENO);
  const bool quick = std::all_of(races.begin(), races.end(), [&](const Race& race) {
    return is_quick(op, race.problem, race.context());
  });
  if (quiet && (quick || options.problems.empty())) return;
  BenchEstimate all;
  {
    Progress progress(static_cast<std::int64_t>(races.size()));
    for (const Race& race : races) {
      progress.say(fmt::format("estimating {}", race.problem.to_string()));
      Context context = race.context();
      const BenchEstimate one = estimate_bench(op, race.problem, context, plan);
      all.versions += one.versions;
      all.seconds += one.seconds;
      progress.step(race.problem.to_string());
    }
  }
  if (!options.problems.empty()) {
    const std::string problems =
        races.size() == 1
            ? '\'' + races.front().problem.to_string() + '\''
            : fmt::format("'{}' and {} more", races.front().problem.to_string(), races.size() - 1);
    expect_in_time(op, problems, "time", all, options.max_seconds,
                   "fewer --rungs or a smaller problem take less");
  }
  if (quiet || all.versions == 0) return;
  fmt::print(to, "{}",
             wrapped(fmt::format("{} on {}: takes {}", count_of(all.versions, "version"),
                                 count_of(races.size(), "problem"), format_estimate(all.seconds)),
                     text_width()));
  std::fflush(to);
}

/// Prints the backends that were not timed, and how to run their kernels nevertheless.
void print_missing(const AnyOperator& op, const std::vector<std::string>& missing,
                   const Options& options) {
  for (const std::string& line : missing) say("not timed on " + line);
  const bool is_simulated = options.backend.empty() && !available(Backend::cuda) &&
                            available(Backend::simt) && has_any(op, Backend::simt, {});
  if (!is_simulated) return;
  say(
      fmt::format("`rung check {0} --backend simt` checks {0}'s CUDA rungs on the simulated GPU, "
                  "`rung explain {0}` counts what they do.",
                  op.name()));
}

/// Returns the races to run, after validating their problems.
std::vector<Race> races_of(const AnyOperator& op, const BenchPlan& plan, const Options& options,
                           std::vector<std::string>& missing) {
  const std::vector<Problem> given = parse_problems(options.problems);
  std::vector<Race> races;
  for (const Backend backend : backends_to_bench(options.backend, missing)) {
    if (!has_any(op, backend, plan.rungs)) continue;
    for (const Problem& problem : problems_for(op, backend, given)) {
      // Only rungs of the CPU run on this program's threads.
      const std::string& threads = backend == Backend::cpu ? options.threads : std::string();
      for (const int count : thread_counts(threads)) {
        races.push_back({backend, count, options.device, problem});
      }
    }
  }
  if (races.empty()) refuse_nothing(op, plan.rungs, options.backend, missing);
  if (given.empty()) return races;
  for (const Race& race : races) {
    expect_work(op, race.problem, race.context(), "time");
  }
  return races;
}

/// Appends the table of each race to `tables` until Ctrl-C. Writes all tables to `output` after
/// each race, unless it is "", so that finished results survive a crash.
void run_races(const AnyOperator& op, const std::vector<Race>& races, const BenchPlan& plan,
               const bench::Machine& machine, const std::string& output,
               std::vector<BenchTable>& tables) {
  Progress progress(static_cast<std::int64_t>(races.size()));
  for (const Race& race : races) {
    Context context = race.context();
    tables.push_back(bench_problem(op, race.problem, context, plan, machine, progress));
    if (!output.empty()) {
      const bool complete = tables.size() == races.size() && !InterruptGuard::interrupted();
      write_text_file(output, bench_json(tables, machine, complete) + '\n');
    }
    progress.step(race.problem.to_string());
  }
}

int exit_code_of(const std::vector<BenchTable>& tables) {
  bool any = false;
  for (const BenchTable& table : tables) {
    for (const BenchRow& row : table.rows) {
      if (row.failed) return exit_failed;
      any = true;
    }
  }
  return any ? exit_good : exit_not_here;
}

int run(const Options& options) {
  if (!options.output.empty()) expect_folder_of("--output", options.output);
  if (options.gate) return run_gate(options.op, options.json, options.output);
  if (options.op.empty()) {
    throw Error(ErrorCode::invalid_argument, "op: none given; accepted: an operator, or --gate");
  }
  if (const std::size_t slash = options.op.find('/'); slash != std::string::npos) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("op: '{}' given; bench takes an operator, and rungs by --rungs: `rung "
                            "bench {} --rungs {}`",
                            options.op, options.op.substr(0, slash), options.op.substr(slash + 1)));
  }
  const AnyOperator& op = known_operator(options.op);
  BenchPlan plan;
  if (options.pairs > 0) {
    // --pairs overrides the limit on slow versions.
    plan.timing.rounds = options.pairs;
    plan.timing.slow_seconds = std::numeric_limits<double>::infinity();
  }
  plan.rungs = split_commas(options.rungs);
  for (const std::string& rung : plan.rungs) expect_rung(op, rung, {});
  std::vector<std::string> missing;
  const std::vector<Race> races = races_of(op, plan, options, missing);

  const InterruptGuard guard;
  bench::Machine machine;
  std::vector<BenchTable> tables;
  try {
    announce(op, races, plan, options);
    machine = machine_with_ceilings(options.json);
    run_races(op, races, plan, machine, options.output, tables);
  } catch (const Interrupted&) {  // NOLINT(bugprone-empty-catch): what was timed is printed
  }
  const bool is_cut = InterruptGuard::interrupted();
  if (is_cut && tables.empty()) InterruptGuard::end("no problem is timed");

  if (options.json) {
    fmt::print("{}\n", bench_json(tables, machine, !is_cut));
  } else {
    say(fmt::format("{}, {}, {}", machine.cpu, count_of(machine.cores, "core"), machine.isa));
    for (const bench::Gpu& gpu : machine.gpus) fmt::print("{}\n", gpu.name);
    fmt::print("\n{}", bench_text(tables));
    const std::string rounds =
        count_of(plan.timing.rounds, "round") + (options.pairs > 0 ? "" : ", fewer of slow ones");
    fmt::print("{}", bench_remarks(tables, machine, rounds));
    if (!is_cut) print_missing(op, missing, options);
  }
  if (is_cut) {
    InterruptGuard::end(
        fmt::format("{} of {} timed{}", tables.size(), count_of(races.size(), "problem"),
                    options.output.empty() ? "" : ", and kept in " + options.output));
  }
  return exit_code_of(tables);
}

CommandSpec::Action setup(Parser app) {
  auto options = std::make_shared<Options>();
  app.add_option("op", options->op, "the operator").completes(complete_operators);
  app.add_option("problem", options->problems, "as in \"f32 1024x1024x1024\"; default: a few")
      .type_name("PROBLEM");
  const Option backend =
      app.add_option("--backend", options->backend,
                     "cpu or cuda, default: those that are here; opencl on request; simt only "
                     "checks")
          .completes(complete_backends);
  app.add_option("--device", options->device, device_help).between(0, max_device).needs(backend);
  app.add_option("--rungs", options->rungs,
                 "only these, as in packed_simd,openblas,best; default: all, peers too")
      .type_name("LIST")
      .completes(complete_rungs);
  app.add_option("--threads", options->threads,
                 "numbers of CPU threads, as in 1,2; default: every core")
      .type_name("LIST");
  app.add_option("--pairs", options->pairs,
                 "rounds, each of which times every version once; default: 15, and 3 or 1 of slow "
                 "versions")
      .between(1, 1000);
  app.add_option("--max-seconds", options->max_seconds,
                 "refuse problems that take longer, as concluded from smaller ones; default: 3600")
      .between(1.0, 1e9);
  app.add_option("--output", options->output,
                 "also write the JSON to this file, replacing it, after each problem")
      .type_name("FILE");
  app.add_flag("--json", options->json,
               "one object: the machine, and one row per version; with =FILE, or FILE.json behind "
               "it, as --output");
  app.add_flag(
      "--gate", options->gate,
      "instead: one thread of the CPU against limits of its own; fails where one is exceeded");
  app.purpose(
      "Times the rungs of an operator, the public call ('best') and the vendors' libraries on a "
      "few problems. Every version is checked before it is timed. Then they alternate: each round "
      "times each version once, so that drift of the machine hits all alike. The ceiling is what "
      "the machine was measured to do at best on a problem of this size (`rung machine`); where a "
      "CPU's arithmetic binds, it is measured in the same rounds. Versions that smaller problems "
      "predict "
      "to take longer than 2.5 s per call are not timed. CUDA rungs are timed where there is a "
      "GPU; with "
      "--backend "
      "simt they are checked on the simulated one, and not timed. How long all of it takes is said "
      "first; how far times spread, and whether the machine was busy, last. `rung survey` takes "
      "ranges of problems.");
  app.example("rung bench gemm", "the whole ladder on gemm's usual problems");
  app.example("rung bench gemm \"f32 512x512x512,ta\" --threads 1,2", "one problem, twice");
  app.example("rung bench gemm --rungs best,openblas --json", "two versions, for scripts");
  app.example("rung bench gemm --json gemm.json", "the tables; and the object, in a file");
  app.example("rung bench --gate", "is any shape, or any choice of a rung, slow here? a minute");
  app.exit_codes(
      {{exit_good, "every version was timed, or its row says why not"},
       {exit_failed,
        "a version failed its check: it is not timed, and its row says so; or, with "
        "--gate, a limit was exceeded"},
       {exit_usage, "the command line is wrong, or the file cannot be written"},
       {exit_not_here,
        "no version runs here, or the backend is not available, or the problem takes too "
        "long or too much memory"}});
  return [options] { return run(*options); };
}

const Command self{{.name = "bench",
                    .order = 30,
                    .summary = "how fast is every rung, and how fast could it be?",
                    .setup = setup}};

}  // namespace
}  // namespace rung::workbench
