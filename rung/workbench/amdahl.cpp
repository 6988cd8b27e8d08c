// SPDX-License-Identifier: Apache-2.0
// rung amdahl: speedup by more processors, given the parallel fraction of the work.
#include "rung/bench/amdahl.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "rung/bench/json_text.hpp"
#include "rung/workbench/calculator.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

using nlohmann::ordered_json;

struct Options {
  std::string parallel;
  std::vector<double> processors;
  double measured = 0;  // 0: not given
  bool json = false;
};

double parse_count(const char* name, const std::string& text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && stopped == end && value >= 1 && value <= 1e15) return value;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: '{}' given; accepted with --measured: a number from 1 to 1e+15",
                          name, text));
}

/// Prints the parallel fraction that a measured speedup implies; returns an exit code.
int explain_measured(const Options& options) {
  // `--measured 5.6 8`: the positional number is that of processors.
  std::vector<double> given = options.processors;
  if (!options.parallel.empty()) given.push_back(parse_count("processors", options.parallel));
  if (given.size() != 1 || given[0] <= 1) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("--measured: {} given; accepted: the speed-up and one number of "
                    "processors above 1, as in `rung amdahl --measured 5.6 8`",
                    given.empty()       ? "no number of processors"
                    : given.size() == 1 ? count_of(fmt::format("{:g}", given[0]), "processor")
                                        : "several numbers of processors"));
  }
  const double processors = given.front();
  const double speedup = options.measured;
  const double serial = bench::karp_flatt_serial(speedup, processors);
  const double limit = serial > 0 ? 1 / serial : INFINITY;
  if (options.json) {
    const ordered_json json = {{"processors", processors},
                               {"speedup", speedup},
                               {"efficiency", speedup / processors},
                               {"serial", serial},
                               {"limit", bench::json_number(limit)}};
    fmt::print("{}\n", json.dump(2));
    return exit_good;
  }
  Sheet sheet;
  sheet.input("speed-up", "s", fmt::format("{:g}", speedup), speedup);
  sheet.input("processors", "n", fmt::format("{:g}", processors), processors);
  sheet.result("efficiency", "{speed-up} / {processors}", speedup / processors, Unit::part);
  if (serial < 0) {
    sheet.remark(fmt::format(
        "More than {:g} times: each processor's part fits a nearer cache, perhaps.", processors));
  } else {
    sheet.result("serial", "(1 / {speed-up} - 1 / {processors}) / (1 - 1 / {processors})", serial,
                 Unit::part);
    if (serial > 0) sheet.result("speed-up at most", "1 / {serial}", limit);
    sheet.remark("As if that part of the work were serial (Karp and Flatt).");
  }
  fmt::print("{}", sheet.text());
  return exit_good;
}

int run(const Options& options) {
  if (options.measured != 0) return explain_measured(options);
  if (options.parallel.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "parallel: not given; accepted: a part from 0 to 1, as in 0.9 or 90%");
  }
  const double parallel = parse_fraction("parallel", options.parallel);
  std::vector<double> processors = options.processors;
  if (processors.empty()) processors = {2, 4, 8, 16, 32, 64, 128, 1024};
  const double limit = bench::amdahl_limit(parallel);

  ordered_json rows = ordered_json::array();
  std::vector<Sheet> sheets;
  for (const double count : processors) {
    const double speedup = bench::amdahl_speedup(parallel, count);
    const double scaled = bench::gustafson_speedup(parallel, count);
    rows.push_back(
        {{"processors", count},
         {"speedup", speedup},
         {"efficiency", speedup / count},
         {"of_limit", bench::json_number(std::isfinite(limit) ? speedup / limit : std::nan(""))},
         {"gustafson", scaled}});
    Sheet& sheet = sheets.emplace_back();
    sheet.input("parallel", "p", format_quantity(parallel, Unit::part), parallel);
    sheet.input("processors", "n", fmt::format("{:g}", count), count);
    sheet.result("speed-up", "1 / ((1 - {parallel}) + {parallel} / {processors})", speedup);
    sheet.result("efficiency", "{speed-up} / {processors}", speedup / count, Unit::part);
    if (std::isfinite(limit)) {
      sheet.result("of the limit", "{speed-up} x (1 - {parallel})", speedup / limit, Unit::part);
    }
    sheet.result("if the work grows", "(1 - {parallel}) + {parallel} x {processors}", scaled);
    sheet.remark(fmt::format("{} of the work parallel: {}", format_quantity(parallel, Unit::part),
                             std::isfinite(limit)
                                 ? fmt::format("never more than {:.4g} times as fast", limit)
                                 : "no limit but the processors"));
  }
  if (options.json) {
    const ordered_json json = {
        {"parallel", parallel}, {"limit", bench::json_number(limit)}, {"rows", rows}};
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print("{}", sheets.size() == 1 ? sheets.front().text() : Sheet::table(sheets));
  }
  return exit_good;
}

CommandSpec::Action setup(Parser app) {
  auto options = std::make_shared<Options>();
  app.add_option("parallel", options->parallel,
                 "the part of the work that is sped up, by its time on one processor: 0.9 or 90%")
      .type_name("PART");
  app.add_option("processors,-n,--processors", options->processors,
                 "how many, or how much faster that part gets; default: 2 to 1024")
      .between(1.0, 1e15);
  app.add_option("--measured", options->measured,
                 "the other way round: a speed-up, of which the serial part is computed")
      .positive();
  app.add_flag("--json", options->json, "one object");
  app.purpose(
      "Amdahl's law: the serial part takes as long as ever, so that it sets the limit. "
      "Gustafson's: with more processors people solve larger problems, in which the parallel part "
      "grows with them (the last column; the part is then that of the time on all of them).");
  app.example("rung amdahl 90% 1000", "9/10 of the work on 1000 processors");
  app.example("rung amdahl 0.95 2 8 64", "one line each");
  app.example("rung amdahl --measured 5.6 8", "how much was serial, by Karp and Flatt");
  app.exit_codes({{exit_good, "good"}, {exit_usage, "a number is out of its range"}});
  return [options] { return run(*options); };
}

const Command self{{.name = "amdahl",
                    .order = 90,
                    .summary = "what more processors can bring at most",
                    .setup = setup}};

}  // namespace
}  // namespace rung::workbench
