// SPDX-License-Identifier: Apache-2.0
// rung explain: why a rung is as fast as it is: its header comment, its declared cost, the counters
// of the simulated GPU, and the differences from the previous rung.
#include "rung/workbench/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "rung/bench/data_sheets.hpp"
#include "rung/core/error.hpp"
#include "rung/harness/explain_problems.hpp"
#include "rung/workbench/annotate.hpp"
#include "rung/workbench/command.hpp"
#include "rung/workbench/explain_scale.hpp"
#include "rung/workbench/progress.hpp"
#include "rung/workbench/selection.hpp"

namespace rung::workbench {
namespace {

/// The simulated GPU runs some ten million simple steps a second: more would take minutes.
constexpr double max_steps = 3e7;       // product of the extents
constexpr double max_operations = 1e9;  // limits iterations, for example; a warp does 32 at a time

struct Options {
  std::string target;
  std::vector<std::string> problem;
  std::string backend;
  std::string at;
  ChipChoice chip;
  bool json = false;
  bool annotate = false;
  bool choice = false;
};

/// Returns the ladder to explain: the requested one, else the simulated GPU if the rung is on it.
Backend backend_of(const AnyOperator& op, const std::string& rung, const std::string& requested) {
  if (!requested.empty()) {
    const Backend backend = parse_backend(requested);
    if (!rung.empty()) expect_rung(op, rung, backend);
    return backend;
  }
  bool cpu = false;
  for (const RungInfo* one : op.rungs()) {
    if (!rung.empty() && one->name != rung) continue;
    if (one->backend == Backend::simt) return Backend::simt;
    cpu = cpu || one->backend == Backend::cpu;
  }
  return cpu ? Backend::cpu : Backend::cuda;
}

void expect_quick(const AnyOperator& op, const Problem& problem, Backend backend) {
  if (backend != Backend::simt) return;
  double steps = 1;
  for (const std::int64_t extent : problem.extents) steps *= static_cast<double>(extent);
  const double operations = op.outline(problem, Context::on(backend))->cost().operations;
  if (steps <= max_steps && operations <= max_operations) return;
  throw Error(ErrorCode::unsupported,
              fmt::format("problem: {} would take the simulated GPU minutes, with extents of a "
                          "product of {:.2g} and {:.2g} operations; accepted: {:.2g} and {:.2g}; "
                          "counts grow evenly, so that a smaller one tells as much",
                          problem.to_string(), steps, operations, max_steps, max_operations));
}

/// A problem constructed on the device of its rungs.
struct Made {
  Problem problem;
  std::unique_ptr<Instance> instance;
  std::string_view rung;  // the only rung explained on it; "": any that supports it
};

/// Problems that rungs are explained on: the given one, else the operator's choice, else its usual
/// problems, starting with the one that most rungs support.
class Problems {
 public:
  Problems(const AnyOperator& op, Backend backend, const std::vector<std::string>& words)
      : op_(op) {
    const std::vector<Problem> given = parse_problems(words);
    if (given.size() > 1) {
      throw Error(ErrorCode::invalid_argument, "problem: several given; accepted: one");
    }
    // Kernels run only on the simulated GPU.
    const bool runs = backend == Backend::simt;
    const Device device{runs ? backend : Backend::cpu, 0};
    if (!given.empty()) {
      expect_quick(op, given.front(), backend);
      expect_work(op, given.front(), Context::on(device.backend), "explain");
    }
    const auto make = [&](const Problem& problem, std::string_view rung) {
      made_.push_back({problem, op.make(problem, {}, 1, device), rung});
    };
    const std::span<const ExplainProblem> chosen = AnyExplainProblems::of(op.name());
    const bool operators_choice = given.empty() && runs && !chosen.empty();
    if (operators_choice) {
      for (const ExplainProblem& one : chosen) make(Problem::parse(one.problem), one.rung);
    } else {
      for (const Problem& one : given.empty() ? op.bench_problems(backend) : given) make(one, "");
    }
    if (made_.empty()) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("problem: none given, and {} has no usual one on {}", op.name(),
                              to_string(backend)));
    }
    if (!runs) {
      made_.resize(1);
      return;
    }
    context_ = Context::on(backend);
    if (!operators_choice) put_most_taken_first(op);
  }

