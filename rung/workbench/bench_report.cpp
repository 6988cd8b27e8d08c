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
          {"device", row.device},
          {"seconds", bench::json_number(row.seconds)},
          {"spread", bench::json_number(row.spread)},
          {"rate", bench::json_number(row.rate)},
          {"unit", row.unit},
          {"of_ceiling", bench::json_number(share_shown(row.of_ceiling))},
          {"vs_peer", bench::json_number(row.vs_peer)},
          {"step", row.step},
          {"kind", row.kind},
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
        {row.step_text, row.rung, timed ? format_seconds(row.seconds) : "",
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

ordered_json not_timed_to_json(const BenchRow& row) {
  return {{"op", row.op},           {"rung", row.rung},       {"backend", to_string(row.backend)},
          {"peer", row.peer},       {"problem", row.problem}, {"device", row.device},
          {"threads", row.threads}, {"why", row.note}};
}

/// Lists versions without a time, those with equal reasons on one line: "openblas, blis: not timed:
/// take f32 and f64".
std::string not_timed_text(const std::vector<BenchRow>& rows) {
  std::vector<std::pair<std::string, std::string>> names_of;
  for (const BenchRow& row : rows) {
    const auto found = std::find_if(names_of.begin(), names_of.end(),
                                    [&](const auto& one) { return one.first == row.note; });
    if (found == names_of.end()) {
      names_of.emplace_back(row.note, row.rung);
    } else {
      found->second += ", " + row.rung;
    }
  }
  std::string text;
  for (const auto& [why, names] : names_of) {
    text += wrapped(fmt::format("{}: not timed: {}", names, one_line(why)), text_width());
  }
  return text;
}

}  // namespace

std::string bench_text(const std::vector<BenchTable>& tables) {
  std::string text;
  for (const BenchTable& one : tables) {
    const Table table = text_table(one);
    text += wrapped(one.title, text_width());
    text += table.empty() ? "no version of it takes this problem here\n" : table.text();
    text += not_timed_text(one.not_timed);
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

std::string bench_json(const std::vector<BenchTable>& tables, const bench::Machine& machine,
                       bool complete) {
  ordered_json rows = ordered_json::array();
  ordered_json not_timed = ordered_json::array();
  for (const BenchTable& table : tables) {
    for (const BenchRow& row : table.rows) {
      rows.push_back(to_json(row));
      rows.back()["no_ceiling"] = table.no_ceiling;
    }
    for (const BenchRow& row : table.not_timed) not_timed.push_back(not_timed_to_json(row));
  }
  const ordered_json all = {{"machine", ordered_json::parse(bench::machine_to_json(machine))},
                            {"complete", complete},
                            {"rows", rows},
                            {"not_timed", not_timed}};
  return all.dump(2);
}

}  // namespace rung::workbench
