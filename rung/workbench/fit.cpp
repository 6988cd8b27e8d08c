// SPDX-License-Identifier: Apache-2.0
// Least-squares fit of logarithms by Gauss-Newton steps (Levenberg 1944, Marquardt 1963) in the
// logarithms of the coefficients, which keeps them positive.
#include "rung/workbench/fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include "rung/bench/statistics.hpp"
#include "rung/core/operator.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

using Vector = std::array<double, term_count>;
using Matrix = std::array<Vector, term_count>;

/// Solves A x = b for a symmetric positive definite A by Cholesky decomposition.
Vector solve(Matrix a, Vector b) {
  for (std::size_t j = 0; j < term_count; ++j) {
    for (std::size_t k = 0; k < j; ++k) a[j][j] -= a[j][k] * a[j][k];
    a[j][j] = std::sqrt(a[j][j]);
    for (std::size_t i = j + 1; i < term_count; ++i) {
      for (std::size_t k = 0; k < j; ++k) a[i][j] -= a[i][k] * a[j][k];
      a[i][j] /= a[j][j];
    }
  }
  for (std::size_t i = 0; i < term_count; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  for (std::size_t i = term_count; i-- > 0;) {
    for (std::size_t k = i + 1; k < term_count; ++k) b[i] -= a[k][i] * b[k];
    b[i] /= a[i][i];
  }
  return b;
}

/// Returns d log(seconds) / d log(coefficient) for every coefficient.
Vector gradient(const WorkTerms& terms, const Rates& rates, const Prediction& one,
                Backend backend) {
  const double busy = one.seconds - one.starting;
  // Derivative factor of the four terms that a GPU combines by a 4-norm.
  const auto joined = [&](double part) {
    return backend == Backend::cpu || busy <= 0 ? 1.0 : std::pow(part / busy, 3);
  };
  const Vector slope = {1,
                        1,
                        joined(one.memory),
                        joined(one.memory),
                        joined(one.memory),
                        joined(one.arithmetic),
                        joined(one.waiting),
                        joined(one.waiting),
                        joined(one.issue),
                        joined(one.issue)};
  Vector all{};
  for (std::size_t i = 0; i < term_count; ++i) {
    all[i] = slope[i] * terms[i] * rates.of[i] / one.seconds;
  }
  return all;
}

struct Objective {
  const std::vector<FitSample>& samples;
  const Rates& prior;
  double hold;
  Backend backend;

  [[nodiscard]] double operator()(const Rates& rates) const {
    double sum = 0;
    for (const FitSample& sample : samples) {
      const double error = std::log(predict(sample.terms, rates, backend).seconds / sample.seconds);
      sum += sample.weight * std::min(error * error, std::abs(error));  // outliers: linear
    }
    for (std::size_t i = 0; i < term_count; ++i) {
      const double away = std::log(rates.of[i] / prior.of[i]);
      sum += hold * away * away;
    }
    return sum;
  }

  [[nodiscard]] Rates descend(Rates rates) const {
    constexpr double far = 12;  // limit of a logarithm; beyond it, a coefficient has no effect
    double least = (*this)(rates);
    double damping = 1e-2;
    for (int step = 0; step < 100 && damping < 1e6; ++step) {
      Matrix a{};
      Vector b{};
      for (const FitSample& sample : samples) {
        const Prediction one = predict(sample.terms, rates, backend);
        const Vector g = gradient(sample.terms, rates, one, backend);
        const double error = std::log(one.seconds / sample.seconds);
        const double weight = sample.weight / std::max(1.0, std::abs(error));
        for (std::size_t i = 0; i < term_count; ++i) {
          b[i] -= weight * g[i] * error;
          for (std::size_t j = 0; j <= i; ++j) a[i][j] += weight * g[i] * g[j];
        }
      }
      for (std::size_t i = 0; i < term_count; ++i) {
        b[i] -= hold * std::log(rates.of[i] / prior.of[i]);
        a[i][i] = (a[i][i] + hold) * (1 + damping) + 1e-12;
        for (std::size_t j = i + 1; j < term_count; ++j) a[i][j] = a[j][i];
      }
      const Vector change = solve(a, b);
      Rates next = rates;
      for (std::size_t i = 0; i < term_count; ++i) {
        const double limited = std::clamp(change[i], -2.0, 2.0);
        const double away = std::log(rates.of[i] / prior.of[i]) + limited;
        next.of[i] = prior.of[i] * std::exp(std::clamp(away, -far, far));
      }
      const double sum = (*this)(next);
      if (sum < least) {
        const bool is_done = least - sum < 1e-7 * least;
        rates = next;
        least = sum;
        damping = std::max(damping / 5, 1e-6);
        if (is_done) break;
      } else {
        damping *= 4;
      }
    }
    return rates;
  }
};

/// Returns the initial rates of a fit, which also determine terms that occur in no sample.
Rates usual_rates(Backend backend) {
  if (backend == Backend::cpu) {
    return {{1e-7, 1e-6, 1, 0.5, 0.2, 1, 1e-9, 1e-9, 1e-8, 1e-9}};
  }
  return {{2e-6, 2e-6, 1.2, 1.2, 1.2, 2, 1.5e-6, 0.6e-6, 2e-8, 1e-9}};
}

/// A kernel that supports a problem, with its time and the prediction.
struct Candidate {
  std::string kernel, path;
  FitSample sample;
  bool is_timed = true;
  double estimate = 0;    // by this library's rates
  bool has_facts = true;  // false: the estimate replaces a prediction
};
struct FitProblem {
  std::string problem;
  std::vector<Candidate> candidates;
  [[nodiscard]] double best() const {
    double least = not_measured;
    for (const Candidate& one : candidates) {
      if (one.is_timed && !(one.sample.seconds >= least)) least = one.sample.seconds;
    }
    return least;
  }
};

/// Assumed slowdown, relative to the best, of kernels that the survey skipped as hopeless.
constexpr double assumed_slowdown = 10;

std::vector<FitProblem> cases_of(const AnyOperator& op, const std::vector<SurveyRow>& rows,
                                 const Context& context) {
  std::vector<FitProblem> all;
  for (const SurveyRow& row : rows) {
    if (row.failed || row.unsupported || row.undecided) continue;
    std::unique_ptr<Instance> made;
    try {
      made = op.outline(Problem::parse(row.problem), context);
    } catch (const Error&) {
      continue;  // unsupported by this version of the library
    }
    FitProblem one{row.problem, {}};
    for (const RungInfo* rung : op.rungs()) {
      if (rung->backend != context.backend() || rung->peer || rung->teaching) continue;
      if (!made->supports(*rung, context)) continue;
      const auto timed = std::find_if(row.times.begin(), row.times.end(),
                                      [&](const auto& time) { return time.first == rung->name; });
      Candidate candidate;
      candidate.kernel = rung->name;
      const Work work = made->work(*rung, context);
      candidate.path = work.path;
      candidate.sample.terms = terms_of(work, context);
      candidate.is_timed = timed != row.times.end() && timed->second > 0;
      candidate.sample.seconds = candidate.is_timed ? timed->second : 0;
      candidate.estimate = made->estimate(*rung, context);
      candidate.has_facts = made->has_facts(*rung);
      one.candidates.push_back(std::move(candidate));
    }
    const double best = one.best();
    if (!(best > 0)) continue;
    for (Candidate& candidate : one.candidates) {
      if (!candidate.is_timed) candidate.sample.seconds = assumed_slowdown * best;
      // Weights errors by how close a kernel is to the best.
      candidate.sample.weight =
          std::max(candidate.is_timed ? best / candidate.sample.seconds : 0.0, 0.1);
    }
    all.push_back(std::move(one));
  }
  return all;
}

/// Removes kernels that no row of a survey has timed: they are newer than the survey.
void drop_unknown(std::vector<FitProblem>& cases) {
  std::set<std::string> timed;
  for (const FitProblem& one : cases) {
    for (const Candidate& candidate : one.candidates) {
      if (candidate.is_timed) timed.insert(candidate.kernel);
    }
  }
  for (FitProblem& one : cases) {
    std::erase_if(one.candidates,
                  [&](const Candidate& candidate) { return !timed.contains(candidate.kernel); });
  }
}

std::vector<FitProblem> cases_of(const AnyOperator& op, const SurveyedRows& surveys,
                                 const Context& context) {
  std::vector<FitProblem> all;
  for (const std::vector<SurveyRow>& rows : surveys) {
    std::vector<FitProblem> cases = cases_of(op, rows, context);
    drop_unknown(cases);
    std::move(cases.begin(), cases.end(), std::back_inserter(all));
  }
  return all;
}

using Kernels = std::map<std::string, std::map<std::string, Rates>>;

constexpr double hold_kernel = 0.02, hold_path = 0.1;
constexpr std::size_t min_path_samples = 6;

Kernels fit_kernels(const std::vector<FitProblem>& cases, Backend backend) {
  std::map<std::string, std::map<std::string, std::vector<FitSample>>> samples;
  std::vector<FitSample> everything;
  for (const FitProblem& one : cases) {
    for (const Candidate& candidate : one.candidates) {
      samples[candidate.kernel][candidate.path].push_back(candidate.sample);
      everything.push_back(candidate.sample);
    }
  }
  Kernels kernels;
  const Rates usual = fit_rates(everything, usual_rates(backend), hold_kernel, backend);
  kernels[""][""] = cautious_rates(usual, everything, backend);
  for (const auto& [kernel, paths] : samples) {
    std::vector<FitSample> all;
    for (const auto& [path, own] : paths) all.insert(all.end(), own.begin(), own.end());
    const Rates whole = fit_rates(all, usual_rates(backend), hold_kernel, backend);
    kernels[kernel][""] = whole;
    for (const auto& [path, own] : paths) {
      if (path.empty() || own.size() < min_path_samples) continue;
      kernels[kernel][path] = fit_rates(own, whole, hold_path, backend);
    }
  }
  return kernels;
}

const Rates& rates_in(const Kernels& kernels, const Candidate& candidate) {
  const auto kernel = kernels.find(candidate.kernel);
  const auto& paths = (kernel != kernels.end() ? *kernel : *kernels.begin()).second;
  const auto path = paths.find(candidate.path);
  return path != paths.end() ? path->second : paths.at("");
}

template <class Seconds>
void judge(ChoiceQuality& quality, const std::vector<const FitProblem*>& cases, Seconds seconds) {
  constexpr double long_enough = 1e-5;
  double logs = quality.problems * std::log(quality.mean);
  for (const FitProblem* one : cases) {
    const auto by = [](auto key) {
      return [key](const Candidate& a, const Candidate& b) { return key(a) < key(b); };
    };
    const auto measured = [](const Candidate& candidate) { return candidate.sample.seconds; };
    const Candidate& chosen =
        *std::min_element(one->candidates.begin(), one->candidates.end(), by(seconds));
    const Candidate& best =
        *std::min_element(one->candidates.begin(), one->candidates.end(), by(measured));
    const double ratio = measured(best) / measured(chosen);
    logs += std::log(ratio);
    ++quality.problems;
    if (measured(chosen) > long_enough) quality.worst = std::min(quality.worst, ratio);
    if (ratio < 1) {
      quality.wrong.push_back({one->problem, chosen.kernel + ' ' + chosen.path,
                               best.kernel + ' ' + best.path, ratio, seconds(chosen),
                               measured(chosen), seconds(best), measured(best)});
    }
  }
  if (quality.problems > 0) quality.mean = std::exp(logs / quality.problems);
  std::ranges::stable_sort(quality.wrong, {}, &WrongChoice::ratio);
}

/// Fits rates with boosting: kernels involved in wrong choices gain weight in the next round, as
/// long as choices improve.
Kernels fit_choices(std::vector<FitProblem> cases, Backend backend) {
  constexpr int rounds = 12;
  constexpr double more = 1.5;
  Kernels best;
  double most = 0;
  for (int round = 0; round < rounds; ++round) {
    Kernels kernels = fit_kernels(cases, backend);
    double logs = 0;
    for (FitProblem& one : cases) {
      const auto seconds = [&](const Candidate& candidate) {
        return candidate.has_facts
                   ? predict(candidate.sample.terms, rates_in(kernels, candidate), backend).seconds
                   : candidate.estimate;
      };
      const auto less = [&](const Candidate& a, const Candidate& b) {
        return seconds(a) < seconds(b);
      };
      const auto faster = [](const Candidate& a, const Candidate& b) {
        return a.sample.seconds < b.sample.seconds;
      };
      const auto chosen = std::min_element(one.candidates.begin(), one.candidates.end(), less);
      const auto fastest = std::min_element(one.candidates.begin(), one.candidates.end(), faster);
      const double ratio = fastest->sample.seconds / chosen->sample.seconds;
      logs += std::log(ratio);
      if (ratio < good_enough) {
        chosen->sample.weight *= more;
        fastest->sample.weight *= more;
      }
    }
    const double mean = std::exp(logs / static_cast<double>(cases.size()));
    if (mean > most) {
      most = mean;
      best = std::move(kernels);
    }
  }
  return best;
}

}  // namespace

