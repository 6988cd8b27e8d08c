// SPDX-License-Identifier: Apache-2.0
// rung list: the ladders - every rung, whether it can be used here, and if not, why.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "rung/workbench/command.hpp"
#include "rung/workbench/selection.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

using nlohmann::ordered_json;

struct Options {
  std::string target;
  bool json = false;
};

std::string about(const RungInfo& rung) { return rung.about != nullptr ? rung.about() : ""; }

ordered_json to_json(const AnyOperator& op, const RungInfo& rung) {
  const Availability here = rung_availability(rung);
  return {{"op", op.name()},
          {"rung", rung.name},
          {"step", rung.step},
          {"backend", to_string(rung.backend)},
          {"peer", rung.peer},
          {"available", here.ok},
          {"why_not", here.why},
          {"file", rung.file},
          {"after", rung.after},
          {"teaching", rung.teaching},
          {"about", here ? about(rung) : ""}};
}

std::string remark(const RungInfo& rung) {
  if (const Availability here = rung_availability(rung); !here) return "not here: " + here.why;
  std::string text = rung.peer ? "peer: " + about(rung) : "";
  if (rung.teaching) text = "teaching: not picked, fails or crawls on purpose";
  return text;
}

void print_ladder(const AnyOperator& op, const std::string& only) {
  fmt::print("{}   {}\n", op.name(), op.summary());
  fmt::print("problems: {}\n\n", op.problem_help());
  Table table({{"backend"}, {"step", true}, {"rung"}, {"file"}, {"remark"}});
  for (const RungInfo* rung : op.rungs()) {
    if (!only.empty() && rung->name != only) continue;
    // The folder is the operator's, the same in every line.
    const std::string file(rung->file.substr(rung->file.rfind('/') + 1));
    table.add({to_string(rung->backend), rung->peer ? "" : std::to_string(rung->step),
               std::string(rung->name), file, remark(*rung)});
  }
  fmt::print("{}\n", table.text());
}

int run(const Options& options) {
  const Target target = select_target(options.target);
  if (options.json) {
    ordered_json all = ordered_json::array();
    for (const AnyOperator* op : target.operators) {
      for (const RungInfo* rung : op->rungs()) {
        if (target.rung.empty() || rung->name == target.rung) all.push_back(to_json(*op, *rung));
      }
    }
    fmt::print("{}\n", all.dump(2));
    return exit_good;
  }
  for (const AnyOperator* op : target.operators) print_ladder(*op, target.rung);
  for (const Backend backend : all_backends) {
    const Availability here = available(backend);
    fmt::print("{:<5} {}\n", to_string(backend), here ? "available" : "not available: " + here.why);
  }
  return exit_good;
}

CommandSpec::Action setup(Parser app) {
  auto options = std::make_shared<Options>();
  app.add_option("op", options->target, "an operator, or operator/rung; default: all of them");
  app.add_flag("--json", options->json, "an array of objects, one a rung");
  app.footer(
      "A rung is one implementation of an operator: one file, whose first lines say what it\n"
      "changes against the rung before it and why that should help. Steps order the ladder.\n"
      "A peer is a vendor's library, timed beside the rungs and never picked by a call.\n\n"
      "  rung list\n"
      "  rung list gemm --json");
  return [options] { return run(*options); };
}

const Command self{{.name = "list",
                    .order = 10,
                    .summary = "the operators and their rungs, and what can run here",
                    .setup = setup}};

}  // namespace
}  // namespace rung::workbench
