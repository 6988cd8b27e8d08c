// SPDX-License-Identifier: Apache-2.0
// rung explain --choice: which kernels take a call, what each is estimated to take and why, what
// was measured, and who refuses.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "rung/core/operator.hpp"
#include "rung/core/tuning.hpp"
#include "rung/workbench/command.hpp"
#include "rung/workbench/explain.hpp"
#include "rung/workbench/selection.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

struct Row {
  const RungInfo* rung;
  double estimate;
};

/// Names what takes most of an estimate, by the nominal rates that estimates are made of.
std::string limiter(const Cost& traffic, double estimate, const Context& context) {
  const NominalRates rates = nominal_rates(context);
  const double moving = traffic.bytes / rates.bytes_per_second;
  const double computing = traffic.operations / rates.operations_per_second;
  const double starting = in_host_memory(context.backend()) ? 0 : launch_seconds;
  if (starting > estimate / 2) return "launch";
  if (moving > estimate / 2 && moving >= computing) return "memory";
  if (computing > estimate / 2) return "arithmetic";
  return "latency or arithmetic";
}

}  // namespace

int explain_choice(const AnyOperator& op, Backend backend, const Problem& problem) {
  Context context = Context::on(backend);
  expect_work(op, problem, context, "explain");
  const std::unique_ptr<Instance> made = op.outline(problem, context);
  std::vector<Row> rows;
  Table refusing({{"kernel"}, {"does not take it", false, Table::Fit::cut}});
  for (const RungInfo* rung : op.rungs()) {
    if (rung->backend != backend || rung->peer) continue;
    if (rung->teaching) {
      refusing.add({std::string(rung->name), "a teaching rung: later ones always beat it"});
    } else if (const Support support = made->supports(*rung, context); !support) {
      refusing.add({std::string(rung->name), support.why});
    } else {
      rows.push_back({rung, made->estimate(*rung, context)});
    }
  }
  context.set_tuning(Tuning::off);
  const std::string estimated = rows.empty() ? "" : std::string(made->chosen(context).name);
  std::ranges::stable_sort(rows, {}, &Row::estimate);
  const detail::Tuned tuned = made->remembered(context);
  Table table({{"kernel"},
               {"estimate", true},
               {"vs best", true},
               {"limited by", false, Table::Fit::drop},
               {"measured", true},
               {""}});
  for (const Row& row : rows) {
    const std::string name(row.rung->name);
    const auto measured = tuned.seconds.find(name);
    const char* const remark = name == tuned.rung   ? "chosen where a context tunes"
                               : name != estimated  ? ""
                               : tuned.rung.empty() ? "chosen"
                                                    : "chosen without tuning";
    table.add({name, format_seconds(row.estimate),
               format_number(row.estimate / rows.front().estimate),
               limiter(made->traffic(*row.rung), row.estimate, context),
               measured != tuned.seconds.end() ? format_seconds(measured->second) : "",
               name == tuned.rung && name == estimated ? "chosen" : remark});
  }
  fmt::print("{} on {}{}: {}\n\n", op.name(), to_string(backend), device_in_parentheses(context),
             problem.to_string());
  if (rows.empty()) say("No kernel takes it.");
  fmt::print("{}", table.text());
  if (!refusing.empty()) fmt::print("\n{}", refusing.text());
  if (!rows.empty()) {
    say("\nThe least estimate is chosen; only the order of estimates counts." +
        std::string(tuned.rung.empty() ? " Nothing was measured: `rung tune` does." : ""));
  }
  return exit_good;
}

}  // namespace rung::workbench
