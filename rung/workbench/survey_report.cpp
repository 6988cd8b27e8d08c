// SPDX-License-Identifier: Apache-2.0
// What a survey says of an operator, as text.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "rung/workbench/survey.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

std::string line_of(std::string_view what, const SurveyMean& mean) {
  return wrapped(
      fmt::format("geometric mean {:.2f}, worst {:.2f}, {} of {} below {:.1f} ({:.0f} %)",
                  mean.mean, mean.worst, mean.bad, mean.count, good_enough,
                  100.0 * mean.bad / mean.count),
      text_width(), fmt::format("{:<24} ", what));
}

}  // namespace

SurveyMean mean_of(const std::vector<SurveyRow>& rows, double SurveyRow::*ratio) {
  SurveyMean mean;
  double logarithms = 0;
  for (const SurveyRow& row : rows) {
    const double value = row.*ratio;
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
    double SurveyRow::*ratio;
  } ratios[] = {{"against the best peer", &SurveyRow::vs_peer},
                {"against the best choice", &SurveyRow::of_fastest},
                {"against the floor", &SurveyRow::of_floor}};
  for (const auto& one : ratios) {
    if (const SurveyMean mean = mean_of(rows, one.ratio); mean.count > 0) {
      text += line_of(one.what, mean);
    }
  }
  const auto count = [&](auto holds) { return std::count_if(rows.begin(), rows.end(), holds); };
  text += fmt::format("{}, {}\n", count_of(count(is_wrong_choice), "wrong choice"),
                      count_of(count(is_missing_kernel), "missing kernel"));
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
  std::size_t told = 0;
  for (const SurveyRow& row : rows) {
    if (row.note.empty() || told++ >= worst_shown) continue;
    text += wrapped(fmt::format("{}: {}", row.problem, row.note), text_width(),
                    told == 1 ? "Wrong, or left out: " : "  ");
  }
  return text;
}

}  // namespace rung::workbench