Rates fit_rates(const std::vector<FitSample>& samples, const Rates& prior, double hold,
                Backend backend) {
  const Objective objective{samples, prior, hold, backend};
  Rates best = prior;
  double least = std::numeric_limits<double>::infinity();
  // The optimum may be local: also start with the prior's coefficients, except those of launches,
  // scaled by 0.2 and by 5.
  for (const double limits : {1.0, 0.2, 5.0}) {
    Rates start = prior;
    for (std::size_t i = 2; i < term_count; ++i) start.of[i] *= limits;
    const Rates found = objective.descend(start);
    const double sum = objective(found);
    if (sum < least) {
      least = sum;
      best = found;
    }
  }
  return best;
}

Rates cautious_rates(Rates rates, const std::vector<FitSample>& samples, Backend backend) {
  constexpr double share = 0.9;  // of the timings that are at most as long as predicted
  if (samples.empty()) return rates;
  std::vector<double> ratios;
  ratios.reserve(samples.size());
  for (const FitSample& one : samples) {
    ratios.push_back(one.seconds / predict(one.terms, rates, backend).seconds);
  }
  const double factor = std::max(1.0, bench::quantile(ratios, share));
  for (double& one : rates.of) one *= factor;
  return rates;
}

OperatorFit fit_operator(const AnyOperator& op, const SurveyedRows& surveys,
                         const SurveyedRows& others, const Context& context) {
  const std::vector<FitProblem> cases = cases_of(op, surveys, context);
  OperatorFit fit;
  fit.op = op.name();
  fit.backend = context.backend();
  fit.kernels = fit_choices(cases, fit.backend);
  const auto predicted = [&](const Kernels& kernels) {
    return [&](const Candidate& one) {
      return one.has_facts ? predict(one.sample.terms, rates_in(kernels, one), fit.backend).seconds
                           : one.estimate;
    };
  };
  std::vector<const FitProblem*> all;
  std::map<std::string, std::vector<double>> errors;
  for (const FitProblem& one : cases) {
    all.push_back(&one);
    for (const Candidate& candidate : one.candidates) {
      if (!candidate.is_timed) continue;
      const double seconds = predicted(fit.kernels)(candidate);
      errors[candidate.kernel].push_back(std::abs(std::log(seconds / candidate.sample.seconds)));
      fit.timings[candidate.kernel].push_back(
          {one.problem, candidate.path, seconds, candidate.sample.seconds});
    }
  }
  for (auto& [kernel, own] : errors) {
    fit.samples[kernel] = static_cast<int>(own.size());
    fit.errors[kernel] = bench::quantile(own, 0.5);
  }
  for (auto& [kernel, own] : fit.timings) {
    std::ranges::stable_sort(own, std::greater<>(), [](const PredictedTiming& one) {
      return std::abs(std::log(one.predicted / one.measured));
    });
  }
  judge(fit.fitted, all, predicted(fit.kernels));
  judge(fit.before, all, [](const Candidate& one) { return one.estimate; });
  if (!others.empty()) {
    const std::vector<FitProblem> judged = cases_of(op, others, context);
    std::vector<const FitProblem*> own;
    own.reserve(judged.size());
    for (const FitProblem& one : judged) own.push_back(&one);
    judge(fit.held_out, own, predicted(fit.kernels));
    return fit;
  }
  constexpr std::size_t folds = 5;
  for (std::size_t fold = 0; fold < folds; ++fold) {
    std::vector<FitProblem> rest;
    std::vector<const FitProblem*> own;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      if (i % folds == fold) {
        own.push_back(&cases[i]);
      } else {
        rest.push_back(cases[i]);
      }
    }
    if (!own.empty() && !rest.empty()) {
      judge(fit.held_out, own, predicted(fit_choices(rest, fit.backend)));
    }
  }
  return fit;
}

