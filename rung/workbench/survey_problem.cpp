// SPDX-License-Identifier: Apache-2.0
// One problem of a survey: checks the public call, and compares its time with every other version.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <memory>

#include "rung/bench/clock.hpp"
#include "rung/bench/statistics.hpp"
#include "rung/core/error.hpp"
#include "rung/workbench/interrupt.hpp"
#include "rung/workbench/selection.hpp"
#include "rung/workbench/survey.hpp"
#include "rung/workbench/verify.hpp"

namespace rung::workbench {
namespace {

/// A version that a single timing finds this many times slower than the fastest of its kind is
/// excluded from the race; single timings can be off by a factor of two.
constexpr double far_behind = 3;
/// Maximum number of racers of each kind, besides the chosen rung.
constexpr std::size_t max_racing = 2;
constexpr std::size_t max_kernels_racing = 8;  // if rates are fitted to them
enum class Kind { choosable, teaching, peer };
Kind kind_of(const RungInfo& rung) {
  return rung.peer ? Kind::peer : rung.teaching ? Kind::teaching : Kind::choosable;
}
/// Seconds per call; versions that take longer, and more than `hopeless` times as long as the
/// public call, are not timed on the whole problem.
constexpr double long_call = 0.05;
constexpr double hopeless = 10;

struct Version {
  const RungInfo* rung = nullptr;  // null: the public call
  double seconds = not_measured;
  bool measured = true;          // false: extrapolated from a smaller problem
  double brief = not_measured;   // seconds, timed before the race
  double spread = not_measured;  // in the race
};

/// Returns the seconds of a call: the minimum of a few timings of as many calls as take 50 us.
template <class Run>
double brief_timing(Run run) {
  constexpr double long_enough = 5e-5;
  constexpr double slow = 5e-3;
  constexpr int max_calls = 500;
  constexpr int timings = 4;
  const auto timed = [&](int calls) {
    const double begin = bench::now();
    run(calls);
    return (bench::now() - begin) / calls;
  };
  // The first call may have loaded a library, or started with cold caches.
  const double first = timed(1);
  if (first >= 10 * slow) return first;
  double least = timed(1);
  const int calls = std::clamp(static_cast<int>(long_enough / std::max(least, 1e-8)), 1, max_calls);
  for (int i = 0; i < timings && least < slow; ++i) least = std::min(least, timed(calls));
  return least;
}

/// Returns the minimum time. A bench reports typical times; a survey measures what a version can
/// do, for which the minimum is the most reliable figure on a shared machine. (A team of threads
/// waits a whole scheduler time slice for a preempted thread.)
double least(const bench::Samples& samples) {
  std::vector<double> present;
  for (const double one : samples.seconds) {
    if (!std::isnan(one)) present.push_back(one);
  }
  return bench::quantile(present, 0);
}

class ProblemSurvey {
 public:
  ProblemSurvey(const AnyOperator& op, const Problem& problem, Context& context,
                const SurveyPlan& plan, const bench::Machine& machine)
      : op_(op),
        problem_(problem),
        context_(context),
        plan_(plan),
        machine_(machine),
        verifier_(op, problem, {}, 1, context.device()) {
    row_.problem = problem.to_string();
  }

  SurveyRow run() {
    if (plan_.kernels_only ? !takes_call() : !right(nullptr)) return row_;
    Instance& made = verifier_.instance();
    chosen_ = &made.chosen(context_);
    row_.chosen = chosen_->name;
    sets_ = more_sets(op_, problem_, context_, made, machine_);
    made.inputs.reset();
    for (const auto& one : sets_) one->inputs.reset();

    time_briefly();
    std::vector<Version> racing = racers();
    race(racing, plan_.first);
    if (is_unsatisfactory() && !plan_.kernels_only) {
      std::erase_if(racing, [&](const Version& one) {
        return one.rung != nullptr && one.rung != chosen_ && one.rung != fastest_ &&
               one.rung != teaching_ && one.rung != peer_;
      });
      race(racing, plan_.again);
    }
    check_winners();
    hold_against_floor();
    return row_;
  }

 private:
  /// Returns true if a rung supports the public call.
  bool takes_call() {
    try {
      verifier_.instance().validate(context_);
      verifier_.instance().call(context_);  // which measures, where the context tunes
      return true;
    } catch (const Error& error) {
      row_.unsupported = true;
      remark(nullptr, error.what());
      return false;
    }
  }

  /// Returns true if a version's result is correct; otherwise records the failure in the row.
  bool right(const RungInfo* rung) {
    Verdict verdict = verifier_.verify(rung, context_, false);
    // After a race, another version may have damaged the inputs; they are regenerated after a
    // failure.
    if (raced_ && verdict.kind == Verdict::Kind::failed) {
      verdict = verifier_.verify(rung, context_, false);
    }
    if (verdict.kind == Verdict::Kind::passed) return true;
    if (rung == nullptr) {
      const bool is_skipped = verdict.kind == Verdict::Kind::skipped;
      row_.unsupported = is_skipped;
      row_.failed = row_.failed || !is_skipped;
    }
    remark(rung, verdict.message);
    return false;
  }

