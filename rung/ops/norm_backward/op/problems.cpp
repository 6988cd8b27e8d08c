// SPDX-License-Identifier: Apache-2.0
// norm_backward: problems for checks and benchmarks, their inputs, and the command line.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>

#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"
#include "rung/harness/problem_writer.hpp"
#include "rung/ops/norm/shared/axes.hpp"
#include "rung/ops/norm_backward/op/norm_backward.hpp"

namespace rung {

namespace {

// Shapes: few long and many short rows; with and without gradients of weights; other axes.
constexpr std::string_view survey_patterns[] = {
    "(f32*3|bf16*2|f16|f64) 1..4194304x1..4194304,gamma,weights(|,rms)(,stats*3|)",
    "(f32*2|bf16*2|f16) 1..4194304x2..64,gamma,weights(|,rms),stats",
    "(bf16|f16) 1..65536x1..65536,gamma,f32_weights,weights,stats",
    "(f32*2|bf16|f64) 1..65536x1..65536(|,gamma)(|,rms)(,stats*2|)",
    "(f32*2|bf16) 1..4096x1..4096x1..4096,gamma,weights,stats,axis=(0|1|2,axes=1|1,axes=2)",
};
const Survey<NormBackward> survey{survey_patterns};

}  // namespace

std::vector<Problem> NormBackward::check_problems(Backend backend) {
  // Row lengths around the widths of vectors and warps, more rows than one chunk of column sums,
  // every option, every type, given and recomputed statistics, other axes, in place.
  std::vector<Problem> problems = Problem::parse_all({
      "f32 0x5,gamma,weights", "f32 1x1,gamma,weights,stats", "f32 6,gamma,weights",
      "f32 5x33,gamma,weights,stats", "f32 70x64,gamma,weights", "f32 9x130,rms,gamma,weights",
      "f32 4x257,rms,gamma,weights,stats", "f32 3x1027,gamma", "f32 6x40,gamma,weights,in_place",
      "f32 20x9x3,axis=1,gamma,weights", "f32 2x3x4x5,axes=2,gamma,weights,stats",
      "f64 3x100,gamma,weights", "bf16 4x136,gamma,weights,f32_weights,stats",
      "f16 5x72,rms,gamma,weights",
      "f32 6x300,gamma,weights,offset=1000",  // a mean that is large relative to the spread
      "f64 3x4100,gamma,weights,offset=1e6",  // longer than one CPU block
  });
  if (backend == Backend::simt) {
    // Teams of one warp and of several, rows for which the ring has one stage, and several
    // iterations.
    const std::vector<Problem> rounds = Problem::parse_all(
        {"f32 80x256,gamma,weights,stats", "bf16 34x2048,gamma,weights",
         "f32 3x12288,gamma,weights,stats", "f16 40x512,rms,gamma,weights,f32_weights",
         "f32 9x1024,gamma,weights,stats",
         // Many short rows per block; one row per block, several iterations; a few long rows in
         // spans; adjacent rows.
         "bf16 530x7,gamma,weights,stats", "f16 90x3,rms,gamma,weights",
         "f32 26x2049,gamma,weights", "f32 20x300,rms,gamma,weights", "f64 9x2051,gamma,weights",
         "f64 1x4099,gamma,weights,stats", "bf16 19x2053,gamma,weights,stats",
         "f32 2x16381,gamma,weights", "f32 9x7x75,axis=0,gamma,weights",
         // Rows of clusters of one and of eight blocks.
         "bf16 140x2051,gamma,weights,stats", "f32 5x28801,rms,gamma,weights,stats",
         "bf16 40x3x33,axis=1,rms,gamma,weights,stats"});
    problems.insert(problems.end(), rounds.begin(), rounds.end());
    return problems;
  }
  const std::vector<Problem> larger = Problem::parse_all({
      "f32 3000x20,gamma,weights",
      "f32 200x300,gamma,weights,stats",
      "f32 2x20001,gamma,weights",
      "bf16 100x513,gamma,weights",
      "f64 130x70,rms,gamma,weights",
      "f64 2x20001,gamma,weights,offset=1e6",
  });
  problems.insert(problems.end(), larger.begin(), larger.end());
  if (backend == Backend::cuda) {
    const std::vector<Problem> rounds = Problem::parse_all(
        {"f32 600x1024,gamma,weights,stats", "bf16 300x4096,gamma,weights",
         "f32 100x16384,gamma,weights,stats", "f16 1000x512,rms,gamma,weights",
         "bf16 200000x7,gamma,weights,stats", "f32 100000x11,rms,gamma,weights",
         "f32 3000x2049,gamma,weights", "bf16 2000x4099,gamma,weights,stats",
         "f64 3x70001,gamma,weights", "bf16 9x50001,gamma,weights,stats",
         "bf16 2000x10007,gamma,weights,stats", "f32 300x28501,gamma,weights,stats",
         "f32 47x60x700,axis=0,gamma,weights"});
    problems.insert(problems.end(), rounds.begin(), rounds.end());
  }
  return problems;
}

std::vector<Problem> NormBackward::bench_problems(Backend backend) {
  switch (backend) {
    case Backend::cpu:
    case Backend::opencl:
      return Problem::parse_all({"f32 4096x4096,gamma,weights,stats",
                                 "f32 1024x256,gamma,weights,stats",
                                 "f32 4096x4096,rms,gamma,weights,stats"});
    case Backend::cuda:
      return Problem::parse_all(
          {"f32 65536x1024,gamma,weights,stats", "f32 16384x4096,gamma,weights,stats",
           "bf16 65536x1024,gamma,weights,stats", "bf16 16384x4096,gamma,weights,stats"});
    case Backend::simt:
      return Problem::parse_all({"f32 64x512,gamma,weights,stats"});
  }
  return {};
}

NormBackward::Call NormBackward::make(const Problem& problem, Inputs& inputs) {
  problem.expect(name, problem.extents.size(),
                 {"rms", "axis", "axes", "eps", "gamma", "f32_weights", "weights", "stats",
                  "in_place", "offset"});
  const Extents shape{std::span(problem.extents)};
  const DType type = problem.dtype;
  const DType arithmetic = type == DType::f64 ? DType::f64 : DType::f32;
  const DType weights = problem.has("f32_weights") ? arithmetic : type;
  Call call;
  call.kind = problem.has("rms") ? NormKind::rms : NormKind::layer;
  call.axes = static_cast<int>(problem.integer("axes", 1, Problem::axes));
  call.axis = static_cast<int>(problem.integer("axis", -call.axes, Problem::axis));
  call.epsilon = problem.number("eps", 1e-5);
  const AxisSet normalized = norm_axes::chosen(name, call.axis, call.axes, shape.rank);
  const Extents columns = norm_axes::part(shape, normalized);
  const Extents rows = norm_axes::part(shape, ~normalized);
  // The order matters: reference() fills the outputs in the order in which they are made here.
  if (problem.has("offset")) {
    const double offset = problem.number("offset", 0);
    call.x = inputs.input("x", type, shape, [=](std::int64_t, double uniform) {
      return offset + std::sqrt(12.0) * (uniform - 0.5);  // a standard deviation of 1
    });
  } else {
    call.x = inputs.input("x", type, shape);
  }
  if (problem.has("in_place")) {
    call.dx = inputs.in_out("dy", type, shape);
    call.dy = call.dx;
  } else {
    call.dy = inputs.input("dy", type, shape);
    call.dx = inputs.output("dx", type, shape);
  }
  if (problem.has("gamma")) call.gamma = inputs.input("gamma", weights, columns);
  if (problem.has("stats")) {
    // The formulas hold for any given mean and rstd.
    const auto around = [](double middle) {
      return [=](std::int64_t, double uniform) { return middle + 0.5 * (uniform - 0.5); };
    };
    if (call.kind == NormKind::layer) call.mean = inputs.input("mean", arithmetic, rows, around(0));
    call.rstd = inputs.input("rstd", arithmetic, rows, around(1));
  }
  if (problem.has("weights")) {
    call.dgamma = inputs.output("dgamma", weights, columns);
    call.dbeta = inputs.output("dbeta", weights, columns);
  }
  return call;
}

Problem NormBackward::describe(const Call& call) {
  const auto is_wider = [&](const ConstTensorRef& weights) {
    return is_given(weights) && weights.dtype != call.x.dtype;
  };
  return ProblemWriter(call.x.dtype, call.x.shape)
      .flag("rms", call.kind == NormKind::rms)
      .integer("axis", call.axis, -call.axes)
      .integer("axes", call.axes, 1)
      .number("eps", call.epsilon, 1e-5)
      .flag("gamma", is_given(call.gamma))
      .flag("f32_weights", is_wider(call.gamma) || is_wider(call.dgamma) || is_wider(call.dbeta))
      .flag("weights", is_given(call.dgamma) || is_given(call.dbeta))
      .flag("stats", is_given(call.mean) || is_given(call.rstd))
      .flag("in_place", shares_data(call.dx, call.dy))
      .problem();
}

std::span<const ArgumentSpec> NormBackward::arguments() {
  using Kind = ArgumentSpec::Kind;
  static constexpr std::array<ArgumentSpec, 7> specs{{
      {"dy", Kind::tensor, true, "the gradient of the result"},
      {"x", Kind::tensor, true, "what was normalized"},
      {"gamma", Kind::tensor, false, "the extents of the normalized axes; default: ones"},
      {"kind", Kind::text, false, "default layer", "layer|rms"},
      {"axis", Kind::number, false, "the first normalized axis; default: the last ones"},
      {"axes", Kind::number, false, "how many axes are normalized together; default 1"},
      {"epsilon", Kind::number, false, "added to the variance; default 1e-5"},
  }};
  return specs;
}

void NormBackward::invoke(Context& context, Invocation& call, Pick pick) {
  const ConstTensorRef x = call.tensors.at("x");
  const ConstTensorRef dy = call.tensors.at("dy");
  const std::string_view kind = call.text("kind", "layer");
  if (kind != "layer" && kind != "rms") {
    reject(name, fmt::format("kind '{}'; accepted: layer, rms", kind));
  }
  NormBackwardOptions options;
  options.axes = static_cast<int>(call.integer(name, "axes", 1, Problem::axes));
  options.axis = static_cast<int>(call.integer(name, "axis", -options.axes, Problem::axis));
  options.epsilon = call.number("epsilon", 1e-5);
  if (call.has("gamma")) options.gamma = call.tensors.at("gamma");
  call.result = Tensor(x.dtype, x.shape, context.device());
  if (kind == "rms") {
    rms_norm_backward(context, dy, x, call.result, options, pick);
  } else {
    layer_norm_backward(context, dy, x, call.result, options, pick);
  }
}

}  // namespace rung
