// SPDX-License-Identifier: Apache-2.0
// Report of a survey, as text.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "rung/bench/statistics.hpp"
#include "rung/workbench/survey.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

/// Names the element types without a known floor, with the reason.
std::string no_floor_text(const std::vector<SurveyRow>& rows) {
  std::vector<std::string> types;
  for (const SurveyRow& row : rows) {
    if (!std::isnan(row.of_floor) || std::isnan(row.seconds)) continue;
    const std::string type = row.problem.substr(0, row.problem.find(' '));
    if (std::find(types.begin(), types.end(), type) == types.end()) types.push_back(type);
  }
  if (types.empty()) return "";
  return wrapped(fmt::format("No floor of {}: the rate of multiply-adds in that type is not "
                             "measured here (`rung machine`).",
                             fmt::join(types, ", ")),
                 text_width());
}

std::string line_of(std::string_view what, const SurveyMean& mean) {
  return wrapped(
      fmt::format("geometric mean {:.2f}, worst {:.2f}, {} of {} below {:.1f} ({:.0f} %)",
                  mean.mean, mean.worst, mean.bad, mean.count, good_enough,
                  100.0 * mean.bad / mean.count),
      text_width(), fmt::format("{:<24} ", what));
}

}  // namespace

SurveyMean mean_of(const std::vector<SurveyRow>& rows,
                   const std::function<double(const SurveyRow&)>& ratio) {
  SurveyMean mean;
  double logarithms = 0;
  for (const SurveyRow& row : rows) {
    const double value = ratio(row);
    if (row.undecided) continue;
    if (!std::isfinite(value) || value <= 0) continue;
    ++mean.count;
    logarithms += std::log(value);
    mean.bad += value < good_enough ? 1 : 0;
    mean.worst = std::isnan(mean.worst) ? value : std::min(mean.worst, value);
  }
  if (mean.count > 0) mean.mean = std::exp(logarithms / mean.count);
  return mean;
}

std::vector<std::size_t> worst_of(const std::vector<SurveyRow>& rows, std::size_t count) {
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return goodness(rows[a]) < goodness(rows[b]);
  });
  order.resize(std::min(order.size(), count));
  return order;
}

std::string fault_of(const SurveyRow& row) {
  if (row.failed) return "WRONG RESULT";
  if (row.unsupported) return "not supported";
  if (row.undecided) return "undecided";
  const bool choice = is_wrong_choice(row);
  const bool kernel = is_missing_kernel(row);
  return choice && kernel ? "wrong choice, missing kernel"
         : choice         ? "wrong choice"
         : kernel         ? "missing kernel"
                          : "";
}

std::pair<std::string, double> fastest_of(const SurveyRow& row) {
  if (row.of_teaching < row.of_fastest) return {row.teaching + " (teaching)", row.of_teaching};
  return {row.fastest == row.chosen ? "" : row.fastest, row.of_fastest};
}

std::string seeds_of(const std::vector<SurveyRow>& rows) {
  std::vector<std::uint64_t> seeds;
  for (const SurveyRow& row : rows) {
    if (std::find(seeds.begin(), seeds.end(), row.seed) == seeds.end()) seeds.push_back(row.seed);
  }
  return fmt::format("{} {}", seeds.size() == 1 ? "seed" : "seeds", fmt::join(seeds, ", "));
}

std::string ratio_text(double ratio) {
  return std::isfinite(ratio) ? fmt::format("{:.2f}", ratio) : "";
}

std::string survey_busy_text(const std::vector<SurveyRow>& rows) {
  constexpr double max_spread = 0.1;  // a few percent on a quiet machine
  std::vector<double> spreads;
  for (const SurveyRow& row : rows) {
    if (std::isfinite(row.spread)) spreads.push_back(row.spread);
  }
  const double typical = bench::median(spreads);
  const auto undecided =
      std::count_if(rows.begin(), rows.end(), [](const SurveyRow& row) { return row.undecided; });
  std::string text;
  if (typical > max_spread) {
    text = wrapped(
        fmt::format("The machine was busy: the times of a call spread by {:.0f} % (median over the "
                    "problems). The least of them counts, and still some faults may be others' "
                    "doing: --json FILE keeps the results, and --again times again what has a "
                    "fault.",
                    100 * typical),
        text_width());
  }
  if (undecided > 0) {
    text += wrapped(
        fmt::format("{} undecided: something else took the machine from the call or from what it "
                    "is held against (times that spread by more than {:.0f} %, or became {:.0f} "
                    "times as long). No ratio above includes them; with --json FILE, --again times "
                    "them again.",
                    count_of(undecided, "problem"), 100 * max_steady_spread, max_slowdown),
        text_width(), typical > max_spread ? "" : "The machine was busy at times: ");
  }
  return text;
}

