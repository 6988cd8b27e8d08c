// SPDX-License-Identifier: Apache-2.0
// `rung survey`: random problems of an operator, each compared with the fastest peer, the fastest
// of our rungs and the least time of the machine.
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

/// Distribution of random problems. Problem n depends only on this distribution, the seed and n, so
/// it is the same on every machine.
struct SurveyDraw {
  std::vector<std::string> patterns;  // problem_pattern.hpp; used in turn
  double max_bytes = 256 << 20;       // of all tensors of a problem together
};
/// Returns the operator's own patterns. Throws Error(invalid_argument) if it has none.
std::vector<std::string> patterns_of(const AnyOperator& op);
/// Throws Error(invalid_argument) for a pattern of the draw if none of its first problems is valid
/// and supported by a rung in this context; states the reason.
void expect_drawable(const AnyOperator& op, const SurveyDraw& draw, std::uint64_t seed,
                     const Context& context);
/// Returns problem `index`: draws until one is valid and small enough. Throws
/// Error(invalid_argument) if none is.
Problem draw_problem(const AnyOperator& op, const SurveyDraw& draw, std::uint64_t seed,
                     std::int64_t index);

struct SurveyPlan {
  struct Race {
    int rounds;             // maximum; at least three
    double sample_seconds;  // per version
    double seconds;         // of all versions together, approximately
  };
  Race first{.rounds = 11, .sample_seconds = 2e-4, .seconds = 0.3};  // of versions not far behind
  Race again{.rounds = 31, .sample_seconds = 3e-4, .seconds = 0.6};  // if the call looks slow
  bool peers = true;
  /// Times only our kernels that may be chosen, without checking results: data for fitting rates.
  bool kernels_only = false;
};

/// One problem. Ratios measure the public call: 1 is as fast as its reference.
struct SurveyRow {
  std::uint64_t seed = 1;
  std::int64_t index = 0;
  std::string problem;
  double seconds = not_measured;   // of the public call, the minimum of several timings
  double floor = not_measured;     // seconds at best, for launch, memory and arithmetic
  double of_floor = not_measured;  // floor / seconds
  std::string chosen;
  std::string fastest;               // of the rungs that may be chosen
  double of_fastest = not_measured;  // its seconds / those of the chosen rung
  std::string teaching;              // fastest rung that is only for teaching
  double of_teaching = not_measured;
  std::string peer;               // fastest peer
  double vs_peer = not_measured;  // its seconds / those of the public call
  /// Seconds of every version, by name: from races, or from a brief timing of versions far behind.
  /// Versions that were too slow on smaller problems are left out.
  std::vector<std::pair<std::string, double>> times;
  bool failed = false;           // the public call's result was wrong
  bool unsupported = false;      // no rung supports it: nothing was timed
  double spread = not_measured;  // (third quartile - first) / median of the public call's times
  double peer_spread = not_measured;  // the same spread of the peer's times
  /// Another process disturbed a version that enters a ratio: the ratios are unreliable.
  bool undecided = false;
  std::string note;  // errors of the public call, or of versions left out
};

/// Speed relative to a peer, or to the fastest rung, below which a problem counts as bad.
inline constexpr double good_enough = 0.9;
/// Accepted time without a peer: up to this multiple of the floor, or this many seconds above it.
inline constexpr double floor_multiple = 1.6;
inline constexpr double floor_slack = 6e-6;

/// Differences between times below this, about the cost of a call, are ignored.
inline constexpr double call_seconds = 20e-9;

/// A version was disturbed if its spread, (third quartile - first) / median, exceeds
/// max_steady_spread, or if its least time exceeds max_slowdown times its brief timing.
inline constexpr double max_steady_spread = 0.5;
inline constexpr double max_slowdown = 3;
/// Returns false if a version was disturbed; NaN: unknown, and no evidence of disturbance.
bool is_steady(double spread, double least, double brief);