std::string fit_text(const OperatorFit& fit, std::size_t shown) {
  Table table({{"kernel"}, {"timings", true}, {"error", true}, {"paths", false, Table::Fit::cut}});
  for (const auto& [kernel, paths] : fit.kernels) {
    if (kernel.empty()) continue;
    std::string names;
    for (const auto& [path, rates] : paths) {
      if (!path.empty()) names += (names.empty() ? "" : ", ") + path;
    }
    const auto samples = fit.samples.find(kernel);
    const auto error = fit.errors.find(kernel);
    table.add(
        {kernel, samples != fit.samples.end() ? fmt::format("{}", samples->second) : "0",
         error != fit.errors.end() ? fmt::format("{:.0f} %", 100 * std::expm1(error->second)) : "",
         names});
  }
  Table wrong({{"problem", false, Table::Fit::cut},
               {"of the best", true},
               {"chosen"},
               {"predicted", true},
               {"measured", true},
               {"best"},
               {"predicted", true},
               {"measured", true}});
  const ChoiceQuality& judged = fit.held_out;
  for (const WrongChoice& one : judged.wrong) {
    if (shown-- == 0) break;
    wrong.add({one.problem, fmt::format("{:.2f}", one.ratio), one.chosen,
               format_seconds(one.chosen_predicted), format_seconds(one.chosen_measured), one.best,
               format_seconds(one.best_predicted), format_seconds(one.best_measured)});
  }
  const auto line = [](std::string_view what, const ChoiceQuality& one) {
    return fmt::format("{:<28} {:.3f} of the best, worst from 10 us on {:.2f}, {}\n", what,
                       one.mean, one.worst, count_of(one.problems, "problem"));
  };
  return fmt::format("{} on {}: rates from {} problems\n\n{}\n{}{}{}{}{}", fit.op,
                     to_string(fit.backend), fit.fitted.problems, table.text(),
                     line("chosen by these rates", fit.fitted), line("on others", judged),
                     line("chosen until now", fit.before), wrong.empty() ? "" : "\n",
                     wrong.empty() ? "" : wrong.text());
}

std::string timings_text(const OperatorFit& fit, const std::string& kernel, std::size_t shown) {
  Table table(
      {{"problem", false, Table::Fit::cut}, {"path"}, {"predicted", true}, {"measured", true}});
  const auto timings = fit.timings.find(kernel);
  if (timings == fit.timings.end()) return "";
  for (const PredictedTiming& one : timings->second) {
    if (shown-- == 0) break;
    table.add({one.problem, one.path, format_seconds(one.predicted), format_seconds(one.measured)});
  }
  return table.text();
}

}  // namespace rung::workbench
