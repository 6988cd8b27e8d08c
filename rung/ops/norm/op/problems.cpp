// SPDX-License-Identifier: Apache-2.0
// norm: problems for checks and benchmarks, their inputs, and the command line.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"
#include "rung/harness/problem_writer.hpp"
#include "rung/ops/norm/op/norm.hpp"
#include "rung/ops/norm/shared/axes.hpp"

namespace rung {

namespace {

// Shapes: few long and many short rows; outputs of training; fused residual; other axes.
constexpr std::string_view survey_patterns[] = {
    "(f32*3|bf16*2|f16|f64) 1..16777216x1..16777216(,gamma,beta*2|,rms,gamma)",
    "(f32*2|bf16*2|f16) 1..16777216x2..64(,gamma,beta*2|,rms,gamma)",
    "(f32*3|bf16*2|f16) 1..65536x1..65536(,gamma,beta|,rms,gamma),residual,sum(*2|,stats)",
    "(f32*2|bf16|f16) 1..65536x1..65536(,gamma,beta*2|,rms,gamma),stats",
    "(bf16|f16) 1..65536x1..65536(,gamma,beta*2|,rms,gamma),f32_weights(*2|,residual,sum)",
    ("(f32*2|bf16|f64) "
     "1..4096x1..4096x1..4096(,gamma,beta*2|,rms,gamma),axis=(0|1|2,axes=1|1,axes=2)"),
    "(f32*2|bf16) 1..65536x1..65536(,gamma,beta*2|,rms,gamma),in_place",
};
const Survey<Norm> survey{survey_patterns};

}  // namespace

std::vector<Problem> Norm::check_problems(Backend backend) {
  // Row lengths around the widths of vectors, warps and blocks; every option alone and combined;
  // every axis; every type; in place. Small enough for the simulated GPU.
  std::vector<Problem> problems = Problem::parse_all({
      "f32 0x5,gamma",                             // no rows
      "f32 3x0,stats",                             // empty rows
      "f32 1x1,gamma,beta",                        // one element
      "f32 4,gamma,beta,stats",                    // one row, no other axis
      "f32 3x7,gamma,beta",                        // shorter than any vector
      "f32 83x3,gamma,beta,stats,in_place",        // many rows shorter than any vector
      "bf16 90x5,rms,gamma,residual,sum,stats",    //
      "f64 2x37x8,gamma,beta",                     //
      "f32 70x1,gamma,stats",                      //
      "bf16 900x2,gamma,stats",                    // many rows of two elements
      "f16 70x31,rms,gamma,beta,residual,sum",     //
      "f32 40x257,gamma,beta,stats,in_place",      // rows at unaligned addresses
      "f32 5x33,rms,gamma,stats",                  // a lane more than a warp
      "f32 9x256,gamma,beta,stats",                // whole vectors
      "f32 3x1027,gamma,beta,residual,sum,stats",  // one row exceeds a block; odd length
      "f32 6x64,rms,gamma,residual",               // residual without its sum
      "f32 5x40,gamma,beta,in_place",              //
      "f32 4x129,rms,gamma,residual,sum,in_place,in_place_sum",
      "f32 20x9x3,axis=1,gamma,beta,stats",      // a middle axis
      "f32 30x70,axis=0,rms,beta,residual,sum",  // the first axis
      "f32 2x3x4x5,axes=2,gamma,beta,stats",     // two axes
      "f32 4x3x5x2,axis=1,axes=2,gamma,residual,in_place",
      "f64 3x300,gamma,beta,residual,sum,stats",
      "bf16 4x520,gamma,beta,f32_weights,residual,sum",
      "bf16 7x96,rms,gamma,stats",
      "f16 5x136,gamma,beta,f32_weights,stats",
      "f16 3x4x48,axis=1,gamma,residual",
      // A mean that is large relative to the spread; also beyond one CPU block.
      "f32 9x700,gamma,stats,offset=1000",
      "f64 3x4100,gamma,beta,stats,offset=1e6",
      "f64 300x20,axis=0,gamma,stats,offset=1e6",
      "bf16 5x600,gamma,stats,offset=100",
  });
  if (backend != Backend::cpu) {
    // Rows that use all threads of their blocks.
    const std::vector<Problem> full = Problem::parse_all(
        {"f32 8x1024,gamma,beta,stats", "bf16 4x1024,rms,gamma", "bf16 2x8192,gamma,beta,stats",
         "f16 2x4096,gamma,beta", "f32 2x2048,rms,gamma", "f32 1x32768,gamma,beta"});
    problems.insert(problems.end(), full.begin(), full.end());
  }
  if (backend == Backend::simt) {
    // One row for each kernel that keeps rows in registers, and some longer ones.
    const std::vector<Problem> wider =
        Problem::parse_all({"f32 2x2304,gamma,beta,residual", "bf16 2x4104,gamma,beta,stats",
                            "f64 1x4100,gamma,beta", "bf16 1x20480,gamma,beta", "f16 1x32776,gamma",
                            "f32 1x9001,rms,gamma", "f32 1x18000,gamma,beta",
                            "f32 3x1029,gamma,beta,stats,in_place", "bf16 2x4109,gamma,beta,stats",
                            "f16 2x4102,rms,gamma,f32_weights", "bf16 1x18501,gamma,beta",
                            "bf16 9x2322,gamma,beta,stats", "bf16 1x20002,gamma,beta,f32_weights",
                            "f32 9x2053,gamma,beta,stats", "f32 1x144669,gamma,beta"});
    problems.insert(problems.end(), wider.begin(), wider.end());
    return problems;
  }
  // Several blocks of columns, rows split over threads, and long rows split among threads.
  const std::vector<Problem> larger = Problem::parse_all({
      "f32 300x129,gamma,beta,residual,sum,stats",
      "f32 2x20001,gamma,beta,stats",
      "f32 1x70000,rms,gamma,residual",
      "f64 2x9000,gamma,beta",
      "bf16 3x12345,gamma,beta,stats",
      "f16 100x257,gamma,beta",
      "f32 3x200x130,axis=1,gamma,beta,stats",
      "bf16 2x90x66,axis=1,rms,gamma,f32_weights,residual,sum",
      "f64 70x70,axis=0,gamma,beta",
      "f64 2x8192,gamma,beta,stats,offset=1e6",
      "f64 1x70000,gamma,stats,offset=1e6",
      "f32 2x20001,gamma,stats,offset=1000",
  });
  problems.insert(problems.end(), larger.begin(), larger.end());
  if (backend == Backend::cuda) {
    // Enough rows that each cluster loops over several.
    const std::vector<Problem> rounds =
        Problem::parse_all({"f32 150x20480,gamma,beta,residual,sum", "f32 35x131072,gamma,beta",
                            "bf16 35x131072,gamma,beta,f32_weights", "bf16 9x40000,rms,gamma",
                            "f32 3200x2051,gamma,beta,stats,in_place", "bf16 800x20003,gamma",
                            "bf16 800x20003,gamma,beta", "f32 35x144670,gamma,beta,stats"});
    problems.insert(problems.end(), rounds.begin(), rounds.end());
  }
  return problems;
}

std::vector<Problem> Norm::bench_problems(Backend backend) {
  switch (backend) {
    case Backend::cpu:
    case Backend::opencl:
      return Problem::parse_all({"f32 4096x4096,gamma,beta", "f32 1024x256,gamma,beta",
                                 "f32 65536x256,gamma,beta", "f32 256x65536,gamma,beta",
                                 "f32 4096x4096,rms,gamma", "bf16 4096x4096,gamma,beta",
                                 "f32 4096x4096,gamma,beta,residual,sum"});
    case Backend::cuda:
      // The ten shapes at which the peers were measured.
      return Problem::parse_all({"f32 65536x1024,gamma,beta", "f32 16384x4096,gamma,beta",
                                 "f32 4096x16384,gamma,beta", "f32 8192x32768,gamma,beta",
                                 "f32 2048x131072,gamma,beta", "bf16 65536x1024,gamma,beta",
                                 "bf16 16384x4096,gamma,beta", "bf16 4096x16384,gamma,beta",
                                 "bf16 8192x32768,gamma,beta", "bf16 2048x131072,gamma,beta"});
    case Backend::simt:
      return Problem::parse_all({"f32 8x1024,gamma,beta", "bf16 4x4096,gamma,beta"});
  }
  return {};
}

Norm::Call Norm::make(const Problem& problem, Inputs& inputs) {
  problem.expect(name, problem.extents.size(),
                 {"rms", "axis", "axes", "eps", "gamma", "beta", "f32_weights", "residual", "sum",
                  "stats", "in_place", "in_place_sum", "offset", "spread"});
  const Extents shape{std::span(problem.extents)};
  const DType type = problem.dtype;
  const DType arithmetic = type == DType::f64 ? DType::f64 : DType::f32;
  const DType weights = problem.has("f32_weights") ? arithmetic : type;
  Call call;
  call.axes = static_cast<int>(problem.integer("axes", 1, Problem::axes));
  call.axis = static_cast<int>(problem.integer("axis", -call.axes, Problem::axis));
  call.epsilon = problem.number("eps", 1e-5);
  const AxisSet normalized = norm_axes::chosen(name, call.axis, call.axes, shape.rank);

  const double offset = problem.number("offset", 0);
  const double spread = problem.number("spread", 1);
  const auto around_offset = [=](std::int64_t, double uniform) {
    return offset + spread * std::sqrt(12.0) * (uniform - 0.5);  // `spread`: standard deviation
  };
  const bool made = problem.has("offset") || problem.has("spread");
  // The order matters: reference() fills the outputs in the order in which they are made here.
  if (problem.has("in_place")) {
    call.y =
        made ? inputs.in_out("x", type, shape, around_offset) : inputs.in_out("x", type, shape);
    call.x = call.y;
  } else {
    call.x = made ? inputs.input("x", type, shape, around_offset) : inputs.input("x", type, shape);
  }
  if (problem.has("in_place_sum")) {
    call.sum = inputs.in_out("residual", type, shape);
    call.residual = call.sum;
  } else if (problem.has("residual") || problem.has("sum")) {
    call.residual = inputs.input("residual", type, shape);
  }
  const Extents columns = norm_axes::part(shape, normalized);
  if (problem.has("gamma")) call.gamma = inputs.input("gamma", weights, columns);
  if (problem.has("beta")) call.beta = inputs.input("beta", weights, columns);
  if (!problem.has("in_place")) call.y = inputs.output("y", type, shape);
  if (problem.has("sum") && !problem.has("in_place_sum")) {
    call.sum = inputs.output("sum", type, shape);
  }
  call.kind = problem.has("rms") ? NormKind::rms : NormKind::layer;
  if (problem.has("stats")) {
    const Extents rows = norm_axes::part(shape, ~normalized);
    if (call.kind == NormKind::layer) call.mean = inputs.output("mean", arithmetic, rows);
    call.rstd = inputs.output("rstd", arithmetic, rows);
  }
  return call;
}

Problem Norm::describe(const Call& call) {
  const auto is_wider = [&](const ConstTensorRef& weights) {
    return is_given(weights) && weights.dtype != call.x.dtype;
  };
  const bool in_place_sum = shares_data(call.sum, call.residual);
  return ProblemWriter(call.x.dtype, call.x.shape)
      .flag("rms", call.kind == NormKind::rms)
      .integer("axis", call.axis, -call.axes)
      .integer("axes", call.axes, 1)
      .number("eps", call.epsilon, 1e-5)
      .flag("gamma", is_given(call.gamma))
      .flag("beta", is_given(call.beta))
      .flag("f32_weights", is_wider(call.gamma) || is_wider(call.beta))
      .flag("residual", is_given(call.residual) && !in_place_sum)
      .flag("sum", is_given(call.sum) && !in_place_sum)
      .flag("stats", is_given(call.mean) || is_given(call.rstd))
      .flag("in_place", shares_data(call.y, call.x))
      .flag("in_place_sum", in_place_sum)
      .problem();
}

std::span<const ArgumentSpec> Norm::arguments() {
  using Kind = ArgumentSpec::Kind;
  static constexpr std::array<ArgumentSpec, 8> specs{{
      {"x", Kind::tensor, true, "what is normalized"},
      {"gamma", Kind::tensor, false, "the extents of the normalized axes; default: ones"},
      {"beta", Kind::tensor, false, "as gamma; default: zeros"},
      {"residual", Kind::tensor, false, "added to x first"},
      {"kind", Kind::text, false, "default layer", "layer|rms"},
      {"axis", Kind::number, false, "the first normalized axis; default: the last ones"},
      {"axes", Kind::number, false, "how many axes are normalized together; default 1"},
      {"epsilon", Kind::number, false, "added to the variance; default 1e-5"},
  }};
  return specs;
}

void Norm::invoke(Context& context, Invocation& call, Pick pick) {
  const ConstTensorRef x = call.tensors.at("x");
  const std::string_view kind = call.text("kind", "layer");
  if (kind != "layer" && kind != "rms") {
    reject(name, fmt::format("kind '{}'; accepted: layer, rms", kind));
  }
  NormOptions options;
  options.axes = static_cast<int>(call.integer(name, "axes", 1, Problem::axes));
  options.axis = static_cast<int>(call.integer(name, "axis", -options.axes, Problem::axis));
  options.epsilon = call.number("epsilon", 1e-5);
  if (call.has("gamma")) options.gamma = call.tensors.at("gamma");
  if (call.has("beta")) options.beta = call.tensors.at("beta");
  if (call.has("residual")) options.residual = call.tensors.at("residual");
  call.result = Tensor(x.dtype, x.shape, context.device());
  if (kind == "rms") {
    rms_norm(context, x, call.result, options, pick);
  } else {
    layer_norm(context, x, call.result, options, pick);
  }
}

}  // namespace rung