  [[nodiscard]] const Problem& first() const { return made_.front().problem; }
  /// Explains the rung on the problem that names it, else on the first problem that it supports,
  /// preferably one that `other` supports too.
  [[nodiscard]] Explained explain(const RungInfo& rung, const RungInfo* other = nullptr) const {
    const Made& made = choose(rung, other);
    Explained one = explain_rung(rung, made.problem, *made.instance);
    check_simulated(op_, one);
    return one;
  }
  /// Explains the previous rung, on the problem of `one` if it supports that.
  [[nodiscard]] Explained explain_before(const RungInfo& before, const Explained& one) const {
    const auto same = std::find_if(made_.begin(), made_.end(), [&](const Made& made) {
      return made.problem == one.problem && takes(made, before);
    });
    const Made& made = same != made_.end() ? *same : choose(before, one.rung);
    return explain_rung(before, made.problem, *made.instance);
  }

 private:
  [[nodiscard]] bool takes(const Made& made, const RungInfo& rung) const {
    if (!context_ || rung.backend != Backend::simt || rung.peer) return false;
    return static_cast<bool>(made.instance->supports(rung, *context_));
  }
  [[nodiscard]] const Made& choose(const RungInfo& rung, const RungInfo* other) const {
    const auto own = std::find_if(made_.begin(), made_.end(),
                                  [&](const Made& made) { return made.rung == rung.name; });
    if (own != made_.end()) return *own;
    const auto taken = [&](const Made& made) { return made.rung.empty() && takes(made, rung); };
    auto at = std::find_if(made_.begin(), made_.end(), [&](const Made& made) {
      return taken(made) && (other == nullptr || takes(made, *other));
    });
    if (at == made_.end()) at = std::find_if(made_.begin(), made_.end(), taken);
    return at != made_.end() ? *at : made_.front();
  }
  void put_most_taken_first(const AnyOperator& op) {
    const auto rungs_of = [&](const Made& made) {
      const std::vector<const RungInfo*> rungs = op.rungs();
      return std::count_if(rungs.begin(), rungs.end(),
                           [&](const RungInfo* one) { return takes(made, *one); });
    };
    const auto first =
        std::max_element(made_.begin(), made_.end(),
                         [&](const Made& a, const Made& b) { return rungs_of(a) < rungs_of(b); });
    std::rotate(made_.begin(), first, first + 1);
  }

  const AnyOperator& op_;
  std::optional<Context> context_;  // simulated GPU, if its rungs are explained
  std::vector<Made> made_;
};

const RungInfo& find_rung(const AnyOperator& op, Backend backend, const std::string& name) {
  for (const RungInfo* one : op.rungs()) {
    if (one->backend == backend && one->name == name) return *one;
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("'{}' is the library's choice; name a rung", name));
}

std::unique_ptr<LargerProblem> larger_problem(const AnyOperator& op, Backend backend,
                                              const Options& options) {
  if (options.at.empty()) return nullptr;
  if (backend != Backend::simt) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--at: given for rungs on {}; accepted: with rungs that are counted, "
                            "on simt",
                            to_string(backend)));
  }
  return std::make_unique<LargerProblem>(op, options.at);
}

/// Returns the previous rung's bound divided by this rung's, if both were counted on the same
/// problem; else 0.
double gain_of(const AnyOperator& op, const Explained& one, const std::vector<Explained>& rungs) {
  const RungInfo* const before = rung_before(op, *one.rung);
  const auto at = std::find_if(rungs.begin(), rungs.end(), [&](const Explained& other) {
    return other.rung == before && other.problem == one.problem;
  });
  if (!one.counted() || at == rungs.end() || !at->counted()) return 0;
  if (one.at != at->at) return 0;
  const AtBest now = at_best(one), then = at_best(*at);
  return now.seconds > 0 ? then.seconds / now.seconds : 0;
}

