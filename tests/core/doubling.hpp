// SPDX-License-Identifier: Apache-2.0
// Operator for tests, y = 2 x, with rungs of every kind: general; faster but limited; slower;
// multithreaded; a vendor's; for teaching; and on another backend. Included by one test only, since
// its rungs register themselves.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rung/harness/any_operator.hpp"
#include "rung/harness/problem_writer.hpp"

namespace rung {
namespace {

/// Record of the rungs that ran.
struct Trace {
  std::vector<std::string> ran;
  int bindings = 0;
  int support_questions = 0;
  std::function<void(Context&)> during;  // called during a run of "team"
};
Trace trace;
bool library_present = true;
int library_asked = 0;  // number of calls that looked for the vendor's library

struct Double {
  static constexpr std::string_view name = "double";
  static constexpr std::string_view summary = "y = 2 x";
  static constexpr std::string_view problem_help = "TYPE N";
  template <class In, class Out>
  struct CallOf {
    In x = {};
    Out y = {};
    int option = 0;  // without effect
    bool operator==(const CallOf&) const = default;
  };
  using Call = CallOf<ConstTensorRef, TensorRef>;
  struct Args : Call {};
  static constexpr bool operands_in_host_memory = true;  // the rung for GPUs does nothing
  static constexpr void operands(auto& call, auto&& visit) {
    visit(in(call.x, "x"), out(call.y, "y"));
  }

