// SPDX-License-Identifier: Apache-2.0
// One problem of `rung bench`: selects versions, checks and times them.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>

#include "rung/bench/cpu_rates.hpp"
#include "rung/bench/roofline.hpp"
#include "rung/core/error.hpp"
#include "rung/cpu/team_hooks.hpp"
#include "rung/workbench/bench.hpp"
#include "rung/workbench/interrupt.hpp"
#include "rung/workbench/selection.hpp"
#include "rung/workbench/table.hpp"
#include "rung/workbench/verify.hpp"

namespace rung::workbench {
namespace {

/// Limits of the buffer sets that a GPU cycles through. They have at least cold_factor times the
/// size of its L2 cache, so that every launch starts with a cold cache, and there are at least
/// min_sets, so that no figure depends on the addresses of one set (H200, 2 GiB transposed by
/// cuBLAS: 3779 to 4003 GB/s, depending on the address). Both are limited by max_sets and by
/// memory_share of the GPU's and the host's memory.
constexpr double cold_factor = 3;
constexpr int min_sets = 4;
constexpr int max_sets = 64;
constexpr double memory_share = 0.25;

double bytes_held(const Instance& instance) {
  double bytes = 0;
  for (const Inputs::Entry& entry : instance.inputs.entries()) {
    bytes +=
        static_cast<double>(entry.tensor.size()) * static_cast<double>(size_of(entry.tensor.dtype));
  }
  return bytes;
}

/// Bit mask of the workers that took part in calls.
std::atomic<std::uint64_t> joined{0};
void note_worker(int worker) {
  const std::uint64_t bit = std::uint64_t{1} << (worker % 64);
  // Load first: a store per call would slow down short calls.
  if ((joined.load(std::memory_order_relaxed) & bit) == 0) {
    joined.fetch_or(bit, std::memory_order_relaxed);
  }
}

/// Records participating workers during its lifetime.
class NotedWorkers {
 public:
  NotedWorkers() { cpu::team_hooks::before_joining = note_worker; }
  ~NotedWorkers() { cpu::team_hooks::before_joining = nullptr; }
  NotedWorkers(const NotedWorkers&) = delete;
  NotedWorkers& operator=(const NotedWorkers&) = delete;

  /// Returns the number of threads, including the caller, that took part since the previous take().
  static int take() { return 1 + std::popcount(joined.exchange(0, std::memory_order_relaxed)); }
};

class ProblemBench {
 public:
  ProblemBench(const AnyOperator& op, const Problem& problem, Context& context,
               const BenchPlan& plan, const bench::Machine& machine, Progress& progress)
      : op_(op),
        problem_(problem),
        context_(context),
        plan_(plan),
        machine_(machine),
        progress_(progress),
        verifier_(op, problem, {}, 1, context.device()),
        cost_(verifier_.instance().cost()),
        ceiling_(ceiling_of(problem, verifier_.instance(), context, machine)),
        smaller_(op, problem, cost_, context) {}

  BenchTable run() {
    for (const RungInfo* rung : op_.rungs()) {
      if (rung->backend == context_.backend() && is_wanted(plan_, rung->name)) enter(rung);
    }
    if (is_wanted(plan_, public_call)) enter(nullptr);
    if (context_.backend() != Backend::simt) time();
    return {title(), std::move(rows_), std::move(not_timed_), no_ceiling()};
  }

 private:
  BenchRow blank(const RungInfo* rung) const {
    BenchRow row;
    row.op = op_.name();
    row.rung = rung != nullptr ? rung->name : public_call;
    if (rung != nullptr) {
      row.step = rung->step;
      row.kind = kind_name(*rung);
      row.step_text = step_text(*rung);
    }
    row.backend = context_.backend();
    row.peer = rung != nullptr && rung->peer;
    row.problem = problem_.to_string();
    if (!in_host_memory(context_.backend())) row.device = context_.info().name;
    row.threads = context_.threads();
    const bool memory = bench::bound_by_memory(cost_, ceiling_);
    row.unit = memory ? "GB/s" : "GFLOP/s";
    return row;
  }