int explain_ladder(const AnyOperator& op, Backend backend, Options& options) {
  std::vector<const RungInfo*> ladder;
  for (const RungInfo* one : op.rungs()) {
    if (one->backend == backend && !one->peer) ladder.push_back(one);
  }
  if (ladder.empty()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("backend: {} has no rungs on {}", op.name(), to_string(backend)));
  }
  const Problems problems(op, backend, options.problem);
  const auto larger = larger_problem(op, backend, options);
  std::vector<Explained> rungs;
  {
    Progress progress(static_cast<std::int64_t>(ladder.size()));
    for (const RungInfo* one : ladder) {
      progress.step(one->name);
      rungs.push_back(problems.explain(*one));
      if (larger && larger->suits(rungs.back())) larger->extrapolate(rungs.back());
    }
  }
  const bool none = std::none_of(rungs.begin(), rungs.end(),
                                 [](const Explained& one) { return one.at.has_value(); });
  if (larger && none) larger->extrapolate(rungs.front());
  for (Explained& one : rungs) one.chip = choose_chip(options.chip, one.problem, one);
  for (Explained& one : rungs) one.gain = gain_of(op, one, rungs);
  fmt::print("{}\n", options.json ? explain_json(op, problems.first(), rungs)
                                  : ladder_text(op, problems.first(), rungs));
  return exit_good;
}

int explain_one(const AnyOperator& op, const RungInfo& rung, Options& options) {
  const Problems problems(op, rung.backend, options.problem);
  const RungInfo* const earlier = rung_before(op, rung);
  const auto larger = larger_problem(op, rung.backend, options);
  Explained one = problems.explain(rung, earlier);
  if (one.refused) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}/{} on {}: {} {}", op.name(), rung.name, to_string(rung.backend),
                            one.problem.to_string(), one.why_not_run));
  }
  if (larger) larger->extrapolate(one);
  one.chip = choose_chip(options.chip, one.problem, one);
  if (options.json) {
    fmt::print("{}\n", explain_json(op, one.problem, {one}));
    return exit_good;
  }
  Explained before;
  if (earlier != nullptr) {
    before = problems.explain_before(*earlier, one);
    if (larger && larger->suits(before)) larger->extrapolate(before);
    before.chip = one.chip;
  }
  fmt::print("{}", explain_text(op, one, earlier != nullptr ? &before : nullptr));
  if (options.annotate) fmt::print("\n{}", annotate(kernels_to_json(one.kernels)));
  return exit_good;
}

/// Explains the library's choice on the default backend or the given one; for simt, the choice on
/// an H200.
int choice_of(const AnyOperator& op, const Target& target, const Options& options) {
  if (!target.rung.empty() || options.problem.empty() || options.json || options.annotate ||
      !options.at.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "--choice: wants an operator and a problem, as in gemm \"f32 64x64x64\", and "
                "neither --at, --annotate nor --json");
  }
  std::vector<std::string> missing;
  const Backend backend = !options.backend.empty()
                              ? select_backends(options.backend, missing).front()
                          : available(Backend::cuda) ? Backend::cuda
                                                     : Backend::cpu;
  return explain_choice(op, backend, parse_problems(options.problem).front());
}

