// SPDX-License-Identifier: Apache-2.0
// elementwise: problems for checks and timing, their inputs, and the command line.
#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"
#include "rung/harness/problem_words.hpp"
#include "rung/harness/problem_writer.hpp"
#include "rung/harness/run_examples.hpp"
#include "rung/ops/elementwise/op/elementwise.hpp"

namespace rung {
namespace {

constexpr std::string_view function_names[] = {"add", "sub",  "mul",     "div",  "axpy",
                                               "fma", "relu", "sigmoid", "tanh", "gelu",
                                               "exp", "silu", "sign"};

ElementwiseFunction function_of(std::size_t index) {
  return static_cast<ElementwiseFunction>(static_cast<std::uint8_t>(index));
}

/// Returns an operand's shape: from a word, relative to the problem's shape, or from text such as
/// "64x1".
Extents parse_shape(std::string_view text, const Extents& whole) {
  if (text == "scalar") return Extents{1};
  if (text == "row") return Extents{whole.rank == 0 ? 1 : whole[whole.rank - 1]};
  if (text == "column") {
    Extents shape = whole;
    if (shape.rank > 0) shape[shape.rank - 1] = 1;
    return shape;
  }
  // Parsed by the problem grammar, with an arbitrary type.
  return Extents(Problem::parse("f32 " + std::string(text)).extents);
}

/// Returns the text that parse_shape() maps to `own`; "" for the whole shape.
std::string spell_shape(const Extents& own, const Extents& whole) {
  if (own == whole) return "";
  for (const char* word : {"scalar", "row", "column"}) {
    if (own == parse_shape(word, whole)) return word;
  }
  return own.rank == 0 ? "scalar" : to_string(own);
}

// Vectors with every function; each form of broadcasting, on short and long rows; in place.
constexpr std::string_view survey_patterns[] = {
    ("(f32*3|bf16*2|f16|f64) "
     "1..33554432,(add|mul|div|axpy|fma|relu|sigmoid|tanh|gelu|exp|silu|sign)"),
    "(f32|bf16|f16|f64|i32|i64|u8) 1..33554432,(add|sub|mul|fma|relu)",
    "(f32*3|bf16*2|f16|f64|u8) 1..4194304x1..4194304,(add|mul|fma),y=(row|column|scalar)",
    "(f32*2|bf16*2|f16) 1..4194304x2..15,(add|mul),(x|y)=(row|column)",
    "(f32*2|bf16|f64) 1..65536x1..65536,fma,(x=column,y=row|y=row,w=column|x=row,w=scalar)",
    "(f32*2|bf16|f16) 1..512x1..512x1..4096,(add|mul|axpy),y=(row|column)",
    "(f32*2|bf16|f16) 1..33554432,(add|mul|relu|gelu),in_place",
};
const Survey<Elementwise> survey{survey_patterns};

const RunExample examples[] = {
    {"elementwise", "x.npy --y y.npy -o z.npy", "x + y"},
    {"elementwise", "x.npy --function relu -o z.npy", "of one operand"},
};

}  // namespace

std::string_view to_string(ElementwiseFunction function) noexcept {
  const auto index = static_cast<std::size_t>(function);
  return index < std::size(function_names) ? function_names[index] : "unknown function";
}

std::vector<Problem> Elementwise::check_problems(Backend backend) {
  // Every function; every type; sizes around a vector and a block; axes that merge and that do not;
  // each form of broadcasting. Small enough for the simulated GPU.
  std::vector<Problem> problems = Problem::parse_all({
      "f32 0",
      "f32 3x0x4,add",
      "f32 1,exp",
      "f32 5,sub",
      "f32 63,add",
      "f32 1000,add",
      "f32 1031,mul",
      "f32 513,div",
      "f32 777,axpy,alpha=-2.5",
      "f32 300,fma",
      "f32 1030,relu",
      "f32 519,sigmoid",
      "f32 519,tanh",
      "f32 519,gelu",
      "f32 519,exp",
      "f32 519,silu",
      "f32 519,sign",
      "f64 331,add",
      "f64 67,div",
      "f64 100,axpy,alpha=0.3",
      "f64 70,fma",
      "f64 130,sigmoid",
      "f64 130,tanh",
      "f64 130,gelu",
      "f64 130,exp",
      "f64 130,silu",
      "f64 70,sign",
      "f16 1031,add",
      "f16 300,fma",
      "f16 300,tanh",
      "bf16 1031,mul",
      "bf16 130,axpy,alpha=1.7",
      "bf16 300,gelu",
      "f16 300,silu",
      "bf16 300,silu",
      "f16 300,sign",
      "i32 523,mul",
      "i32 523,fma",
      "i64 267,sub",
      "i64 267,mul",
      "u8 1031,add",
      "u8 519,mul",
      "u8 519,relu",
      // Axes: rows that are whole packs of 16 bytes and rows that are not.
      "f32 17x33,add",
      "f32 16x64,mul",
      "bf16 9x40,add",
      "f32 3x5x7x2,fma",
      "f32 2x3x2x3x2x3x2x3,add",
      // Broadcasting.
      "f32 20x48,add,y=48",
      "f32 20x48,mul,y=column",
      "f32 21x45,sub,x=45",
      "f32 20x48,add,y=scalar",
      "f32 6x7x8,fma,x=7x1,y=8,w=6x1x1",
      "f64 12x20,add,x=1x20,y=12x1",
      "f16 12x48,add,y=48",
      "u8 12x48,add,y=12x1",
      // Short rows, more of them than fit in 4 KiB.
      "f32 700x3,add,y=row",
      "bf16 1100x2,mul,x=column",
      "f32 300x9,fma,x=column,y=row",
      "f64 90x7x5,add,y=90x1x5",
      "f32 3x200x9,add,y=3x1x9",
      // Rows of about as many packs as a block has threads.
      "f32 3x1000,add,y=row",
      "f32 3x1000,fma,x=3x1,y=row",
      "bf16 2x1800,mul,y=row",
      // Tiles of 4 KiB, whole and partial.
      "f32 2048,relu",
      "f32 13001,fma",
      "f64 5000,sub",
      "f16 2500,tanh",
      "bf16 4117,gelu",
      // In place.
      "f32 1000,add,in_place",
      "f32 20x48,mul,y=48,in_place",
      "f16 1000,relu,in_place",
  });
  if (backend == Backend::simt) return problems;
  // These problems span several shares, several pieces, and exceed a CPU's caches.
  const std::vector<Problem> larger = Problem::parse_all({
      "f32 100003,add",
      "f32 300x401,add,y=300x1",
      "f32 1600003,relu",
      "bf16 3200011,add",
      "f32 1001x1601,axpy,y=1601",
      "f64 70000,gelu",
      "f32 200001,add,in_place",
  });
  problems.insert(problems.end(), larger.begin(), larger.end());
  return problems;
}

std::vector<Problem> Elementwise::bench_problems(Backend backend) {
  switch (backend) {
    case Backend::cpu:
    case Backend::opencl:
      return Problem::parse_all({"f32 16777216,add", "f32 16777216,axpy,alpha=2",
                                 "f32 16777216,relu", "f32 16777216,gelu", "f32 262144,add",
                                 "f32 8192,add", "f32 8192,exp", "f32 8192,tanh", "f32 8192,gelu",
                                 "bf16 16777216,add", "f32 4096x4096,add,y=row"});
    case Backend::cuda:
      return Problem::parse_all({"f32 16384x16384,add", "f32 16384x16384,relu",
                                 "bf16 16384x16384,add", "bf16 16384x16384,gelu",
                                 "f32 16384x16384,add,y=row", "f32 1048576,add"});
    case Backend::simt:
      return Problem::parse_all({"f32 10000,add", "f32 10000,gelu", "f32 100x100,add,y=row"});
  }
  return {};
}

Elementwise::Call Elementwise::make(const Problem& problem, Inputs& inputs) {
  problem.expect(name, problem.extents.size(),
                 {"add", "sub", "mul", "div", "axpy", "fma", "relu", "sigmoid", "tanh", "gelu",
                  "exp", "silu", "sign", "x", "y", "w", "alpha", "in_place"});
  Call call;
  call.alpha = problem.number("alpha", 1.0);
  expect_one_of(name, problem, function_names, [](std::string_view one) { return one; });
  for (std::size_t i = 0; i < std::size(function_names); ++i) {
    if (problem.has(function_names[i])) call.function = function_of(i);
  }
  const Extents shape(problem.extents);
  const auto operand = [&](std::string_view which) {
    const Extents own = problem.has(which) ? parse_shape(problem.text(which, ""), shape) : shape;
    return inputs.input(which, problem.dtype, own);
  };
  const bool in_place = problem.has("in_place");
  if (in_place) call.z = inputs.in_out("x", problem.dtype, shape);
  call.in[0] = in_place ? ConstTensorRef(call.z) : operand("x");
  if (arity(call.function) > 1) call.in[1] = operand("y");
  if (arity(call.function) > 2) call.in[2] = operand("w");
  if (!in_place) call.z = inputs.output("z", problem.dtype, shape);
  return call;
}

Problem Elementwise::describe(const Call& call) {
  const bool in_place = shares_data(call.z, call.in[0]);
  ProblemWriter writer(call.z.dtype, call.z.shape);
  writer.flag(to_string(call.function), call.function != ElementwiseFunction::add);
  constexpr std::string_view operands[] = {"x", "y", "w"};
  for (std::size_t i = in_place ? 1 : 0; i < std::size(operands); ++i) {
    if (!is_given(call.in[i])) continue;
    writer.text(operands[i], spell_shape(call.in[i].shape, call.z.shape), "");
  }
  return writer.number("alpha", call.alpha, 1.0).flag("in_place", in_place).problem();
}

std::span<const ArgumentSpec> Elementwise::arguments() {
  using Kind = ArgumentSpec::Kind;
  static constexpr std::array<ArgumentSpec, 5> specs{{
      {"x", Kind::tensor, true, "the first operand"},
      {"function", Kind::text, false, "what to compute; default add",
       "add|sub|mul|div|axpy|fma|relu|sigmoid|tanh|gelu|exp|silu|sign"},
      {"y", Kind::tensor, false, "the second operand, for add, sub, mul, div, axpy and fma"},
      {"w", Kind::tensor, false, "the third operand, for fma"},
      {"alpha", Kind::number, false, "axpy: the factor of x; default 1"},
  }};
  return specs;
}

void Elementwise::invoke(Context& context, Invocation& call, Pick pick) {
  ElementwiseOptions options;
  options.alpha = call.number("alpha", 1.0);
  const std::string_view text = call.text("function", "add");
  for (std::size_t i = 0; i < std::size(function_names); ++i) {
    if (text == function_names[i]) options.function = function_of(i);
  }
  ElementwiseInputs inputs;
  inputs.x = call.tensors.at("x");
  if (call.has("y")) inputs.y = call.tensors.at("y");
  if (call.has("w")) inputs.w = call.tensors.at("w");
  // The shape that all operands broadcast to; bind() rejects operands that do not fit.
  Extents shape = inputs.x.shape;
  for (const ConstTensorRef& operand : {inputs.y, inputs.w}) {
    Extents wide = operand.rank() > shape.rank ? operand.shape : shape;
    const Extents& other = operand.rank() > shape.rank ? shape : operand.shape;
    for (int axis = 1; axis <= other.rank; ++axis) {
      std::int64_t& extent = wide[wide.rank - axis];
      if (extent == 1) extent = other[other.rank - axis];
    }
    shape = wide;
  }
  call.result = Tensor(inputs.x.dtype, shape, context.device());
  elementwise(context, inputs, call.result, options, pick);
}

}  // namespace rung
