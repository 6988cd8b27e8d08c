// SPDX-License-Identifier: Apache-2.0
// rung survey: finds slow problems of an operator by random sampling instead of hand-picked cases.
#include "rung/workbench/survey.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <memory>

#include "rung/bench/clock.hpp"
#include "rung/core/error.hpp"
#include "rung/workbench/command.hpp"
#include "rung/workbench/files.hpp"
#include "rung/workbench/fit.hpp"
#include "rung/workbench/interrupt.hpp"
#include "rung/workbench/quantity.hpp"
#include "rung/workbench/selection.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

struct Options {
  std::string op;
  std::vector<std::string> patterns;
  std::string backend;
  std::string max_bytes = "256M";
  std::string json;
  std::uint64_t seed = 1;
  int count = 60;
  int threads = 0;
  int device = 0;
  double seconds = 300;
  bool again = false;
  bool list = false;
  bool kernels_only = false;
  std::string fit;
};

/// Returns the requested backend, else the default of programs: a GPU if there is one.
Backend backend_to_time(const std::string& requested) {
  if (requested.empty()) return available(Backend::cuda) ? Backend::cuda : Backend::cpu;
  std::vector<std::string> missing;
  const Backend backend = select_backends(requested, missing).front();
  if (backend == Backend::simt) {
    throw Error(
        ErrorCode::invalid_argument,
        "--backend: 'simt' given, on which nothing can be timed; accepted: cpu, cuda, opencl");
  }
  return backend;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[sizeof "2026-11-25"];
  std::tm utc{};
  std::strftime(text, sizeof text, "%Y-%m-%d", gmtime_r(&now, &utc));
  return text;
}

SurveyResults begun(const Options& options, const AnyOperator& op) {
  SurveyResults survey;
  survey.op = op.name();
  survey.draw.patterns = options.patterns.empty() ? patterns_of(op) : options.patterns;
  survey.draw.max_bytes = static_cast<double>(parse_many_bytes("--max-bytes", options.max_bytes));
  return survey;
}

/// Loads the rows already in the file.
void go_on(SurveyResults& survey, const std::string& path) {
  if (path.empty() || !std::filesystem::exists(path)) return;
  SurveyResults file;
  try {
    file = survey_from_json(read_text_file(path));
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", path, error.what()));
  }
  expect_same_survey(file, survey, path);
  survey.rows = std::move(file.rows);
}

int list_problems(const Options& options, const AnyOperator& op) {
  const SurveyDraw draw = begun(options, op).draw;
  for (int index = 0; index < options.count; ++index) {
    fmt::print("{}\n", draw_problem(op, draw, options.seed, index).to_string());
  }
  return exit_good;
}

/// Times the problems that the file does not contain yet; returns how many are left when the time
/// is up.
int time_problems(const Options& options, const AnyOperator& op, Context& context,
                  const bench::Machine& machine, SurveyResults& survey) {
  const double until = bench::now() + options.seconds;
  int left = 0;
  Progress progress(options.count);
  SurveyPlan plan;
  if (options.kernels_only || !options.fit.empty()) {
    plan = {.first = {.rounds = 7, .sample_seconds = 2e-4, .seconds = 0.1}, .kernels_only = true};
  }
  for (int index = 0; index < options.count; ++index) {
    SurveyRow* const before = survey.find(options.seed, index);
    if (before != nullptr && !(options.again && !fault_of(*before).empty())) {
      progress.step("measured before");
      continue;
    }
    if (bench::now() >= until) {
      ++left;
      continue;
    }
    const Problem problem = draw_problem(op, survey.draw, options.seed, index);
    if (bench::now() + estimate_call(op, problem, context) >= until) {
      ++left;
      continue;
    }
    progress.step(problem.to_string());
    progress.say(problem.to_string());
    SurveyRow row = survey_problem(op, problem, context, plan, machine);
    row.seed = options.seed;
    row.index = index;
    if (before == nullptr) {
      survey.rows.push_back(std::move(row));
    } else if (replaces(row, *before)) {
      *before = std::move(row);
    }
    survey.date = today();
    if (!options.json.empty()) write_text_file(options.json, survey_json(survey, machine) + '\n');
  }
  return left;
}

std::string gpu_name(const bench::Machine& machine, int device) {
  const auto at = static_cast<std::size_t>(device);
  return at < machine.gpus.size() ? machine.gpus[at].name : machine.cpu;
}

