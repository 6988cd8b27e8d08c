// SPDX-License-Identifier: Apache-2.0
// activation_backward: problems for checks and timing, their inputs, and the command line.
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include "rung/harness/any_operator.hpp"
#include "rung/harness/problem_words.hpp"
#include "rung/harness/problem_writer.hpp"
#include "rung/ops/activation_backward/op/activation_backward.hpp"

namespace rung {
namespace {

constexpr std::array functions{ActivationFunction::sign, ActivationFunction::sigmoid,
                               ActivationFunction::tanh, ActivationFunction::relu,
                               ActivationFunction::gelu, ActivationFunction::silu};

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();
// Values of `special`: 77 elements contain all pairs.
constexpr std::array special_saved{nan,  infinity, -infinity, 0.0, -0.0, 1.0,
                                   -1.0, 0.5,      -0.5,      3.0, -3.0};
constexpr std::array special_dy{nan, infinity, -infinity, 0.0, -0.0, 1.25, -2.0};

double special_saved_at(std::int64_t index, double) {
  return special_saved[static_cast<std::size_t>(index) % special_saved.size()];
}
double special_dy_at(std::int64_t index, double) {
  return special_dy[static_cast<std::size_t>(index) / special_saved.size() % special_dy.size()];
}

constexpr std::string_view survey_patterns[] = {
    "(f32*3|bf16*2|f16|f64) 1..67108864,(relu|sigmoid|tanh|gelu|silu|sign)",
    "(f32*2|bf16*2|f16) 1..8192x1..8192,(relu|sigmoid|tanh|gelu|silu|sign)(*2|,in_place)",
    "(f32|bf16) 1..256x1..256x1..256,(relu|gelu|silu)(|,over_saved)",
};
const Survey<ActivationBackward> survey{survey_patterns};

}  // namespace

std::vector<Problem> ActivationBackward::check_problems(Backend backend) {
  std::vector<Problem> problems = Problem::parse_all({"f32 0", "f32 1", "f32 3x0x2"});
  for (const ActivationFunction function : functions) {
    const std::string name = "," + std::string(to_string(function));
    for (const char* type : {"f32", "f64", "f16", "bf16"}) {
      problems.push_back(Problem::parse(std::string(type) + " 7x67" + name));
    }
    problems.push_back(Problem::parse("f32 1037" + name + ",in_place"));
    problems.push_back(Problem::parse("bf16 5x3x41" + name + ",over_saved"));
    for (const char* special : {"f32 3x77", "f64 80", "f16 7x33", "bf16 2x77"}) {
      problems.push_back(Problem::parse(special + name + ",special"));
    }
    problems.push_back(Problem::parse("f32 83" + name + ",special,in_place"));
  }
  if (backend == Backend::simt) return problems;
  for (const char* larger : {"f32 300001,gelu", "bf16 300x1003,silu", "f32 200x301,relu"}) {
    problems.push_back(Problem::parse(larger));
  }
  return problems;
}

std::vector<Problem> ActivationBackward::bench_problems(Backend backend) {
  switch (backend) {
    case Backend::cpu:
    case Backend::opencl:
      return Problem::parse_all({"f32 16777216,relu", "f32 262144,relu", "f32 4194304,gelu"});
    case Backend::cuda:
      return Problem::parse_all({"f32 67108864,relu", "f32 67108864,gelu", "bf16 134217728,silu"});
    case Backend::simt:
      return Problem::parse_all({"f32 4096,relu", "f32 4096,gelu"});
  }
  return {};
}

ActivationBackward::Call ActivationBackward::make(const Problem& problem, Inputs& inputs) {
  problem.expect(
      name, problem.extents.size(),
      {"sign", "sigmoid", "tanh", "relu", "gelu", "silu", "in_place", "over_saved", "special"});
  const Extents shape{std::span<const std::int64_t>(problem.extents)};
  Call call;
  expect_one_of(name, problem, functions, [](ActivationFunction one) { return to_string(one); });
  for (const ActivationFunction function : functions) {
    if (problem.has(to_string(function))) call.function = function;
  }
  // Values of y are in the forward function's range, including its ends.
  ValueMaker maker;
  if (call.function == ActivationFunction::sigmoid) {
    maker = [](std::int64_t index, double uniform) { return index % 17 == 0 ? 1.0 : uniform; };
  }
  if (call.function == ActivationFunction::tanh) {
    maker = [](std::int64_t index, double uniform) {
      return index % 17 == 0 ? -1.0 : 2 * uniform - 1;
    };
  }
  ValueMaker dy_maker;
  if (problem.has("special")) {
    maker = special_saved_at;
    dy_maker = special_dy_at;
  }
  const bool over_saved = problem.has("over_saved");
  if (over_saved) {
    call.dx = maker ? inputs.in_out("dx", problem.dtype, shape, maker)
                    : inputs.in_out("dx", problem.dtype, shape);
    call.saved = call.dx;
  } else {
    call.saved = maker ? inputs.input("saved", problem.dtype, shape, maker)
                       : inputs.input("saved", problem.dtype, shape);
  }
  if (problem.has("in_place") && !over_saved) {
    call.dx = dy_maker ? inputs.in_out("dx", problem.dtype, shape, dy_maker)
                       : inputs.in_out("dx", problem.dtype, shape);
    call.dy = call.dx;
  } else {
    call.dy = dy_maker ? inputs.input("dy", problem.dtype, shape, dy_maker)
                       : inputs.input("dy", problem.dtype, shape);
    if (!over_saved) call.dx = inputs.output("dx", problem.dtype, shape);
  }
  return call;
}

Problem ActivationBackward::describe(const Call& call) {
  const bool over_saved = shares_data(call.dx, call.saved);
  return ProblemWriter(call.saved.dtype, call.saved.shape)
      .flag(to_string(call.function), call.function != ActivationFunction::relu)
      .flag("in_place", !over_saved && shares_data(call.dx, call.dy))
      .flag("over_saved", over_saved)
      .problem();
}

std::span<const ArgumentSpec> ActivationBackward::arguments() {
  using Kind = ArgumentSpec::Kind;
  static constexpr std::array<ArgumentSpec, 3> specs{{
      {"saved", Kind::tensor, true, "x (sign, relu, gelu, silu) or y (sigmoid, tanh, relu)"},
      {"dy", Kind::tensor, true, "the gradient of y"},
      {"function", Kind::text, false, "default relu", "sign|sigmoid|tanh|relu|gelu|silu"},
  }};
  return specs;
}

void ActivationBackward::invoke(Context& context, Invocation& call, Pick pick) {
  const ConstTensorRef saved = call.tensors.at("saved");
  ActivationBackwardOptions options;
  for (const ActivationFunction function : functions) {
    if (call.text("function", "relu") == to_string(function)) options.function = function;
  }
  call.result = Tensor(saved.dtype, saved.shape, context.device());
  activation_backward(context, saved, call.tensors.at("dy"), call.result, options, pick);
}

}  // namespace rung
