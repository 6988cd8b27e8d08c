// SPDX-License-Identifier: Apache-2.0
// rung tune: fills the file of measured choices in advance, so that programs need not measure.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "rung/core/error.hpp"
#include "rung/core/tuning.hpp"
#include "rung/workbench/command.hpp"
#include "rung/workbench/files.hpp"
#include "rung/workbench/interrupt.hpp"
#include "rung/workbench/progress.hpp"
#include "rung/workbench/selection.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

struct Options {
  std::string op;
  std::vector<std::string> problems;
  std::string log;
  std::string backend;
  int threads = 0;
  int device = 0;
  bool again = false;
};

using Problems = std::vector<std::pair<const AnyOperator*, Problem>>;

Backend backend_to_tune(const std::string& requested) {
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

/// Reads the calls of one backend from a log written with RUNG_LOG=calls; ignores other lines.
Problems read_log(const std::string& path, Backend backend, const std::string& op) {
  Problems all;
  std::istringstream lines(read_text_file(path));
  int calls = 0, unread = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string rung, call, on, name, problem;
    if (!(words >> rung >> call >> on >> name) || rung != "rung:" || call != "call") continue;
    ++calls;
    std::getline(words >> std::ws, problem);
    if (on != to_string(backend) || (!op.empty() && op != name)) continue;
    try {
      const std::pair one(&known_operator(name), Problem::parse(problem));
      if (std::ranges::find(all, one) == all.end()) all.push_back(one);
    } catch (const Error&) {
      ++unread;  // lines of two processes may be interleaved
    }
  }
  if (unread > 0) {
    say(fmt::format("{} of {} cannot be read: not tuned.", count_of(unread, "line"), path));
  }
  if (calls == 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--from-log: {} has no call; accepted: what a program with "
                            "RUNG_LOG=calls in its environment wrote to stderr",
                            path));
  }
  if (all.empty()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--from-log: {} has {}, none{} on {}", path, count_of(calls, "call"),
                            op.empty() ? "" : " of " + op, to_string(backend)));
  }
  return all;
}

Problems problems_of(const Options& options, Backend backend) {
  if (!options.log.empty()) {
    if (!options.problems.empty()) {
      throw Error(ErrorCode::invalid_argument,
                  "--from-log: given with a problem; accepted: one of the two");
    }
    return read_log(options.log, backend, options.op);
  }
  if (options.op.empty()) {
    throw Error(ErrorCode::invalid_argument, "op: left out; accepted without: --from-log FILE");
  }
  const AnyOperator& op = known_operator(options.op);
  Problems all;
  for (const Problem& problem :
       options.problems.empty() ? op.bench_problems(backend) : parse_problems(options.problems)) {
    all.emplace_back(&op, problem);
  }
  return all;
}

/// Measures a problem and adds a row: the kernel, its time, and the choice by estimates.
void tune_one(const AnyOperator& op, const Problem& problem, bool again, Context& context,
              Table& table) {
  expect_work(op, problem, context, "tune");
  const std::unique_ptr<Instance> made = op.make(problem, {}, 1, context.device());
  made->validate(context);
  context.set_tuning(Tuning::off);
  const std::string estimated(made->chosen(context).name);
  detail::Tuned tuned = made->remembered(context);
  const bool known = !tuned.rung.empty() && !again;
  if (!known) tuned = made->tune(context);
  if (tuned.rung.empty()) {
    table.add({std::string(op.name()), problem.to_string(), "", estimated, "", "",
               "not timed: no kernel could be, or copies of its results have no room"});
    return;
  }
  const double best = tuned.seconds[tuned.rung];
  const auto before = tuned.seconds.find(estimated);
  table.add({std::string(op.name()), problem.to_string(), tuned.rung,
             estimated == tuned.rung ? "" : estimated, format_seconds(best),
             before != tuned.seconds.end() && best > 0 ? format_number(before->second / best) : "",
             known ? "known before" : ""});
}

int run(const Options& options) {
  const Backend backend = backend_to_tune(options.backend);
  Context context = context_on(backend, options.threads, options.device);
  const Problems problems = problems_of(options, backend);
  Table table({{"operator", false, Table::Fit::keep},
               {"problem", false, Table::Fit::yield},
               {"kernel", false, Table::Fit::keep},
               {"estimated", false, Table::Fit::drop},
               {"time", true, Table::Fit::keep},
               {"faster", true, Table::Fit::keep},
               {"remark"}});
  const InterruptGuard guard;
  bool refused = false;
  try {
    Progress progress(static_cast<std::int64_t>(problems.size()));
    for (const auto& [op, problem] : problems) {
      progress.step(problem.to_string());
      try {
        tune_one(*op, problem, options.again, context, table);
      } catch (const Error& error) {
        table.add({std::string(op->name()), problem.to_string(), "", "", "", "", error.what()});
        refused = true;
      }
    }
  } catch (const Interrupted&) {  // NOLINT(bugprone-empty-catch): what was timed is printed
  }
  fmt::print("{}", table.text());
  if (const std::string trouble = detail::tuning_file_trouble(); !trouble.empty()) {
    throw Error(ErrorCode::io, "the choices are not kept: " + trouble);
  }
  say(
      fmt::format("`faster`: times as fast as the kernel that the estimates choose, which is named "
                  "where it is another one. Choices are in {}; programs use them with "
                  "RUNG_TUNE=remembered.",
                  detail::tuning_file_path()));
  if (InterruptGuard::interrupted()) InterruptGuard::end("the rest is not tuned");
  return refused ? exit_usage : exit_good;
}

CommandSpec::Action setup(Parser app) {
  auto options = std::make_shared<Options>();
  app.add_option("op", options->op, "the operator; with --from-log: of which calls, default all")
      .completes(complete_operators);
  app.add_option("problem", options->problems, "as in bench; default: those that bench times")
      .type_name("PROBLEM");
  app.add_option("--from-log", options->log, "the calls that a program wrote with RUNG_LOG=calls")
      .type_name("FILE");
  const Option backend = app.add_option("--backend", options->backend,
                                        "cpu, cuda or opencl; default: cuda where there is a GPU")
                             .completes(complete_backends);
  app.add_option("--device", options->device, device_help).between(0, max_device).needs(backend);
  app.add_option("--threads", options->threads, "CPU threads; default: every core")
      .between(1, 4096);
  app.add_flag("--again", options->again, "time what the file has, too");
  app.purpose(
      "Times, for each problem, the kernels that are estimated to take at most twice as long as "
      "the best, and keeps the fastest in a file that programs and processes share: "
      "RUNG_TUNE_FILE, else rung/tuning.jsonl in XDG_CACHE_HOME or ~/.cache. A program uses it "
      "with RUNG_TUNE=remembered in its environment, or Context::set_tuning(); with "
      "RUNG_TUNE=first_call it adds what is missing by itself. docs/tuning.md tells more.");
  app.example("rung tune gemm \"f32 512x512x512\"", "one problem");
  app.example("RUNG_LOG=calls ./program 2> calls.log", "what does a program call?");
  app.example("rung tune --from-log calls.log", "all of it");
  app.exit_codes({{exit_good, "tuned"},
                  {exit_usage, "the command line, the log, a problem or the file is wrong"},
                  {exit_not_here, "the backend is not available here"}});
  return [options] { return run(*options); };
}

const Command self{{.name = "tune",
                    .order = 36,
                    .summary = "measures which kernel is fastest for a call, and remembers it",
                    .setup = setup}};

}  // namespace
}  // namespace rung::workbench