int run(const Options& options) {
  const AnyOperator& op = known_operator(options.op);
  if (options.list && !options.json.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "--json: given with --list, which measures nothing that a file could keep; "
                "accepted: one of the two");
  }
  if (!options.json.empty()) expect_folder_of("--json", options.json);
  if (!options.fit.empty()) expect_folder_of("--fit", options.fit);
  if (options.list) return list_problems(options, op);
  SurveyResults survey = begun(options, op);
  survey.backend = backend_to_time(options.backend);
  Context context = context_on(survey.backend, options.threads, options.device);
  survey.threads = context.threads();
  survey.device = device_of(context);
  if (!options.patterns.empty()) expect_drawable(op, survey.draw, options.seed, context);
  const bench::Machine machine = machine_with_ceilings(false);
  survey.where = survey.backend == Backend::opencl ? context.info().name
                 : survey.backend == Backend::cuda ? gpu_name(machine, options.device)
                                                   : machine.cpu;
  go_on(survey, options.json);

  const InterruptGuard guard;
  int left = 0;
  try {
    left = time_problems(options, op, context, machine, survey);
  } catch (const Interrupted&) {  // NOLINT(bugprone-empty-catch): what was timed is printed
  }
  const bool is_cut = InterruptGuard::interrupted();
  if (is_cut && survey.rows.empty()) InterruptGuard::end("no problem is timed");
  fmt::print("{}", survey_text(survey));
  if (!options.fit.empty() && !is_cut) {
    const OperatorFit fit = fit_operator(op, {survey.rows}, {}, context);
    write_text_file(options.fit, rates_json(fit, survey));
    fmt::print("\n{}", fit_text(fit, worst_shown));
  }
  if (left > 0) {
    say(fmt::format("{} of {} left: {} s were over, or are too few for one (--seconds){}.", left,
                    count_of(options.count, "problem"), options.seconds,
                    options.json.empty() ? "; with --json FILE a survey can go on"
                                         : "; the same command goes on with them"));
  }
  if (machine.noisy()) {
    say("The ceilings were measured while the machine was busy, so that floors may be too high: "
        "`rung machine` measures again.");
  }
  fmt::print("{}", toned(Tone::bad, survey_busy_text(survey.rows)));
  if (survey.backend == Backend::cpu) {
    fmt::print("{}", oversubscribed_text(survey.threads, machine));
  }
  if (is_cut) {
    InterruptGuard::end(
        fmt::format("{} timed{}", count_of(survey.rows.size(), "problem"),
                    options.json.empty() ? "" : "; the same command goes on with the others"));
  }
  const auto failed = [](const SurveyRow& row) { return row.failed; };
  return std::any_of(survey.rows.begin(), survey.rows.end(), failed) ? exit_failed : exit_good;
}

CommandSpec::Action setup(Parser app) {
  auto options = std::make_shared<Options>();
  app.add_option("op", options->op, "the operator").required().completes(complete_operators);
  app.add_option("pattern", options->patterns,
                 "problems with ranges and alternatives, as in \"(f32|bf16) 1..4096x1..64\"; "
                 "default: the operator's own")
      .type_name("PATTERN");
  const Option backend = app.add_option("--backend", options->backend,
                                        "cpu, cuda or opencl; default: cuda where there is a GPU")
                             .completes(complete_backends);
  app.add_option("--device", options->device, device_help).between(0, max_device).needs(backend);
  app.add_option("--count", options->count, "how many problems; default 60").between(1, 1000000);
  app.add_option("--seed", options->seed, "the same problems for the same seed; default 1")
      .positive();
  app.add_option("--max-bytes", options->max_bytes,
                 "of all tensors of a problem, as in 64M or 2G; default 256M")
      .type_name("BYTES");
  app.add_option("--threads", options->threads, "CPU threads; default: every core")
      .between(1, 4096);
  app.add_option("--seconds", options->seconds,
                 "begin no further problem after so long; default 300")
      .positive();
  const Option json =
      app.add_option("--json", options->json,
                     "keep the results in this file, one row per problem; where it exists, go on")
          .type_name("FILE");
  app.add_flag("--again", options->again,
               "time again what has a fault in the file; the better result counts")
      .needs(json);
  app.add_flag("--kernels", options->kernels_only,
               "time our kernels that may be chosen and nothing else, without checks");
  app.add_option("--fit", options->fit,
                 "time as with --kernels, fit the rates by which the library chooses to all rows, "
                 "and write them to results/MACHINE/rates/OP.json, which the build compiles in")
      .type_name("FILE");
  app.add_flag("--list", options->list, "only print the problems");
  app.purpose(
      "Looks for problems on which an operator is slow: draws random ones - sizes over the whole "
      "range, primes and single rows too, every type, axis and option - and times the public call "
      "on each, against the fastest peer, against every rung of ours that takes the problem, and "
      "against the floor: what starting, moving the bytes or computing takes at best. Every "
      "result is checked. What looks bad is timed again before it counts.\n"
      "Two faults are told apart. A wrong choice: another rung of ours is faster than the one that "
      "the library picked, so that an estimate is wrong. A missing kernel: even our fastest rung "
      "is slower than the peer or, where there is none, far from the floor.\n"
      "The same seed draws the same problems on every machine; `rung bench OP \"PROBLEM\"` "
      "repeats one. Runs with other seeds and the same --json FILE add to it.");
  app.example("rung survey softmax", "60 problems");
  app.example("rung survey gemm --count 200 --seed 7 --json gemm.json", "more, kept in a file");
  app.example("rung survey reduce \"f32 1..1000000x1..16,axes=1\"", "a family of your own");
  app.example("rung survey scan --list", "the problems alone");
  app.exit_codes({{exit_good, "surveyed, whatever was found; what the time sufficed for"},
                  {exit_failed, "a result was wrong: its row says so"},
                  {exit_usage, "the command line is wrong, or the file is of another survey"},
                  {exit_not_here, "the backend is not available here"}});
  return [options] { return run(*options); };
}

const Command self{{.name = "survey",
                    .order = 35,
                    .summary = "on which problems is it slow? random ones, the worst first",
                    .setup = setup}};

}  // namespace
}  // namespace rung::workbench