std::string survey_text(const SurveyResults& survey) {
  const std::vector<SurveyRow>& rows = survey.rows;
  const std::string where = survey.backend == Backend::cpu
                                ? survey.where + ", " + count_of(survey.threads, "thread")
                                : survey.where;
  std::string text =
      wrapped(fmt::format("{} on {} ({}): {} of up to {}, {}", survey.op, to_string(survey.backend),
                          where, count_of(rows.size(), "random problem"),
                          format_bytes(survey.draw.max_bytes), seeds_of(rows)),
              text_width());
  const struct {
    const char* what;
    std::function<double(const SurveyRow&)> ratio;
  } ratios[] = {
      {"against the best peer", &SurveyRow::vs_peer},
      {"against the best choice", &SurveyRow::of_fastest},
      {"against the fastest rung", [](const SurveyRow& row) { return fastest_of(row).second; }},
      {"against the floor", &SurveyRow::of_floor}};
  for (const auto& one : ratios) {
    if (const SurveyMean mean = mean_of(rows, one.ratio); mean.count > 0) {
      text += line_of(one.what, mean);
    }
  }
  const auto count = [&](auto holds) { return std::count_if(rows.begin(), rows.end(), holds); };
  text += fmt::format("{}, {}", count_of(count(is_wrong_choice), "wrong choice"),
                      count_of(count(is_missing_kernel), "missing kernel"));
  const auto undecided = count([](const SurveyRow& row) { return row.undecided; });
  text += undecided > 0 ? fmt::format(", {} undecided\n", undecided) : "\n";
  if (const auto none = count([](const SurveyRow& row) { return row.unsupported; }); none > 0) {
    text += fmt::format("{} that no rung takes\n", count_of(none, "problem"));
  }
  if (rows.empty()) return text;

  Table table({{"problem"},
               {"time", true},
               {"of floor", true, Table::Fit::drop},
               {"vs peer", true, Table::Fit::drop},
               {"peer", false, Table::Fit::drop},
               {"of fastest", true, Table::Fit::drop},
               {"chosen", false, Table::Fit::cut},
               {"fastest", false, Table::Fit::drop},
               {"fault"}});
  for (const std::size_t i : worst_of(rows, worst_shown)) {
    const SurveyRow& row = rows[i];
    table.add(
        {row.problem, std::isfinite(row.seconds) ? format_seconds(row.seconds) : "",
         ratio_text(row.of_floor), ratio_text(row.vs_peer), row.peer,
         ratio_text(fastest_of(row).second), row.chosen, fastest_of(row).first, fault_of(row)},
        row.failed ? Tone::bad : Tone::plain);
  }
  text += "\nThe worst:\n" + table.text();
  const auto has_slower_choice = [](const SurveyRow& row) {
    return row.of_teaching < row.of_fastest;
  };
  if (table.shows("of fastest") && std::any_of(rows.begin(), rows.end(), has_slower_choice)) {
    text += wrapped(
        "of fastest: against the fastest rung, also one that is there to be read (teaching); the "
        "best choice is among the rungs that the library may pick.",
        text_width());
  }
  text += no_floor_text(rows);
  std::size_t told = 0;
  for (const SurveyRow& row : rows) {
    if (row.note.empty() || told++ >= worst_shown) continue;
    text += wrapped(fmt::format("{}: {}", row.problem, one_line(row.note)), text_width(),
                    told == 1 ? "Wrong, or left out: " : "  ");
  }
  return text;
}

}  // namespace rung::workbench
