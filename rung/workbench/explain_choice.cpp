// SPDX-License-Identifier: Apache-2.0
// rung explain --choice: the kernels that support a call, the predicted time of each and its parts,
// measured times, and the reasons of unsupported kernels.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "rung/core/operator.hpp"
#include "rung/core/rates.hpp"
#include "rung/core/tuning.hpp"
#include "rung/workbench/command.hpp"
#include "rung/workbench/explain.hpp"
#include "rung/workbench/selection.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

struct Row {
  const RungInfo* rung;
  Work work;
  Prediction predicted;
};

/// Formats the dominant parts of a prediction: "1.2 us launch + 3.4 us memory".
std::string parts_of(const Prediction& one) {
  std::string text;
  const auto add = [&](double seconds, std::string_view what) {
    constexpr double least_share = 0.05;
    if (seconds < least_share * one.seconds) return;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", what, format_seconds(seconds));
  };
  add(one.starting, "start");
  add(one.memory, "memory");
  add(one.arithmetic, "arithmetic");
  add(one.waiting, "latency");
  add(one.issue, "instructions");
  return text;
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
      rows.push_back({rung, made->work(*rung, context), made->predict(*rung, context)});
    }
  }
  context.set_tuning(Tuning::off);
  const std::string estimated = rows.empty() ? "" : std::string(made->chosen(context).name);
  std::ranges::stable_sort(rows, {}, [](const Row& row) { return row.predicted.seconds; });
  const detail::Tuned tuned = made->remembered(context);
  Table table({{"kernel"},
               {"predicted", true},
               {"vs best", true},
               {"limited by", false, Table::Fit::drop},
               {"measured", true},
               {"", false, Table::Fit::drop},
               {"of which", false, Table::Fit::drop}});
  for (const Row& row : rows) {
    const std::string name(row.rung->name);
    const std::string path(row.work.path);
    const auto measured = tuned.seconds.find(name);
    const char* const remark = name == tuned.rung   ? "chosen where a context tunes"
                               : name != estimated  ? ""
                               : tuned.rung.empty() ? "chosen"
                                                    : "chosen without tuning";
    const double seconds = row.predicted.seconds;
    table.add({path.empty() ? name : fmt::format("{} ({})", name, path), format_seconds(seconds),
               format_number(seconds / rows.front().predicted.seconds), row.predicted.limiter(),
               measured != tuned.seconds.end() ? format_seconds(measured->second) : "",
               name == tuned.rung && name == estimated ? "chosen" : remark,
               parts_of(row.predicted)});
  }
  fmt::print("{} on {}{}: {}\n\n", op.name(), to_string(backend), device_in_parentheses(context),
             problem.to_string());
  if (rows.empty()) say("No kernel takes it.");
  fmt::print("{}", table.text());
  if (!refusing.empty()) fmt::print("\n{}", refusing.text());
  if (!rows.empty()) {
    const RatedMachine* const machine = machine_of(context);
    say(fmt::format(
        "\nThe least prediction is chosen, by the rates of {} (`rung rates`); parts overlap.{}",
        machine != nullptr ? machine->name : "a nominal machine",
        tuned.rung.empty() ? " Nothing was measured: `rung tune` does." : ""));
  }
  return exit_good;
}

}  // namespace rung::workbench