int run(Options options) {
  const Target target = select_target(options.target);
  const AnyOperator& op = *target.operators.front();
  if (options.choice) return choice_of(op, target, options);
  const Backend backend = backend_of(op, target.rung, options.backend);
  if (options.annotate && (target.rung.empty() || options.json)) {
    throw Error(
        ErrorCode::invalid_argument,
        "--annotate: wants one rung, as in gemm/shared_tile, and no --json, which holds the "
        "lines anyway");
  }
  ChipChoice& chip = options.chip;
  // The OpenCL device may be of any kind.
  if (backend == Backend::opencl && chip.gpu.empty() &&
      chip.bandwidth.empty() != chip.peak.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "--bandwidth, --peak: one given; accepted: both, or --gpu, since the OpenCL "
                "device's rates are not known");
  }
  if (chip.gpu.empty() && (chip.bandwidth.empty() || chip.peak.empty()) &&
      backend != Backend::opencl) {
    chip.gpu = backend == Backend::cpu ? "cpu" : "h200";
  }
  return target.rung.empty() ? explain_ladder(op, backend, options)
                             : explain_one(op, find_rung(op, backend, target.rung), options);
}

std::vector<std::string> complete_gpus(const Completing&) {
  std::vector<std::string> names = split_commas(bench::published_gpu_names());
  for (std::string& name : names) name.erase(0, name.find_first_not_of(' '));
  names.emplace_back("cpu");
  return names;
}

CommandSpec::Action setup(Parser app) {
  auto options = std::make_shared<Options>();
  app.add_option("op", options->target, "an operator, or operator/rung")
      .required()
      .completes(complete_targets);
  app.add_option("problem", options->problem,
                 "as in bench; default: a small one that suits the rung")
      .type_name("PROBLEM");
  app.add_option("--backend", options->backend,
                 fmt::format("{}; counted are those of simt, which is the default where the rung "
                             "is on it",
                             backend_names()))
      .completes(complete_backends);
  app.add_option("--at", options->at,
                 "a larger problem that the bound is of; counts are extrapolated to it")
      .type_name("PROBLEM");
  app.add_option("--gpu", options->chip.gpu,
                 fmt::format("whose roofline: h200 (default) or another of {}, or cpu: this one",
                             bench::published_gpu_names()))
      .completes(complete_gpus);
  app.add_option("--bandwidth", options->chip.bandwidth,
                 "of another chip, as in 4.8TB/s; default: that of --gpu")
      .type_name("RATE");
  app.add_option("--peak", options->chip.peak,
                 "of another chip, as in 67TFLOP/s; default: that of --gpu")
      .type_name("RATE");
  app.add_flag("--annotate", options->annotate, "the source, with the counts beside each line");
  app.add_flag("--choice", options->choice,
               "which kernels take the problem, what each is estimated to take, who refuses");
  app.add_flag("--json", options->json, "one object");
  app.purpose(
      "Runs a rung on the simulated GPU, counts what it does, and says what its step up the ladder "
      "changed: sectors of memory, wavefronts and bank conflicts of shared memory, active lanes, "
      "barriers. The bound is the least time in which a chip can do what was counted, by its "
      "arithmetic, memory, caches, shared memory, instruction issue, launches and latencies, and "
      "which of them binds. An operator alone gives its whole ladder, one line "
      "per rung. docs/explain.md explains each number, docs/glossary.md each word.");
  app.example("rung explain gemm", "the whole ladder");
  app.example("rung explain gemm/shared_tile \"f32 64x64x64\" --gpu a40", "one rung on a problem");
  app.example("rung explain reduce \"f32 262144\" --at \"f32 268435456\"",
              "bounds at a size that is too large to be simulated");
  app.example("rung explain --choice gemm \"f32 16x4096x4096,tb\"",
              "why does a call run the kernel that it runs?");
  app.example("rung explain transpose/padded --bandwidth 2TB/s --peak 20TFLOP/s",
              "below the roof of another chip");
  app.exit_codes({{exit_good, "good"},
                  {exit_usage, "the command line is wrong"},
                  {exit_not_here, "the problem is too large to be simulated, or nothing runs it"}});
  return [options] { return run(*options); };
}

const Command self{{.name = "explain",
                    .order = 35,
                    .summary = "why a rung is as fast as it is: counts, cost, roofline",
                    .setup = setup}};

}  // namespace
}  // namespace rung::workbench
