// SPDX-License-Identifier: Apache-2.0
// What `rung survey` does: many random problems of an operator, each held against the fastest peer,
// the fastest of our own rungs and the least time that the machine could take.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rung/workbench/bench.hpp"

namespace rung::workbench {

/// Distribution of random problems. The n-th problem depends only on this and on n, so it is the
/// same on every machine.
struct SurveyDraw {
  std::vector<std::string>
      patterns;                  // problem_pattern.hpp; problem n is drawn from one after another
  double max_bytes = 256 << 20;  // of all its tensors together
};
/// The operator's own patterns. Throws Error(invalid_argument) when it has none.
std::vector<std::string> patterns_of(const AnyOperator& op);
/// Draws until a problem is valid and small enough; throws Error(invalid_argument) when none is.
/// Throws for the pattern, among the draw's, of which none of the first problems is a valid one or
/// is taken by a rung in this context; says why.
void expect_drawable(const AnyOperator& op, const SurveyDraw& draw, std::uint64_t seed,
                     const Context& context);
Problem draw_problem(const AnyOperator& op, const SurveyDraw& draw, std::uint64_t seed,
                     std::int64_t index);

struct SurveyPlan {
  struct Race {
    int rounds;             // at most, and at least three
    double sample_seconds;  // of one version
    double seconds;         // of all of them together, about
  };
  Race first{.rounds = 11, .sample_seconds = 2e-4, .seconds = 0.3};  // all that are not far behind
  Race again{.rounds = 31, .sample_seconds = 3e-4, .seconds = 0.6};  // if the public call looks bad
  bool peers = true;
  /// Times our kernels that may be chosen and nothing else, without looking at results: what rates
  /// are fitted from.
  bool kernels_only = false;
};

/// One problem. Ratios say how well the public call does: 1 is as well as what it is held against.
struct SurveyRow {
  std::uint64_t seed = 1;
  std::int64_t index = 0;
  std::string problem;
  double seconds = not_measured;   // the public call, the least of several timings
  double floor = not_measured;     // seconds: what starting, moving and computing take at best
  double of_floor = not_measured;  // floor / seconds
  std::string chosen;
  std::string fastest;               // of the rungs that may be chosen
  double of_fastest = not_measured;  // its seconds / those of the chosen rung
  std::string teaching;              // the fastest rung that is there to be read
  double of_teaching = not_measured;
  std::string peer;               // the fastest
  double vs_peer = not_measured;  // its seconds / those of the public call
  /// Seconds of every version, by name: in races, or in a brief timing of those far behind.
  /// Versions that were too slow on smaller problems are left out.
  std::vector<std::pair<std::string, double>> times;
  bool failed = false;           // the public call's result was wrong
  bool unsupported = false;      // no rung takes it: nothing was timed
  double spread = not_measured;  // (third quartile - first) / median of the public call's times
  double peer_spread = not_measured;  // likewise of the peer's
  /// Something else took the machine from a version that a ratio is of: the ratios say nothing.
  bool undecided = false;
  std::string note;  // what was wrong: of the public call, or of versions that were left out
};

/// Below this share of the speed of a peer, or of the fastest rung, a problem counts as bad.
inline constexpr double good_enough = 0.9;
/// Accepted time without a peer: this multiple of the floor, or this many seconds above it.
inline constexpr double floor_multiple = 1.6;
inline constexpr double floor_slack = 6e-6;

/// A smaller difference does not count, of rungs and of peers: what a call costs, about.
inline constexpr double call_seconds = 20e-9;

/// Times of a version are those of a busy machine where they spread further than this share of
/// their median, or where the least of them is this many times what a brief timing found before.
inline constexpr double max_steady_spread = 0.5;
inline constexpr double max_slowdown = 3;
/// NaN: not known, and no reason for doubt.
bool is_steady(double spread, double least, double brief);

/// Another rung that the library could have chosen is faster: an estimate is wrong. Of an undecided
/// row that is not known.
bool is_wrong_choice(const SurveyRow& row);
/// Even the fastest of these is slower than the peer, or than a step of the ladder that is there to
/// be read; or, where there is no peer, far from the floor.
bool is_missing_kernel(const SurveyRow& row);
/// Returns the rank of a problem, the worst first: the least of its ratios, where a time within
/// floor_multiple of the floor counts as 1. An undecided row comes last.
double goodness(const SurveyRow& row);
/// Returns whether a row that was timed again takes the place of the one before.
bool replaces(const SurveyRow& row, const SurveyRow& before);

/// Checks the public call against the oracle, then times it against every version that takes the
/// problem. What is not the public call is checked when it wins.
SurveyRow survey_problem(const AnyOperator& op, const Problem& problem, Context& context,
                         const SurveyPlan& plan, const bench::Machine& machine);

/// Properties by which a device is matched to rates (core/rates.hpp).
struct SurveyDevice {
  bool is_gpu = false;
  std::string name;  // of a GPU; of a CPU vendor, family, model and vector bits
  int compute_capability = 0;
  int units = 1;  // SMs, or threads
  double bytes_per_second = 0;
};
SurveyDevice device_of(const Context& context);
nlohmann::ordered_json to_json(const SurveyDevice& device);

/// A survey as it stands in its file.
struct SurveyResults {
  std::string op;
  Backend backend = Backend::cpu;
  int threads = 1;
  std::string where;    // the CPU or GPU
  SurveyDevice device;  // of files since 2026-11-29
  std::string date;     // of the last row
  SurveyDraw draw;
  std::vector<SurveyRow> rows;
  [[nodiscard]] SurveyRow* find(std::uint64_t seed, std::int64_t index);  // null: not measured
};
std::string survey_json(const SurveyResults& survey, const bench::Machine& machine);
/// Throws Error(io) for what survey_json() did not write.
SurveyResults survey_from_json(const std::string& text);
/// Throws Error(invalid_argument) that names what differs unless `file` can go on as `asked`.
void expect_same_survey(const SurveyResults& file, const SurveyResults& asked,
                        std::string_view path);

/// Distribution of a ratio over the rows that were measured and decided.
struct SurveyMean {
  int count = 0;
  double mean = not_measured;  // geometric
  double worst = not_measured;
  int bad = 0;  // below good_enough
};
SurveyMean mean_of(const std::vector<SurveyRow>& rows,
                   const std::function<double(const SurveyRow&)>& ratio);
/// Indices of the `count` worst rows.
std::vector<std::size_t> worst_of(const std::vector<SurveyRow>& rows, std::size_t count);
/// "wrong choice", "missing kernel", both, "WRONG RESULT", "not supported", "undecided" or "".
std::string fault_of(const SurveyRow& row);

/// Returns the fastest of our rungs, "" if that is the chosen one, and the ratio to the chosen one.
std::pair<std::string, double> fastest_of(const SurveyRow& row);
/// "seed 1", "seeds 1, 2".
std::string seeds_of(const std::vector<SurveyRow>& rows);

/// Problems that a report shows at most, the worst first.
inline constexpr std::size_t worst_shown = 10;
/// Formats a ratio with two decimals; "" if it was not measured.
std::string ratio_text(double ratio);

/// The warning that the machine was busy, where the times of a call are typically far apart, or a
/// row is undecided; "" otherwise.
std::string survey_busy_text(const std::vector<SurveyRow>& rows);

std::string survey_text(const SurveyResults& survey);
/// A line for each operator; the worst problems of one.
std::string survey_summary_markdown(const std::vector<SurveyResults>& surveys);
std::string survey_worst_markdown(const SurveyResults& survey);

}  // namespace rung::workbench
