// SPDX-License-Identifier: Apache-2.0
// The tests' operator, its rungs, and in-process runs of the program.
#include "fake_operator.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "rung/bench/machine.hpp"
#include "rung/core/require.hpp"
#include "rung/harness/problem_writer.hpp"
#include "rung/workbench/command.hpp"
#include "rung/workbench/terminal.hpp"

namespace rung::test {

constinit RungList<Fake> fake_rungs;
RungList<Fake>& Fake::rungs() { return fake_rungs; }

Cost Fake::cost(const Args& args) {
  const auto elements = static_cast<double>(args.x.size());
  return {.bytes = 8 * elements, .operations = args.times * elements};
}

namespace {

using Matrix = View<float, 2>;
using ConstMatrix = View<const float, 2>;

/// Calls f(x, y) for each element but the last `spared`.
template <class F>
void for_each(const Fake::Args& args, std::int64_t spared, F f) {
  const ConstMatrix x = args.x.view<const float, 2>();
  const Matrix y = args.y.view<float, 2>();
  std::int64_t left = x.size() - spared;
  for (std::int64_t i = 0; i < x.shape[0]; ++i) {
    for (std::int64_t j = 0; j < x.shape[1] && left > 0; ++j, --left) f(x(i, j), y(i, j));
  }
}

void twice(float from, float& to) { to = 2 * from; }

void right(const Fake::Args& args, Context&) { for_each(args, 0, twice); }

void wrong(const Fake::Args& args, Context&) {
  for_each(args, 0, [](float from, float& to) { to = 2.001f * from; });
}

void leaves_one_out(const Fake::Args& args, Context&) { for_each(args, 1, twice); }

void writes_past_the_end(const Fake::Args& args, Context&) {
  for_each(args, 0, twice);
  const Matrix y = args.y.view<float, 2>();
  if (y.size() > 0) (&y(y.shape[0] - 1, y.shape[1] - 1))[1] = 0;
}

void changes_its_input(const Fake::Args& args, Context&) {
  for_each(args, 0, [](const float& from, float& to) {
    to = 2 * from;
    const_cast<float&>(from) = 1;
  });
}

void differs_each_time(const Fake::Args& args, Context&) {
  static int calls = 0;
  ++calls;
  // One unit in the last place is within tolerance; a difference from call to call is not.
  for_each(args, 0, [](float from, float& to) {
    to = 2 * from;
    if (calls % 2 == 0) to = std::nextafter(to, 10.0f);
  });
}

void throws(const Fake::Args&, Context&) { throw Error(ErrorCode::internal, "it broke"); }

/// Takes a known time for any problem, measured by the clock: a fixed amount of work sometimes took
/// three times as long on a shared core.
template <int Units>
void works(const Fake::Args& args, Context& context) {
  using namespace std::chrono_literals;
  const auto end = std::chrono::steady_clock::now() + Units * 20us;
  right(args, context);
  while (std::chrono::steady_clock::now() < end) {
  }
}

/// Computes the right result, but slowly for one problem that no check has, and with a slow start
/// for large ones.
void slow_at_times(const Fake::Args& args, Context& context) {
  using namespace std::chrono_literals;
  const std::int64_t rows = args.x.shape[0];
  const std::int64_t columns = args.x.shape[1];
  if (rows == 3 && columns == 41) std::this_thread::sleep_for(410ms);
  if (rows >= 1024 && columns >= 1024) std::this_thread::sleep_for(100ms);
  right(args, context);
}

/// Takes a known time, and for one problem a millisecond in every other 2 ms, as if another program
/// had taken the core.
template <int Units>
void stalls_at_times(const Fake::Args& args, Context& context) {
  using namespace std::chrono_literals;
  const auto begin = std::chrono::steady_clock::now();
  works<Units>(args, context);
  if (args.x.shape[0] != 5 || args.x.shape[1] != 43) return;
  if (begin.time_since_epoch() / 2ms % 2 == 0) return;
  while (std::chrono::steady_clock::now() < begin + 1ms) {
  }
}

Support only_columns(const Fake::Args& args, const Context&) {
  return args.x.shape[1] == 1 ? supported : unsupported("takes a single column");
}
Support nothing(const Fake::Args&, const Context&) { return unsupported("takes nothing"); }
Work early(const Fake::Args&, const Context&) { return {.bytes = 1e9}; }
Work late(const Fake::Args&, const Context&) { return {.bytes = 2e9}; }
Support absent() { return unsupported("libfake is not installed"); }
std::string about() { return "Fake 1.0"; }

using FakeRung = Rung<Fake>;
const FakeRung self[] = {
    FakeRung{{.name = "right", .step = 10, .work = early, .run = right}},
    FakeRung{{.name = "wrong", .step = 20, .after = "right", .work = late, .run = wrong}},
    FakeRung{{.name = "leaves_one_out", .step = 30, .work = late, .run = leaves_one_out}},
    FakeRung{{.name = "past_the_end", .step = 40, .work = late, .run = writes_past_the_end}},
    FakeRung{{.name = "changes_input", .step = 50, .work = late, .run = changes_its_input}},
    FakeRung{{.name = "differs", .step = 60, .work = late, .run = differs_each_time}},
    FakeRung{{.name = "throws", .step = 70, .work = late, .run = throws}},
    FakeRung{{.name = "columns", .step = 80, .supports = only_columns, .work = late, .run = right}},
    FakeRung{{.name = "unreached", .step = 85, .supports = nothing, .run = right}},
    FakeRung{{.name = "one_unit", .step = 90, .work = late, .run = works<1>}},
    FakeRung{{.name = "slow_at_times", .step = 95, .work = late, .run = slow_at_times}},
    FakeRung{
        {.name = "column", .after = "right", .supports = only_columns, .work = late, .run = right},
        "rung/ops/fake/cpu/shapes/column.cpp"},
    FakeRung{
        {.name = "a_type", .after = "right", .supports = only_columns, .work = late, .run = right},
        "rung/ops/fake/cpu/types/a_type.cpp"},
    FakeRung{{.name = "peer_two", .peer = true, .about = about, .run = stalls_at_times<2>}},
    FakeRung{{.name = "peer_eight", .peer = true, .run = stalls_at_times<8>}},
    FakeRung{{.name = "peer_absent", .peer = true, .present = absent, .run = right}},
};
const Operator<Fake> registration;
constexpr std::string_view survey_patterns[] = {"f32 1..1024x1..1024", "f32 1..65536x1(|,zero)"};
const Survey<Fake> survey{survey_patterns};

}  // namespace

void Fake::reference(const Args& args, Oracle& oracle) {
  const ConstMatrix x = args.x.view<const float, 2>();
  Oracle::Output& output = oracle.outputs.at(0);
  std::size_t at = 0;
  for (const std::int64_t row : output.rows) {
    for (std::int64_t j = 0; j < output.length; ++j, ++at) {
      output.value[at] = 2.0 * static_cast<double>(x(row, j));
      output.magnitude[at] = std::abs(output.value[at]);
    }
  }
}

Tolerance Fake::tolerance(const Args&, const RungInfo&, Values) {
  return {.absolute = 0x1p-148, .relative = 0x1p-22};
}

std::vector<Problem> Fake::check_problems(Backend) {
  return {Problem::parse("f32 0x3"), Problem::parse("f32 1x1"), Problem::parse("f32 5x7")};
}
std::vector<Problem> Fake::bench_problems(Backend) { return {Problem::parse("f32 4x16")}; }

Fake::Call Fake::make(const Problem& problem, Inputs& inputs) {
  problem.expect(name, 2, {"zero", "rows_of", "times"});
  const Extents shape{problem.extents[0], problem.extents[1]};
  if (const std::int64_t multiple = problem.integer("rows_of", 1); shape[0] % multiple != 0) {
    reject(name, fmt::format("{} rows, no multiple of {}", shape[0], multiple));
  }
  const auto zero = [](std::int64_t, double) { return 0.0; };
  const ConstTensorRef x = problem.has("zero") ? inputs.input("x", DType::f32, shape, zero)
                                               : inputs.input("x", DType::f32, shape);
  return {x, inputs.output("y", DType::f32, shape), problem.number("times", 1)};
}

Problem Fake::describe(const Call& call) {
  return ProblemWriter(call.x.dtype, call.x.shape).number("times", call.times, 1).problem();
}

std::span<const ArgumentSpec> Fake::arguments() {
  static constexpr ArgumentSpec specs[] = {
      {"x", ArgumentSpec::Kind::tensor, true, "what is doubled"}};
  return specs;
}

void Fake::invoke(Context& context, Invocation& call, Pick pick) {
  const ConstTensorRef x = call.tensors.at("x");
  call.result = Tensor(DType::f32, x.shape, context.device());
  rung::call<Fake>(context, {x, call.result}, pick);
}

Outcome run_rung(const std::vector<std::string>& words) {
  std::vector<const char*> argv{"rung"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Outcome outcome;
  outcome.code = workbench::run_program(static_cast<int>(argv.size()), argv.data());
  std::fflush(stdout);
  outcome.out = testing::internal::GetCapturedStdout();
  outcome.err = testing::internal::GetCapturedStderr();
  return outcome;
}

void expect_fits_the_page(const std::string& text) {
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    EXPECT_LE(end - begin, workbench::terminal_width()) << text.substr(begin, end - begin);
  }
}

KnownMachine::KnownMachine(double operations_per_second) {
  char name[] = "/tmp/rung-test-XXXXXX";
  folder = mkdtemp(name);
  setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  bench::Machine machine = bench::describe_machine();
  for (const char* isa : {"scalar", "avx2", "avx512"}) {
    machine.arithmetic.push_back({isa, "f32", 1, operations_per_second});
    machine.arithmetic.push_back({isa, "f32", machine.cores, 2 * operations_per_second});
  }
  for (const char* level : {"L1", "L2", "L3", "memory"}) {
    machine.bandwidth.push_back({level, "read", 1, 1e6, 1e11});
    machine.bandwidth.push_back({level, "copy", 1, 1e6, 1e11});
  }
  const std::string path = bench::machine_cache_path();
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << bench::machine_to_json(machine);
}

KnownMachine::~KnownMachine() {
  unsetenv("XDG_CACHE_HOME");
  std::filesystem::remove_all(folder);
}

}  // namespace rung::test
