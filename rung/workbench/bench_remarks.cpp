// SPDX-License-Identifier: Apache-2.0
// The paragraphs below the tables of `rung bench`.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rung/bench/statistics.hpp"
#include "rung/workbench/bench.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {

std::string oversubscribed_text(int threads, const bench::Machine& machine) {
  if (threads <= machine.cores) return "";
  return wrapped(
      fmt::format("{} were requested on {}: rung's teams have no more of them than there are "
                  "cores, and a library's take turns, so that these times say nothing of a "
                  "machine that has the cores.",
                  count_of(threads, "thread"), count_of(machine.cores, "core")),
      text_width());
}

std::string busy_text(const std::vector<BenchTable>& tables) {
  constexpr int min_rounds = 2;       // a single time has no spread
  constexpr double max_spread = 0.1;  // a few percent on a quiet machine
  constexpr double max_alone = 1;     // for one version, if the others are quiet
  std::vector<double> spreads;
  const BenchRow* worst = nullptr;
  for (const BenchTable& table : tables) {
    for (const BenchRow& row : table.rows) {
      if (row.rounds < min_rounds || !std::isfinite(row.spread)) continue;
      spreads.push_back(row.spread);
      if (worst == nullptr || row.spread > worst->spread) worst = &row;
    }
  }
  const double typical = bench::median(spreads);
  std::string text;
  if (typical > max_spread) {
    text = wrapped(fmt::format("The machine was busy: the times of a version spread by {:.0f} % "
                               "(median over the versions), so that no figure is more exact than "
                               "that. Ratios within rounds suffer least.",
                               100 * typical),
                   text_width());
  }
  if (worst != nullptr && worst->spread > max_alone) {
    text += wrapped(fmt::format("The times of {} on {} spread by {:.0f} %: something else took its "
                                "core. Time it again; --pairs makes more rounds.",
                                worst->rung, worst->problem, 100 * worst->spread),
                    text_width());
  }
  return text;
}

std::string bench_remarks(const std::vector<BenchTable>& tables, const bench::Machine& machine,
                          const std::string& rounds) {
  bool above_ceiling = false;
  int threads = 0;
  for (const BenchTable& table : tables) {
    for (const BenchRow& row : table.rows) {
      above_ceiling |= row.of_ceiling > 1 + ceiling_spread;
      if (row.backend == Backend::cpu) threads = std::max(threads, row.threads);
    }
  }
  std::string text;
  if (const std::string legend = bench_legend(tables, rounds); !legend.empty()) {
    text += wrapped(legend, text_width());
  }
  if (above_ceiling) {
    text += wrapped(
        "of ceiling is blank where a version was faster than the ceiling. Reasons: fewer "
        "operations than the definition's, which are counted (Winograd); data that stay in a "
        "cache; ceilings that were measured while the machine was busy (`rung machine --refresh`).",
        text_width());
  }
  if (machine.noisy()) {
    text += wrapped(
        "The ceilings were measured while the machine was busy, so that they may be too low: "
        "`rung machine` measures again.",
        text_width());
  }
  return text + oversubscribed_text(threads, machine) + toned(Tone::bad, busy_text(tables));
}

}  // namespace rung::workbench
