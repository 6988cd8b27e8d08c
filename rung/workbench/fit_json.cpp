// SPDX-License-Identifier: Apache-2.0
// Writes rates in the format that the build compiles in (tools/rates_table.cpp).
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "rung/workbench/fit.hpp"

namespace rung::workbench {
namespace {

using nlohmann::ordered_json;

/// Rounds to four significant digits: more would be noise.
double rounded(double value) {
  if (value == 0) return 0;
  const double unit = std::pow(10, std::floor(std::log10(std::abs(value))) - 3);
  return std::stod(fmt::format("{:.4g}", std::round(value / unit) * unit));
}

ordered_json to_json(const Rates& rates) {
  ordered_json json;
  for (std::size_t i = 0; i < term_count; ++i) {
    json[std::string(to_string(static_cast<RateTerm>(i)))] = rounded(rates.of[i]);
  }
  return json;
}

}  // namespace

std::string rates_json(const OperatorFit& fit, const SurveyResults& survey) {
  ordered_json kernels;
  for (const auto& [kernel, paths] : fit.kernels) {
    for (const auto& [path, rates] : paths) kernels[kernel][path] = to_json(rates);
  }
  const ordered_json json = {{"operator", fit.op},
                             {"machine", to_json(survey.device)},
                             {"fit",
                              {{"date", survey.date},
                               {"problems", fit.fitted.problems},
                               {"mean", rounded(fit.fitted.mean)},
                               {"worst", rounded(fit.fitted.worst)},
                               {"held_out", rounded(fit.held_out.mean)}}},
                             {"kernels", kernels}};
  // One line per rates key, so that two fits can be compared by diff.
  std::string text = json.dump(1);
  return text + '\n';
}

}  // namespace rung::workbench
