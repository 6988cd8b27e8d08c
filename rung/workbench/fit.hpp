// SPDX-License-Identifier: Apache-2.0
// Rates from surveys: the coefficients of the model of time (core/work.hpp) that fit what a survey
// timed, and how well the library would choose by them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "rung/core/work.hpp"
#include "rung/harness/any_operator.hpp"
#include "rung/workbench/survey.hpp"

namespace rung::workbench {

/// A timing of one kernel, as the model sees it.
struct FitSample {
  WorkTerms terms;
  double seconds;
  double weight = 1;
};

/// Returns the rates, none negative, with the least squares of log(predicted / measured), weighted;
/// weakly held to `prior`, which alone decides terms that no sample has.
Rates fit_rates(const std::vector<FitSample>& samples, const Rates& prior, double hold,
                Backend backend);

/// A choice that was not the best one: predicted and measured seconds of both kernels.
struct WrongChoice {
  std::string problem, chosen, best;
  double ratio = 1;  // seconds of the best kernel over those of the chosen one
  double chosen_predicted = 0, chosen_measured = 0, best_predicted = 0, best_measured = 0;
};

/// Quality of the choice on a set of problems.
struct ChoiceQuality {
  int problems = 0;
  double mean = 1;                 // geometric, of the ratios
  double worst = 1;                // of problems that take 10 us and more
  std::vector<WrongChoice> wrong;  // the worst first
};

/// The rates of an operator's kernels, and what they are worth.
struct OperatorFit {
  std::string op;
  Backend backend = Backend::cpu;
  /// Rates by kernel and path; "" is every other one.
  std::map<std::string, std::map<std::string, Rates>> kernels;
  /// Typical error of a prediction per kernel: the median of |log(predicted / measured)|.
  std::map<std::string, double> errors;
  std::map<std::string, int> samples;
  ChoiceQuality fitted;    // on the problems of the fit
  ChoiceQuality held_out;  // on others
  ChoiceQuality before;    // by the estimates of this library
};

/// Rows of surveys, one list per file: a kernel that a file never times is newer than the file.
using SurveyedRows = std::vector<std::vector<SurveyRow>>;

/// `context` is of the surveyed machine, or a simulated GPU in its place. Rows to `judge` take no
/// part in the fit; without any, each fifth of the rows is held out of a fit to the others.
OperatorFit fit_operator(const AnyOperator& op, const SurveyedRows& surveys,
                         const SurveyedRows& judge, const Context& context);

/// The file results/MACHINE/rates/OPERATOR.json.
std::string rates_json(const OperatorFit& fit, const SurveyResults& survey);
/// `shown`: how many of the wrong choices.
std::string fit_text(const OperatorFit& fit, std::size_t shown);

}  // namespace rung::workbench
