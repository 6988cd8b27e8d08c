// SPDX-License-Identifier: Apache-2.0
// The rows of `rung bench` as text and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "rung/bench/json_text.hpp"
#include "rung/bench/statistics.hpp"
#include "rung/workbench/bench.hpp"
#include "rung/workbench/selection.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

using nlohmann::ordered_json;

std::string percent(double share) {
  return std::isfinite(share) ? fmt::format("{:.1f} %", 100 * share) : "";
}

ordered_json to_json(const BenchRow& row) {
  return {{"op", row.op},
          {"rung", row.rung},
          {"backend", to_string(row.backend)},
          {"peer", row.peer},
          {"problem", row.problem},
          {"seconds", bench::json_number(row.seconds)},
          {"spread", bench::json_number(row.spread)},
          {"rate", bench::json_number(row.rate)},
          {"unit", row.unit},
          {"of_ceiling", bench::json_number(share_shown(row.of_ceiling))},
          {"vs_peer", bench::json_number(row.vs_peer)},
          {"step", row.step},
          {"threads", row.threads},
          {"threads_used", row.threads_used == 0 ? ordered_json() : ordered_json(row.threads_used)},
          {"rounds", row.rounds},
          {"chosen", row.chosen},
          {"note", row.note},
          {"failed", row.failed}};
}

Table text_table(const BenchTable& one) {
  Table table({{"step", true, Table::Fit::drop},
               {"rung"},
               {"time", true},
               {"rate", true, Table::Fit::drop},
               {"of ceiling", true},
               {"vs peer", true},
               {"spread", true, Table::Fit::drop},
               {"threads", true, Table::Fit::drop},
               {"note"}});
  for (const BenchRow& row : one.rows) {
    const bool timed = std::isfinite(row.seconds);
    table.add(
        {row.step == 0 ? "" : std::to_string(row.step), row.rung,
         timed ? format_seconds(row.seconds) : "",
         timed ? fmt::format("{} {}", format_number(row.rate), row.unit) : "",
         percent(share_shown(row.of_ceiling)),
         std::isfinite(row.vs_peer) ? fmt::format("{:.2f}", row.vs_peer) : "",
         timed ? percent(row.spread) : "",
         row.threads > 1 && row.threads_used > 0 ? std::to_string(row.threads_used) : "", row.note},
        row.failed                ? Tone::bad
        : row.rung == public_call ? Tone::strong
                                  : Tone::plain);
  }
  return table;
}

}  // namespace

std::string bench_text(const std::vector<BenchTable>& tables) {
  std::string text;
  for (const BenchTable& one : tables) {
    const Table table = text_table(one);
    text += wrapped(one.title, text_width());
    text += table.empty() ? "no version of it takes this problem here\n" : table.text();
    text += '\n';
  }
  return text;
}

std::string bench_legend(const std::vector<BenchTable>& tables, const std::string& rounds) {
  const std::pair<const char*, std::string> columns[] = {
      {"vs peer",
       fmt::format("speed as a multiple of the fastest peer's, the median of the ratios within "
                   "each of {}",
                   rounds)},
      {"spread", "(third quartile - first) / median of the times"},
      {"threads", "how many took part; of a library it is not known"}};
  std::string legend;
  for (const auto& [title, meaning] : columns) {
    const bool shown = std::any_of(tables.begin(), tables.end(), [&](const BenchTable& one) {
      return text_table(one).shows(title);
    });
    if (shown) legend += fmt::format("{}{}: {}.", legend.empty() ? "" : " ", title, meaning);
  }
  return legend;
}

std::string busy_text(const std::vector<BenchTable>& tables) {
  constexpr int min_rounds = 2;       // one time has no spread
  constexpr double max_spread = 0.1;  // on a quiet machine it is a few percent
  constexpr double max_alone = 1;     // of one version, where the others are quiet
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

std::string bench_json(const std::vector<BenchTable>& tables, const bench::Machine& machine) {
  ordered_json rows = ordered_json::array();
  for (const BenchTable& table : tables) {
    for (const BenchRow& row : table.rows) rows.push_back(to_json(row));
  }
  const ordered_json all = {{"machine", ordered_json::parse(bench::machine_to_json(machine))},
                            {"rows", rows}};
  return all.dump(2);
}

}  // namespace rung::workbench