  /// Checks a rung, or the public call if `rung` is null, and adds it to the race if it is correct
  /// and not too slow.
  void enter(const RungInfo* rung) {
    if (rung != nullptr) {
      const bool is_named = !plan_.rungs.empty();
      if (const Availability here = rung_availability(*rung); !here) {
        if (is_named) leave_out(rung, here.why);
        return;
      }
      if (const Support takes = verifier_.instance().supports(*rung, context_); !takes) {
        // A step that supports fewer problems than the next one is expected; for a peer it is worth
        // a note.
        if (is_named || rung->peer) leave_out(rung, takes.why);
        return;
      }
    }
    BenchRow row = blank(rung);
    progress_.say(fmt::format("checking {} {} on {}", row.op, row.rung, row.problem));
    if (rung != nullptr && context_.backend() != Backend::simt) {
      const RuntimeEstimate predicted_runtime = smaller_.predict(*rung, plan_.longest_call);
      if (predicted_runtime.seconds > plan_.longest_call) {
        row.note = fmt::format("too slow to wait for, about {} a call; {} takes {}",
                               format_seconds(predicted_runtime.seconds), predicted_runtime.smaller,
                               format_seconds(predicted_runtime.smaller_seconds));
        rows_.push_back(row);
        return;
      }
    }
    const Verdict verdict = verifier_.verify(rung, context_, false);
    if (verdict.kind == Verdict::Kind::skipped) {
      leave_out(rung, verdict.message);
      return;
    }
    if (verdict.kind == Verdict::Kind::failed) {
      row.failed = true;
      row.note = "FAILED, not timed: " + verdict.message;
      rows_.push_back(row);
      return;
    }
    if (rung == nullptr) {
      row.chosen = verifier_.instance().chosen(context_).name;
      row.note = "picks " + row.chosen;
    } else if (rung->peer && rung->about != nullptr) {
      row.note = rung->about();
    }
    if (context_.backend() == Backend::simt) {
      row.note = "checked on the simulated GPU" + (row.note.empty() ? "" : ", " + row.note);
    } else {
      timed_.push_back({rows_.size(), rung});
    }
    rows_.push_back(row);
  }

  void leave_out(const RungInfo* rung, const std::string& why) {
    BenchRow row = blank(rung);
    row.note = why;
    not_timed_.push_back(std::move(row));
  }

  void time() {
    const auto others = more_sets(op_, problem_, context_, verifier_.instance(), machine_);
    std::vector<Instance*> sets{&verifier_.instance()};
    for (const auto& one : others) sets.push_back(one.get());
    for (Instance* one : sets) one->inputs.reset();

    std::vector<bench::Contender> contenders;
    contenders.reserve(timed_.size());
    for (const Entry& entry : timed_) contenders.push_back(contender(sets, entry.rung, context_));
    const bench::Pace pace = this->pace();
    if (pace.operations > 0) contenders.push_back(pace.contender);
    std::vector<bench::Samples> samples;
    const NotedWorkers workers;
    std::size_t last = timed_.size();
    const auto note_threads = [&] {
      const int threads = NotedWorkers::take();
      if (context_.backend() != Backend::cpu || last >= timed_.size()) return;
      BenchRow& row = rows_[timed_[last].row];
      if (!row.peer) row.threads_used = std::max(row.threads_used, threads);
    };
    const auto say = [&](std::size_t i) {
      note_threads();
      last = i;
      const std::string name = i < timed_.size() ? rows_[timed_[i].row].rung : "the ceiling";
      progress_.say(fmt::format("timing {} {} on {}", op_.name(), name, problem_.to_string()));
    };
    try {
      bench::alternate(contenders, plan_.timing, say, samples);
    } catch (const Interrupted&) {
      // After a Ctrl-C: the rounds so far count, if there are any.
      const auto is_timed = [](const bench::Samples& one) { return one.count() > 0; };
      if (std::none_of(samples.begin(), samples.end(), is_timed)) throw;
    }
    note_threads();
    const bench::Samples* fastest_peer = nullptr;
    for (std::size_t i = 0; i < timed_.size(); ++i) {
      if (!rows_[timed_[i].row].peer || samples[i].count() == 0) continue;
      if (fastest_peer == nullptr || samples[i].median() < fastest_peer->median()) {
        fastest_peer = &samples[i];
      }
    }
    for (std::size_t i = 0; i < timed_.size(); ++i) {
      fill_in(rows_[timed_[i].row], samples[i], fastest_peer);
    }
    if (pace.operations > 0) hold_against(pace.operations, samples);
  }

  /// Returns the CPU's arithmetic ceiling as one more contender of the race, if arithmetic bounds
  /// the problem: the clock rate varies over time by more than kernels differ.
  bench::Pace pace() const {
    if (context_.backend() != Backend::cpu || timed_.empty() ||
        ceiling_.operations_per_second <= 0 || bench::bound_by_memory(cost_, ceiling_)) {
      return {};
    }
    return bench::arithmetic_pace(ceiling_.element, context_.threads(), cost_.operations);
  }

  /// Computes of_ceiling of each row from samples of the CPU's arithmetic ceiling, the last of
  /// `samples`, each of which executes `operations`.
  void hold_against(double operations, const std::vector<bench::Samples>& samples) {
    const bench::Samples& ceiling = samples.back();
    if (ceiling.count() == 0) return;  // after a Ctrl-C
    ceiling_.operations_per_second = operations / ceiling.median();
    for (std::size_t i = 0; i < timed_.size(); ++i) {
      rows_[timed_[i].row].of_ceiling =
          cost_.operations / operations * bench::speed_ratio(ceiling, samples[i]);
    }
  }

