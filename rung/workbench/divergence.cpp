// SPDX-License-Identifier: Apache-2.0
// rung divergence: cost of a warp whose lanes take different branches.
#include "rung/bench/divergence.hpp"

#include <algorithm>

#include "rung/workbench/calculator.hpp"

namespace rung::workbench {
namespace {

void compute(const Given& given, Sheet& sheet) {
  std::vector<double> paths;
  std::string sum;
  std::string list = given.word("paths") + ",";
  for (std::size_t begin = 0, end; (end = list.find(',', begin)) != std::string::npos;
       begin = end + 1) {
    paths.push_back(parse_quantity("--paths", std::string_view(list).substr(begin, end - begin),
                                   Unit::seconds));
    sum += (sum.empty() ? "" : " + ") + format_quantity(paths.back(), Unit::seconds);
  }
  const double both = bench::divergent_seconds(paths);
  const double slowest = bench::uniform_seconds(paths);
  const double share = given["divergent"];
  sheet.result("all lanes on one path", "the slowest path at most", slowest, Unit::seconds);
  sheet.result("lanes on every path", sum, both, Unit::seconds);
  sheet.result("slowdown", "{lanes on every path} / {all lanes on one path}", both / slowest);
  if (share < 1) {
    sheet.let("rest", 1 - share, Unit::part, "(1 - divergent)");
    sheet.result("mean over the warps",
                 "{divergent} x {lanes on every path} + {rest} x {all lanes on one path}",
                 share * both + (1 - share) * slowest, Unit::seconds);
  }
  sheet.remark("A warp without a lane on a path skips it: branch by warp, not by lane.");
  sheet.counted_by({.op = "reduce",
                    .rung = "interleaved_modulo",
                    .problem = "f32 4096",
                    .remark = "lanes part at every step",
                    .figures = {{"divergent warps", counted::divergent_share, Unit::part}}});
}

CommandSpec::Action setup(Parser app) {
  app.purpose(
      "Computes how long a warp takes whose lanes take different paths of a branch: as long as all "
      "paths together, one after another.");
  app.example("rung divergence --paths 10ms,2ms", "an if and its else");
  app.example("rung divergence --paths 10ms,2ms --divergent 10%,50%",
              "where part of the warps diverge, and the others take the slowest path");
  return Calculator(app, "divergence",
                    {{.name = "--paths",
                      .help = "the time of each path, as in 10ms,2ms",
                      .kind = InputKind::word,
                      .takes_commas = true},
                     {.name = "--divergent",
                      .unit = Unit::part,
                      .help = "the share of warps with lanes on every path",
                      .fallback = "1"}})
      .action(compute);
}

const Command self{{.name = "divergence",
                    .order = 88,
                    .summary = "what a warp pays whose lanes take different paths",
                    .setup = setup}};

}  // namespace
}  // namespace rung::workbench
