// SPDX-License-Identifier: Apache-2.0
// Converts the JSON of `rung survey` to Markdown.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "rung/workbench/survey.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

std::string mean_and_worst(const SurveyMean& mean) {
  return mean.count == 0 ? " | " : fmt::format("{:.2f} | {:.2f}", mean.mean, mean.worst);
}

std::string place_of(const SurveyResults& survey) {
  return survey.backend == Backend::cpu ? survey.where + ", " + count_of(survey.threads, "thread")
                                        : survey.where;
}

}  // namespace

std::string survey_summary_markdown(const std::vector<SurveyResults>& surveys) {
  std::string text;
  std::string place;
  for (const SurveyResults& one : surveys) {
    if (place_of(one) != place) {
      place = place_of(one);
      text += fmt::format(
          "{}Random problems of up to {} on {}\n\n"
          "| operator | problems | vs best peer: mean | worst | vs best choice: mean | worst | "
          "of floor: mean | wrong choices | missing kernels | date |\n"
          "|---|--:|--:|--:|--:|--:|--:|--:|--:|---|\n",
          text.empty() ? "" : "\n", format_bytes(one.draw.max_bytes), place);
    }
    const auto count = [&](auto holds) {
      return std::count_if(one.rows.begin(), one.rows.end(), holds);
    };
    const SurveyMean floor = mean_of(one.rows, &SurveyRow::of_floor);
    text += fmt::format(
        "| {} | {} of {} | {} | {} | {} | {} | {} | {} |\n", one.op, one.rows.size(),
        seeds_of(one.rows), mean_and_worst(mean_of(one.rows, &SurveyRow::vs_peer)),
        mean_and_worst(mean_of(one.rows, &SurveyRow::of_fastest)), ratio_text(floor.mean),
        count(is_wrong_choice), count(is_missing_kernel), one.date);
  }
  return text;
}

std::string survey_worst_markdown(const SurveyResults& survey) {
  std::string text = fmt::format(
      "The worst of {} random problems of {} ({}) on {} ({})\n\n"
      "| problem | time | of floor | vs peer | peer | chosen | of fastest | fastest | fault |\n"
      "|---|--:|--:|--:|---|---|--:|---|---|\n",
      survey.rows.size(), survey.op, seeds_of(survey.rows), place_of(survey), survey.date);
  for (const std::size_t i : worst_of(survey.rows, worst_shown)) {
    const SurveyRow& row = survey.rows[i];
    const auto [fastest, of_fastest] = fastest_of(row);
    text += fmt::format("| `{}` | {} | {} | {} | {} | {} | {} | {} | {} |\n", row.problem,
                        std::isfinite(row.seconds) ? format_seconds(row.seconds) : "",
                        ratio_text(row.of_floor), ratio_text(row.vs_peer), row.peer, row.chosen,
                        ratio_text(of_fastest), fastest, fault_of(row));
  }
  return text;
}

}  // namespace rung::workbench