  void remark(const RungInfo* rung, std::string_view what) {
    row_.note += fmt::format("{}{}: {}", row_.note.empty() ? "" : "; ",
                             rung != nullptr ? rung->name : public_call, what);
  }

  /// Returns the seconds of a call of the rung, from a brief timing.
  double timed_once(const RungInfo* rung) {
    const bench::Contender one = contender(all_sets(), rung, context_);
    return brief_timing([&](int calls) { one.run(calls); });
  }

  std::vector<Instance*> all_sets() {
    std::vector<Instance*> sets{&verifier_.instance()};
    for (const auto& one : sets_) sets.push_back(one.get());
    return sets;
  }

  bool takes_part(const RungInfo& rung) {
    if (rung.backend != context_.backend() || !rung_availability(rung)) return false;
    if (rung.peer && (!plan_.peers || plan_.kernels_only)) return false;
    if (rung.teaching && plan_.kernels_only) return false;
    return static_cast<bool>(verifier_.instance().supports(rung, context_));
  }

  void time_briefly() {
    call_ = timed_once(nullptr);
    const double longest = std::max(long_call, hopeless * call_);
    SmallerProblems smaller(op_, problem_, verifier_.instance().cost(), context_);
    for (const RungInfo* rung : op_.rungs()) {
      if (!takes_part(*rung)) continue;
      try {
        const double expected = rung == chosen_ ? 0 : smaller.predict(*rung, longest).seconds;
        const bool measured = expected < longest;
        const double brief = measured ? timed_once(rung) : not_measured;
        timed_.push_back({rung, measured ? brief : expected, measured, brief});
      } catch (const std::exception& error) {
        remark(rung, error.what());
      }
    }
  }

  /// Returns the racers: the public call, the chosen rung, and all versions that may be faster.
  std::vector<Version> racers() {
    std::vector<Version> racing{{nullptr, call_, true, call_}, {chosen_, call_, true, call_}};
    for (const Kind kind : {Kind::choosable, Kind::teaching, Kind::peer}) {
      std::vector<Version> some;
      for (const Version& one : timed_) {
        if (kind_of(*one.rung) == kind && one.rung != chosen_) some.push_back(one);
      }
      std::sort(some.begin(), some.end(),
                [](const Version& a, const Version& b) { return a.seconds < b.seconds; });
      const std::size_t most = plan_.kernels_only ? max_kernels_racing : max_racing;
      if (some.size() > most) some.resize(most);
      for (const Version& one : some) {
        const double to_beat = kind == Kind::peer ? some.front().seconds : call_;
        if (one.seconds <= far_behind * to_beat) racing.push_back(one);
      }
    }
    return racing;
  }

  void race(std::vector<Version>& racing, const SurveyPlan::Race& timing) {
    double round = 0;
    for (const Version& one : racing) round += std::max(timing.sample_seconds, one.seconds);
    const bench::SamplingPlan plan{
        .rounds = std::clamp(static_cast<int>(timing.seconds / round), 3, timing.rounds),
        .sample_seconds = timing.sample_seconds,
        .slow_seconds = std::numeric_limits<double>::infinity(),
        .warm_up_seconds = timing.sample_seconds};
    std::vector<bench::Contender> contenders;
    contenders.reserve(racing.size());
    for (const Version& one : racing) {
      contenders.push_back(contender(all_sets(), one.rung, context_));
    }
    const auto samples =
        bench::alternate(contenders, plan, [](std::size_t) { InterruptGuard::check(); });
    raced_ = true;
    for (std::size_t i = 0; i < racing.size(); ++i) {
      racing[i].seconds = least(samples[i]);
      racing[i].spread = samples[i].spread();
    }
    const auto fastest = [&](Kind kind) -> const Version* {
      const Version* best = nullptr;
      for (const Version& one : racing) {
        if (one.rung == nullptr || kind_of(*one.rung) != kind) continue;
        if (best == nullptr || one.seconds < best->seconds) best = &one;
      }
      return best;
    };
    const double call = racing[0].seconds;
    const double chosen = racing[1].seconds;
    row_.seconds = call;
    row_.spread = racing[0].spread;
    row_.undecided = !is_steady(racing[0]) || !is_steady(racing[1]);
    const Version& best = *fastest(Kind::choosable);
    fastest_ = best.rung;
    row_.fastest = fastest_->name;
    row_.of_fastest = best.seconds / chosen;
    row_.undecided = row_.undecided || !is_steady(best);
    if (const Version* const lesson = fastest(Kind::teaching)) {
      teaching_ = lesson->rung;
      row_.teaching = teaching_->name;
      row_.of_teaching = lesson->seconds / chosen;
      row_.undecided = row_.undecided || !is_steady(*lesson);
    }
    if (const Version* const peer = fastest(Kind::peer)) {
      peer_ = peer->rung;
      row_.peer = peer_->name;
      row_.vs_peer = peer->seconds / call;
      row_.peer_spread = peer->spread;
      row_.undecided = row_.undecided || !is_steady(*peer);
    }
    for (Version& one : racing) {
      one.measured = true;
      const auto same = [&](const Version& other) { return other.rung == one.rung; };
      const auto found = std::find_if(timed_.begin(), timed_.end(), same);
      if (found != timed_.end()) *found = one;
    }
  }