  void fill_in(BenchRow& row, const bench::Samples& samples, const bench::Samples* peer) const {
    row.seconds = samples.median();
    row.spread = samples.spread();
    row.rounds = samples.count();
    const double work = row.unit == "GB/s" ? cost_.bytes : cost_.operations;
    row.rate = work / row.seconds * 1e-9;
    const double at_best = bench::seconds_at_best(cost_, ceiling_);
    if (at_best > 0) row.of_ceiling = at_best / row.seconds;
    if (peer != nullptr) row.vs_peer = bench::speed_ratio(*peer, samples);
  }

  /// Returns why there is no ceiling; "" if there is one, and on the simulated GPU. Arithmetic
  /// rates are measured for some types only.
  std::string no_ceiling() const {
    if (context_.backend() == Backend::simt || bench::seconds_at_best(cost_, ceiling_) > 0) {
      return "";
    }
    return ceiling_.element.empty()
               ? "no ceiling of this device is measured"
               : fmt::format("no ceiling: the rate of multiply-adds in {} is not measured",
                             ceiling_.element);
  }

  std::string title() const {
    std::string text = fmt::format("{} {} on {}{}", op_.name(), problem_.to_string(),
                                   to_string(context_.backend()), device_in_parentheses(context_));
    if (context_.backend() == Backend::cpu) {
      text += ", " + count_of(context_.threads(), "thread");
    }
    const double at_best = bench::seconds_at_best(cost_, ceiling_);
    if (context_.backend() == Backend::simt) return text;
    if (at_best <= 0) return text + ": " + no_ceiling();
    const bool memory = bench::bound_by_memory(cost_, ceiling_);
    const double work = memory ? cost_.bytes : cost_.operations;
    return text + fmt::format(": at best {}, {} {} ({})", format_seconds(at_best),
                              format_number(work / at_best * 1e-9), memory ? "GB/s" : "GFLOP/s",
                              memory ? ceiling_.memory : ceiling_.arithmetic);
  }

  struct Entry {
    std::size_t row;
    const RungInfo* rung;  // null: the public call
  };

  const AnyOperator& op_;
  const Problem& problem_;
  Context& context_;
  const BenchPlan& plan_;
  const bench::Machine& machine_;
  Progress& progress_;
  Verifier verifier_;
  Cost cost_;
  bench::Ceiling ceiling_;
  SmallerProblems smaller_;
  std::vector<BenchRow> rows_;
  std::vector<BenchRow> not_timed_;
  std::vector<Entry> timed_;
};

}  // namespace

std::vector<std::unique_ptr<Instance>> more_sets(const AnyOperator& op, const Problem& problem,
                                                 const Context& context, const Instance& first,
                                                 const bench::Machine& machine) {
  std::vector<std::unique_ptr<Instance>> sets;
  const double held = bytes_held(first);
  if (context.backend() != Backend::cuda || held <= 0) return sets;
  const DeviceInfo& gpu = context.info();
  const double cold = std::ceil(cold_factor * static_cast<double>(gpu.l2_bytes) / held);
  const double room =
      memory_share * std::min(static_cast<double>(gpu.memory_bytes), machine.memory_bytes) / held;
  const int count = static_cast<int>(
      std::min({static_cast<double>(max_sets), room, std::max<double>(min_sets, cold)}));
  for (int i = 1; i < count; ++i) {
    sets.push_back(op.make(problem, {}, static_cast<std::uint64_t>(i) + 1, context.device()));
  }
  return sets;
}

bench::Contender contender(const std::vector<Instance*>& sets, const RungInfo* rung,
                           Context& context) {
  // Each sample continues with the set after the last one of the previous sample, so that even
  // samples of a single call cycle through all sets.
  return {[&context, sets, rung, set = std::size_t{0}](long repeats) mutable {
    for (long i = 0; i < repeats; ++i, set = (set + 1) % sets.size()) {
      rung != nullptr ? sets[set]->run(*rung, context) : sets[set]->call(context);
    }
    context.synchronize();
  }};
}

bool is_wanted(const BenchPlan& plan, std::string_view rung) {
  return plan.rungs.empty() ||
         std::find(plan.rungs.begin(), plan.rungs.end(), rung) != plan.rungs.end();
}

double written_share(const Instance& instance) {
  double written = 0;
  double all = 0;
  for (const Inputs::Entry& entry : instance.inputs.entries()) {
    const double bytes =
        static_cast<double>(entry.tensor.size()) * static_cast<double>(size_of(entry.tensor.dtype));
    written += entry.written ? bytes : 0;
    all += bytes * (entry.written && entry.read ? 2 : 1);
  }
  return all > 0 ? written / all : 0;
}

std::string computing_element(const Problem& problem) {
  return problem.has("tf32") ? "tf32" : std::string(to_string(problem.dtype));
}

BenchTable bench_problem(const AnyOperator& op, const Problem& problem, Context& context,
                         const BenchPlan& plan, const bench::Machine& machine, Progress& progress) {
  return ProblemBench(op, problem, context, plan, machine, progress).run();
}

}  // namespace rung::workbench