  static RungList<Double>& rungs() {
    static constinit RungList<Double> list;
    return list;
  }
  static void bind(const Args& args) {
    ++trace.bindings;
    if (args.x.rank() != 1) throw Error(ErrorCode::invalid_argument, "x has no single axis");
  }
  static Cost cost(const Args& args) {
    return {8.0 * static_cast<double>(args.x.size()), static_cast<double>(args.x.size())};
  }
  static void reference(const Args& args, Oracle& oracle) {
    Oracle::Output& y = oracle.outputs.at(0);
    y.length = args.x.size();
    for (std::int64_t i = 0; i < y.length; ++i) {
      y.value.push_back(2.0 * static_cast<const float*>(args.x.data)[i]);
    }
  }
  static Tolerance tolerance(const Args&, const RungInfo& rung, Values) {
    return {.relative = rung.peer ? 1.0 : 0.0};
  }
  static std::vector<Problem> check_problems(Backend) { return {Problem::parse("f32 5")}; }
  static std::vector<Problem> bench_problems(Backend) { return {}; }
  static Call make(const Problem& problem, Inputs& inputs) {
    const Extents shape{problem.extents.at(0)};
    return {inputs.input("x", problem.dtype, shape), inputs.output("y", problem.dtype, shape)};
  }
  static Problem describe(const Call& call) {
    return ProblemWriter(call.x.dtype, call.x.shape).problem();
  }
  static std::span<const ArgumentSpec> arguments() { return {}; }
  static void invoke(Context& context, Invocation& invocation, Pick pick);
};

void run_named(const char* name, const Double::Args& args) {
  trace.ran.emplace_back(name);
  for (std::int64_t i = 0; i < args.x.size(); ++i) {
    static_cast<float*>(args.y.data)[i] = 2 * static_cast<const float*>(args.x.data)[i];
  }
}
template <const char* Name>
void run(const Double::Args& args, Context&) {
  run_named(Name, args);
}

constexpr char plain_name[] = "plain";
constexpr char wide_name[] = "wide";
constexpr char early_name[] = "early_tie";
constexpr char late_name[] = "late_tie";
constexpr char team_name[] = "team";
constexpr char slow_name[] = "slow";
constexpr char peer_name[] = "vendor";
constexpr char teaching_name[] = "wrong_on_purpose";
constexpr char last_name[] = "last";
constexpr char fourteens_name[] = "fourteens";  // for a family of shapes
constexpr char beside_name[] = "beside";        // first by name, and preferred to "fourteens"
constexpr char any_type_name[] = "any_type";    // for types

Support needs_eight(const Double::Args& args, const Context&) {
  ++trace.support_questions;
  return args.x.size() % 8 == 0 ? supported : unsupported("the length is no multiple of 8");
}
Support needs_floats(const Double::Args& args, const Context&) {
  return args.x.dtype == DType::f32 ? supported : unsupported("takes f32 only");
}
Cost double_traffic(const Double::Args& args) {
  return {16.0 * static_cast<double>(args.x.size()), 0};
}
/// Returns the facts of kernels that take the same short time.
Work no_time(const Double::Args&, const Context&) { return {.bytes = 1e-9, .operations = 1e-9}; }
Support needs_six(const Double::Args& args, const Context&) {
  return args.x.size() == 6 ? supported : unsupported("the length is not 6");
}
Support needs_fourteen(const Double::Args& args, const Context&) {
  return args.x.size() == 14 ? supported : unsupported("the length is not 14");
}
Work slow_time(const Double::Args&, const Context&) { return {.bytes = 1e15}; }
/// Returns the facts of "plain" with 1.2 times its bytes, divided among a team that starts in no
/// time.
Work team_time(const Double::Args& args, const Context& context) {
  return {.bytes = 1.2 * Double::cost(args).bytes / context.threads()};
}
/// Returns default facts: one thread works, for any number of threads.
Work plain_time(const Double::Args&, const Context&) { return {}; }
void run_team_of_doubles(const Double::Args& args, Context& context) {
  run_named(team_name, args);
  if (trace.during) trace.during(context);
}
Support library_here() {
  ++library_asked;
  return library_present ? supported : unsupported("libvendor.so is missing");
}

// Registered out of order on purpose: two rungs of lower steps tie with "wide", one registered
// before it, one after.
const Rung<Double> early_tie{{.name = early_name,
                              .step = 15,
                              .supports = needs_eight,
                              .work = no_time,
                              .run = run<early_name>}};
const Rung<Double> wide{{.name = wide_name,
                         .step = 20,
                         .after = plain_name,
                         .supports = needs_eight,
                         .work = no_time,
                         .run = run<wide_name>}};
const Rung<Double> late_tie{{.name = late_name,
                             .step = 16,
                             .supports = needs_eight,
                             .work = no_time,
                             .run = run<late_name>}};
const Rung<Double> slow{{.name = slow_name,
                         .step = 5,
                         .supports = needs_floats,
                         .traffic = double_traffic,
                         .run = run<slow_name>}};
const Rung<Double> plain{{.name = plain_name,
                          .step = 10,
                          .supports = needs_floats,
                          .work = plain_time,
                          .run = run<plain_name>}};
const Rung<Double> team{{.name = team_name,
                         .step = 30,
                         .supports = needs_six,
                         .work = team_time,
                         .run = run_team_of_doubles}};
const Rung<Double> fourteens{{.name = fourteens_name,
                              .after = plain_name,
                              .supports = needs_fourteen,
                              .work = no_time,
                              .run = run<fourteens_name>},
                             "rung/ops/double/cpu/shapes/fourteens.cpp"};
const Rung<Double> beside_fourteens{{.name = beside_name,
                                     .after = fourteens_name,
                                     .supports = needs_fourteen,
                                     .work = no_time,
                                     .run = run<beside_name>},
                                    "rung/ops/double/cpu/shapes/beside.cpp"};
const Rung<Double> any_type{{.name = any_type_name,
                             .after = plain_name,
                             .supports = needs_floats,
                             .work = slow_time,
                             .run = run<any_type_name>},
                            "rung/ops/double/cpu/types/any_type.cpp"};
const Rung<Double> last_step{{.name = last_name,
                              .step = 50,
                              .after = team_name,
                              .supports = needs_fourteen,
                              .work = no_time,
                              .run = run<last_name>}};
const Rung<Double> vendor{{.name = peer_name,
                           .step = 0,
                           .peer = true,
                           .about = [] { return std::string("vendor 1.0"); },
                           .present = library_here,
                           .work = no_time,
                           .run = run<peer_name>}};
const Rung<Double> teaching{{.name = teaching_name,
                             .step = 7,
                             .teaching = true,
                             .work = no_time,
                             .run = run<teaching_name>}};
const Rung<Double> elsewhere{
    {.name = "elsewhere",
     .step = 10,
     .backend = Backend::cuda,
     .work = no_time,
     .run = [](const Double::Args&, Context&) { trace.ran.emplace_back("elsewhere"); }}};

const Operator<Double> the_operator;

void Double::invoke(Context& context, Invocation& invocation, Pick pick) {
  const Tensor& x = invocation.tensors.at("x");
  invocation.result = Tensor(x.dtype(), x.shape());
  call<Double>(context, {x, invocation.result}, pick);
}

}  // namespace
}  // namespace rung