/// Returns true if another eligible rung takes less than good_enough times the seconds of the
/// chosen one, and at least call_seconds less: an estimate is wrong. False for an undecided row.
bool is_wrong_choice(const SurveyRow& row);
/// Returns true if the peer or a teaching rung beats even the fastest eligible rung by the margin
/// of is_wrong_choice(), or if there is no peer and that rung takes more than floor_multiple times
/// the floor and more than the floor plus floor_slack. False for an undecided row.
bool is_missing_kernel(const SurveyRow& row);
/// Returns the sort key of a problem, worst first: the least of its ratios, 0 for a wrong result.
/// Without a peer, of_floor * floor_multiple is one of them (1 if the time is within floor_slack of
/// the floor). Undecided rows sort last.
double goodness(const SurveyRow& row);
/// Returns true if a row that was timed again replaces the previous one: either of them failed, the
/// previous one was undecided, or the new one is decided and has a better goodness().
bool replaces(const SurveyRow& row, const SurveyRow& before);

/// Checks the public call against the oracle and times it against every version that supports the
/// problem. Other versions are checked only if they win.
SurveyRow survey_problem(const AnyOperator& op, const Problem& problem, Context& context,
                         const SurveyPlan& plan, const bench::Machine& machine);

/// Properties that match a device to rates (core/rates.hpp).
struct SurveyDevice {
  bool is_gpu = false;
  std::string name;  // GPU: its name; CPU: vendor, family, model and vector bits
  int compute_capability = 0;
  int units = 1;  // SMs, or threads
  double bytes_per_second = 0;
};
SurveyDevice device_of(const Context& context);
nlohmann::ordered_json to_json(const SurveyDevice& device);

/// Content of a survey file.
struct SurveyResults {
  std::string op;
  Backend backend = Backend::cpu;
  int threads = 1;
  std::string where;    // name of the CPU or GPU
  SurveyDevice device;  // in files since 2026-11-29
  std::string date;     // of the last row
  SurveyDraw draw;
  std::vector<SurveyRow> rows;
  [[nodiscard]] SurveyRow* find(std::uint64_t seed, std::int64_t index);  // null: not measured
};
std::string survey_json(const SurveyResults& survey, const bench::Machine& machine);
/// Parses the output of survey_json(). Throws Error(io) for any other text.
SurveyResults survey_from_json(const std::string& text);
/// Throws Error(invalid_argument) that names the difference if `file` cannot be continued by the
/// survey `requested`.
void expect_same_survey(const SurveyResults& file, const SurveyResults& requested,
                        std::string_view path);

/// Distribution of a ratio over the rows that were measured and are not undecided.
struct SurveyMean {
  int count = 0;
  double mean = not_measured;  // geometric mean
  double worst = not_measured;
  int bad = 0;  // below good_enough
};
SurveyMean mean_of(const std::vector<SurveyRow>& rows,
                   const std::function<double(const SurveyRow&)>& ratio);
/// Returns the indices of the `count` worst rows.
std::vector<std::size_t> worst_of(const std::vector<SurveyRow>& rows, std::size_t count);
/// Returns "wrong choice", "missing kernel", a list of both, "WRONG RESULT", "not supported",
/// "undecided" or "".
std::string fault_of(const SurveyRow& row);

/// Returns the fastest of our rungs ("" if it is the chosen one), and the ratio of its time to that
/// of the chosen one.
std::pair<std::string, double> fastest_of(const SurveyRow& row);
/// Formats the seeds: "seed 1", "seeds 1, 2".
std::string seeds_of(const std::vector<SurveyRow>& rows);

/// Maximum number of problems in a report, worst first.
inline constexpr std::size_t worst_shown = 10;
/// Formats a ratio with two decimals; "" if it was not measured.
std::string ratio_text(double ratio);

/// Returns a warning that the machine was busy, if times of a call typically spread or a row is
/// undecided; else "".
std::string survey_busy_text(const std::vector<SurveyRow>& rows);

std::string survey_text(const SurveyResults& survey);
/// Returns a table with one line per operator.
std::string survey_summary_markdown(const std::vector<SurveyResults>& surveys);
std::string survey_worst_markdown(const SurveyResults& survey);

}  // namespace rung::workbench
