// SPDX-License-Identifier: Apache-2.0
// rung rates: prints the measured rates by which the library chooses kernels here, and how well
// they fit; fits new rates.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <ranges>
#include <string>
#include <vector>

#include "rung/core/error.hpp"
#include "rung/core/rates.hpp"
#include "rung/workbench/command.hpp"
#include "rung/workbench/files.hpp"
#include "rung/workbench/fit.hpp"
#include "rung/workbench/selection.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

struct Options {
  std::string op;
  std::string backend;
  std::vector<std::string> from, judge;
  std::string fit;
  std::string kernel;
  int worst = 10;
};

/// Prints the rated machines, and the fit of each operator's rates.
void print_fits(const Context& context) {
  const RatedMachine* const own = machine_of(context);
  if (own == nullptr) {
    say(fmt::format("No machine with the backend {} was measured: nominal rates are used.",
                    to_string(context.backend())));
    return;
  }
  fmt::print("{}{}: the rates of {}\n\n", to_string(context.backend()),
             device_in_parentheses(context), own->name);
  Table table({{"operator"},
               {"problems", true},
               {"of the best", true},
               {"held out", true},
               {"worst", true},
               {"fitted", false, Table::Fit::drop}});
  for (const Fit& fit : own->fits) {
    table.add({std::string(fit.op), fmt::format("{}", fit.problems),
               fmt::format("{:.3f}", fit.mean), fmt::format("{:.3f}", fit.held_out),
               fmt::format("{:.2f}", fit.worst), std::string(fit.date)});
  }
  fmt::print("{}", table.text());
  say("\nOf the best: seconds of the fastest kernel over those of the one that these rates choose, "
      "geometric mean over the problems of the fit; held out: over those left out of it, a fifth "
      "at a time; worst: of one that takes 10 us or more. RUNG_RATES=MACHINE uses another "
      "machine's.");
}

void print_rates(const AnyOperator& op, const Context& context) {
  std::vector<Table::Column> columns{{"kernel"}, {"path"}};
  for (std::size_t i = 0; i < term_count; ++i) {
    columns.push_back({std::string(to_string(static_cast<RateTerm>(i))), true});
  }
  Table table(columns);
  for (const RungInfo* rung : op.rungs()) {
    if (rung->backend != context.backend() || rung->peer || rung->teaching) continue;
    const KernelRates& rates = find_rates(op.name(), rung->name, context);
    for (int i = 0; i < rates.count; ++i) {
      std::vector<std::string> cells{std::string(rung->name), std::string(rates.paths[i].path)};
      for (const double one : rates.paths[i].rates.of) cells.push_back(fmt::format("{:.2g}", one));
      table.add(cells);
    }
  }
  fmt::print("{}", table.text());
  say("\nSeconds, but for memory, middle, near and arithmetic, which count nominal times: "
      "docs/choice.md has the model.");
}

/// Reads surveys of one operator.
std::vector<SurveyResults> read_surveys(std::string_view option,
                                        const std::vector<std::string>& paths,
                                        const AnyOperator& op) {
  std::vector<SurveyResults> all;
  for (const std::string& path : paths) {
    SurveyResults one = survey_from_json(read_text_file(path));
    if (one.op != op.name()) {
      throw Error(ErrorCode::invalid_argument, fmt::format("{} {}: a survey of {}; accepted: of {}",
                                                           option, path, one.op, op.name()));
    }
    all.push_back(std::move(one));
  }
  return all;
}

SurveyedRows rows_of(const std::vector<SurveyResults>& surveys) {
  SurveyedRows rows;
  for (const SurveyResults& one : surveys) rows.push_back(one.rows);
  return rows;
}

int fit_surveys(const Options& options) {
  const AnyOperator& op = known_operator(options.op);
  const std::vector<SurveyResults> surveys = read_surveys("--from", options.from, op);
  const SurveyResults& survey = surveys.front();
  const SurveyedRows judge = rows_of(read_surveys("--judge", options.judge, op));
  // The work of a GPU kernel is known without a GPU.
  const bool absent = survey.backend == Backend::cuda && !available(Backend::cuda);
  const Context context = Context::on(absent ? Backend::simt : survey.backend, survey.threads);
  const OperatorFit fit = fit_operator(op, rows_of(surveys), judge, context);
  if (!options.fit.empty()) {
    if (survey.device.name.empty()) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("--from {}: does not say of which device it is, as older files do "
                              "not; accepted: surveys of this version",
                              options.from.front()));
    }
    write_text_file(options.fit, rates_json(fit, survey));
  }
  const auto shown = static_cast<std::size_t>(options.worst);
  if (options.kernel.empty()) {
    fmt::print("{}", fit_text(fit, shown));
    return exit_good;
  }
  if (!fit.timings.contains(options.kernel)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--kernel {}: not timed in these surveys; accepted: {}", options.kernel,
                            fmt::join(std::views::keys(fit.timings), ", ")));
  }
  fmt::print("{}", timings_text(fit, options.kernel, shown));
  return exit_good;
}

int run(const Options& options) {
  if (!options.from.empty()) return fit_surveys(options);
  if (!options.kernel.empty() || !options.judge.empty() || !options.fit.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "--kernel, --judge and --fit: need --from, the surveys to fit rates to");
  }
  const Context context = Context::on(!options.backend.empty()   ? parse_backend(options.backend)
                                      : available(Backend::cuda) ? Backend::cuda
                                                                 : Backend::cpu);
  if (options.op.empty()) {
    print_fits(context);
  } else {
    print_rates(known_operator(options.op), context);
  }
  return exit_good;
}

CommandSpec::Action setup(Parser app) {
  auto options = std::make_shared<Options>();
  app.add_option("op", options->op, "the rates of this operator's kernels")
      .completes(complete_operators);
  app.add_option("--backend", options->backend,
                 "cpu, cuda or simt; default: cuda where there is a GPU")
      .completes(complete_backends);
  app.add_option("--from", options->from,
                 "fit rates to what these surveys timed (`rung survey --json`), and say how well "
                 "the library would choose by them")
      .type_name("FILE");
  app.add_option("--judge", options->judge,
                 "with --from: judge by these surveys, which take no part in the fit; default: by "
                 "each fifth of the problems, held out of a fit to the others")
      .type_name("FILE");
  app.add_option("--worst", options->worst, "with --from: so many of the wrong choices; default 10")
      .between(0, 1000);
  app.add_option("--kernel", options->kernel,
                 "with --from: in place of wrong choices, the timings of this kernel that the "
                 "fitted rates predict worst: what they have in common is a missing fact")
      .type_name("NAME");
  app.add_option("--fit", options->fit, "with --from: write them here").type_name("FILE");
  app.purpose(
      "Shows by which measured rates the library chooses among its kernels on this machine, how "
      "well they fit, and, for an operator, the rates. A machine without measurements uses those "
      "of the most similar one. `rung survey OP --fit FILE` measures and fits them anew.");
  app.example("rung rates", "which machine's, and how well they choose");
  app.example("rung rates softmax", "the rates of its kernels");
  app.exit_codes({{exit_good, "shown"},
                  {exit_usage, "the command line is wrong"},
                  {exit_not_here, "the backend is not available here"}});
  return [options] { return run(*options); };
}

const Command self{{.name = "rates",
                    .order = 37,
                    .summary = "by which measured rates are kernels chosen, and how well?",
                    .setup = setup}};

}  // namespace
}  // namespace rung::workbench