  static bool is_steady(const Version& one) {
    return workbench::is_steady(one.spread, one.seconds, one.brief);
  }

  [[nodiscard]] bool is_unsatisfactory() const {
    return row_.undecided || row_.of_fastest < good_enough || row_.of_teaching < good_enough ||
           row_.vs_peer < good_enough;
  }

  /// Checks the results of the winners; the public call's result is already checked.
  void check_winners() {
    if (!plan_.kernels_only) check_fastest();
    for (const Version& one : timed_) {
      if (one.measured) row_.times.emplace_back(one.rung->name, one.seconds);
    }
  }

  void check_fastest() {
    if (fastest_ != chosen_ && row_.of_fastest < good_enough && !right(fastest_)) {
      row_.fastest = row_.chosen;
      row_.of_fastest = 1;
    }
    if (row_.of_teaching < good_enough && !right(teaching_)) {
      row_.teaching.clear();
      row_.of_teaching = not_measured;
    }
    if (peer_ != nullptr && !right(peer_)) {
      row_.peer.clear();
      row_.vs_peer = not_measured;
    }
  }

  void hold_against_floor() {
    const Instance& made = verifier_.instance();
    const bench::Ceiling ceiling = ceiling_of(problem_, made, context_, machine_);
    const double starting = context_.backend() == Backend::cpu ? call_seconds : launch_seconds;
    const double working = bench::seconds_at_best(made.cost(), ceiling);
    if (working <= 0) return;  // no ceiling is known
    row_.floor = std::max(starting, working);
    row_.of_floor = row_.floor / row_.seconds;
  }

  const AnyOperator& op_;
  const Problem& problem_;
  Context& context_;
  const SurveyPlan& plan_;
  const bench::Machine& machine_;
  Verifier verifier_;
  std::vector<std::unique_ptr<Instance>> sets_;
  SurveyRow row_;
  double call_ = 0;
  bool raced_ = false;
  const RungInfo* chosen_ = nullptr;
  const RungInfo* fastest_ = nullptr;
  const RungInfo* teaching_ = nullptr;
  const RungInfo* peer_ = nullptr;
  std::vector<Version> timed_;
};

}  // namespace

SurveyRow survey_problem(const AnyOperator& op, const Problem& problem, Context& context,
                         const SurveyPlan& plan, const bench::Machine& machine) {
  return ProblemSurvey(op, problem, context, plan, machine).run();
}

bool is_steady(double spread, double least, double brief) {
  return !(spread > max_steady_spread) && !(least > max_slowdown * brief);
}

bool is_wrong_choice(const SurveyRow& row) {
  return !row.undecided && row.of_fastest < good_enough &&
         (1 - row.of_fastest) * row.seconds > call_seconds;
}

bool is_missing_kernel(const SurveyRow& row) {
  if (row.undecided) return false;
  const double seconds = row.seconds * (std::isnan(row.of_fastest) ? 1 : row.of_fastest);
  const auto loses_to = [&](double other) {
    return other < good_enough * seconds && seconds - other > call_seconds;
  };
  if (loses_to(row.of_teaching * row.seconds) || loses_to(row.vs_peer * row.seconds)) return true;
  return std::isnan(row.vs_peer) && seconds > floor_multiple * row.floor &&
         seconds > row.floor + floor_slack;
}

double goodness(const SurveyRow& row) {
  if (row.failed) return 0;
  if (row.undecided) return std::numeric_limits<double>::infinity();
  double least = 1;
  for (const double ratio : {row.of_fastest, row.of_teaching, row.vs_peer}) {
    if (ratio < least) least = ratio;
  }
  if (!std::isnan(row.vs_peer) || std::isnan(row.of_floor)) {
    return row.vs_peer > 1 && least == 1 ? row.vs_peer : least;
  }
  const bool near = row.seconds <= row.floor + floor_slack;
  return std::min(least, near ? 1.0 : floor_multiple * row.of_floor);
}

bool replaces(const SurveyRow& row, const SurveyRow& before) {
  if (row.failed || before.failed) return true;
  if (row.undecided || before.undecided) return before.undecided;
  return goodness(row) > goodness(before);
}

}  // namespace rung::workbench
