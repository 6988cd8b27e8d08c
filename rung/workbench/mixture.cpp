// SPDX-License-Identifier: Apache-2.0
// rung mixture: mean time of operations whose accesses go to memories of different speed.
#include "rung/bench/mixture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "rung/workbench/calculator.hpp"

namespace rung::workbench {
namespace {

using Parts = std::vector<bench::MixturePart>;

[[noreturn]] void refuse(const char* name, const std::string& given, const char* accepted) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: '{}' given; accepted: {}", name, given, accepted));
}

Parts parse_parts(const std::vector<std::string>& words) {
  constexpr const char* accepted = "shares and times that add up to 100 %, as in 50%=120ns 50%=5ns";
  Parts parts;
  double sum = 0;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) refuse("part", word, accepted);
    parts.push_back({parse_quantity("part", word.substr(0, equals), Unit::part),
                     parse_quantity("part", word.substr(equals + 1), Unit::seconds)});
    sum += parts.back().share;
  }
  if (parts.empty()) refuse("part", "nothing", accepted);
  if (std::abs(sum - 1) > 1e-6) refuse("part", format_quantity(sum, Unit::part), accepted);
  return parts;
}

/// Work of an operation besides its accesses: a time, or a number of operations at a rate.
struct Beside {
  double seconds = 0;
  double operations = 0;  // 0: not given
};

Beside parse_beside(const std::string& text) {
  const std::size_t at = text.find('@');
  if (at == std::string::npos) {
    return {parse_quantity("--plus", text, Unit::seconds, {.zero = true}), 0};
  }
  std::string count = text.substr(0, at);
  if (!count.ends_with("ops")) {
    refuse("--plus", text, "a time, or operations and a rate, as in 100ops@1GFLOP/s");
  }
  count.resize(count.size() - 3);
  const double operations = parse_quantity("--plus", count, Unit::count);
  const double rate =
      parse_quantity("--plus", text.substr(at + 1),
                     text.ends_with("Hz") ? Unit::hertz : Unit::operations_per_second);
  return {operations / rate, operations};
}

/// Parses --target, a mean time or a rate; returns the time per operation.
double parse_target(const std::string& text, double operations) {
  if (!text.ends_with("/s")) return parse_quantity("--target", text, Unit::seconds);
  if (operations == 0) refuse("--target", text, "a time; a rate only with --plus Nops@RATE");
  return operations / parse_quantity("--target", text, Unit::operations_per_second);
}

void compute(const Parts& parts, const Given& given, Sheet& sheet) {
  const Beside beside = parse_beside(given.word("plus"));
  const double accesses = given["each"];
  sheet.let("beside", beside.seconds, Unit::seconds, "plus");
  std::string formula;
  double slow = 0;
  double fast = INFINITY;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const double seconds = bench::operation_seconds(parts[i].seconds, accesses, beside.seconds);
    const std::string name = fmt::format("part {}", i + 1);
    const std::string share = fmt::format("share {}", i + 1);
    const std::string access = fmt::format("access {}", i + 1);
    const std::string text = fmt::format("{} at {}", format_quantity(parts[i].share, Unit::part),
                                         format_quantity(parts[i].seconds, Unit::seconds));
    sheet.input(fmt::format("part-{}", i + 1), "", text, text);
    sheet.let(share, parts[i].share, Unit::part);
    sheet.let(access, parts[i].seconds, Unit::seconds);
    sheet.result(name, fmt::format("{{each}} x {{{}}} + {{beside}}", access), seconds,
                 Unit::seconds);
    formula += fmt::format("{}{{{}}} x {{{}}}", i == 0 ? "" : " + ", share, name);
    slow = std::max(slow, seconds);
    fast = std::min(fast, seconds);
  }
  const double mean = bench::mean_operation_seconds(parts, accesses, beside.seconds);
  sheet.result("mean", formula, mean, Unit::seconds);
  if (beside.operations > 0) {
    sheet.let("operations", beside.operations);
    sheet.result("rate", "{operations} / {mean}", beside.operations / mean,
                 Unit::operations_per_second);
  }
  if (!given.has("target")) return;

  const double target = parse_target(given.word("target"), beside.operations);
  if (parts.size() != 2 || slow == fast) {
    refuse("--target", given.word("target"), "only with two parts of different times");
  }
  if (target < fast || target > slow) {
    refuse("--target", given.word("target"),
           "a mean between the two parts' times; no share gives another");
  }
  sheet.let("goal", target, Unit::seconds, "target");
  sheet.let("fast", fast, Unit::seconds);
  sheet.let("slow", slow, Unit::seconds);
  sheet.result("share of the slow", "({goal} - {fast}) / ({slow} - {fast})",
               bench::slow_share_for(target, slow, fast), Unit::part);
}

CommandSpec::Action setup(Parser app) {
  auto words = std::make_shared<std::vector<std::string>>();
  app.add_option("part", *words, "a share of the operations, and the time of an access: 50%=120ns")
      .type_name("PART");
  app.purpose(
      "Computes the mean time of operations of which parts go to memories of different speed: "
      "those that hit a cache and those that miss it, say. An operation makes --each accesses one "
      "after another, and takes --plus beside them.");
  app.example("rung mixture 50%=120ns 50%=5ns --each 5 --plus 100ns",
              "five loads and 100 ns of work; half miss");
  app.example("rung mixture 50%=120ns 50%=5ns --target 20ns", "how many may miss?");
  return Calculator(app, "mixture",
                    {{.name = "--each",
                      .help = "accesses per operation",
                      .fallback = "1",
                      .accepted = {.most = 1e9}},
                     {.name = "--plus",
                      .help = "beside the accesses: a time, or operations as in 100ops@1GFLOP/s",
                      .fallback = "0",
                      .kind = InputKind::word},
                     {.name = "--target",
                      .help = "a mean time, or a rate: which share may be slow?",
                      .optional = true,
                      .kind = InputKind::word}})
      .action([words](const Given& given, Sheet& sheet) {
        compute(parse_parts(*words), given, sheet);
      });
}

const Command self{{.name = "mixture",
                    .order = 83,
                    .summary = "the mean time of operations of which some miss a cache",
                    .setup = setup}};

}  // namespace
}  // namespace rung::workbench
