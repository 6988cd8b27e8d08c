// SPDX-License-Identifier: Apache-2.0
// Fits the coefficients of the time model (core/work.hpp) to survey timings, and evaluates the
// choices that the library would make by them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "rung/core/work.hpp"
#include "rung/harness/any_operator.hpp"
#include "rung/workbench/survey.hpp"

namespace rung::workbench {

/// A timing of one kernel, with its terms in the model.
struct FitSample {
  WorkTerms terms;
  double seconds;
  double weight = 1;
};

/// Returns nonnegative rates that minimize the weighted squares of log(predicted / measured),
/// regularized toward `prior` with weight `hold`; the prior alone determines terms that occur in no
/// sample.
Rates fit_rates(const std::vector<FitSample>& samples, const Rates& prior, double hold,
                Backend backend);

/// Returns `rates` scaled so that nine of ten samples take at most as long as predicted: rates of
/// kernels that were never timed. A wrong choice costs more than a kernel that waits to be timed.
Rates cautious_rates(Rates rates, const std::vector<FitSample>& samples, Backend backend);

/// A suboptimal choice: predicted and measured seconds of the chosen and the best kernel.
struct WrongChoice {
  std::string problem, chosen, best;
  double ratio = 1;  // measured seconds of the chosen kernel over those of the best
  double chosen_predicted = 0, chosen_measured = 0, best_predicted = 0, best_measured = 0;
};

/// Quality of the choices on a set of problems.
struct ChoiceQuality {
  int problems = 0;
  double mean = 1;                 // geometric mean of the ratios
  double worst = 1;                // of problems that take at least 10 us
  std::vector<WrongChoice> wrong;  // worst first
};

/// A timing of one kernel, and what the fitted rates predict.
struct PredictedTiming {
  std::string problem, path;
  double predicted = 0, measured = 0;  // seconds
};

/// Rates of an operator's kernels, and their accuracy.
struct OperatorFit {
  std::string op;
  Backend backend = Backend::cpu;
  /// Rates by kernel and rates key (Work::path); "": all other keys.
  std::map<std::string, std::map<std::string, Rates>> kernels;
  /// Typical prediction error per kernel: the median of |log(predicted / measured)|.
  std::map<std::string, double> errors;
  std::map<std::string, int> samples;
  /// Timings per kernel, those with the largest error first.
  std::map<std::string, std::vector<PredictedTiming>> timings;
  ChoiceQuality fitted;    // on the problems of the fit
  ChoiceQuality held_out;  // on problems left out of the fit
  ChoiceQuality before;    // by this library's current rates
};

/// Rows of surveys, one list per file: a kernel that a file never times is newer than the file.
using SurveyedRows = std::vector<std::vector<SurveyRow>>;

/// Fits the rates of an operator. `context`: the surveyed machine, or a simulated GPU in its place.
/// `judge`: rows for evaluation only; if empty, cross-validation holds out each fifth of the rows
/// in turn.
OperatorFit fit_operator(const AnyOperator& op, const SurveyedRows& surveys,
                         const SurveyedRows& judge, const Context& context);

/// Returns the content of results/MACHINE/rates/OPERATOR.json.
std::string rates_json(const OperatorFit& fit, const SurveyResults& survey);
/// Returns the fit as text, with at most `shown` wrong choices.
std::string fit_text(const OperatorFit& fit, std::size_t shown);
/// Returns at most `shown` timings of one kernel as text, those with the largest error first.
std::string timings_text(const OperatorFit& fit, const std::string& kernel, std::size_t shown);

}  // namespace rung::workbench
