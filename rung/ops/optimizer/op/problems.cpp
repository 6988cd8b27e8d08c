// SPDX-License-Identifier: Apache-2.0
// optimizer: problems for checks and timing, their inputs, and the command line.
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <string>

#include "rung/core/require.hpp"
#include "rung/core/tensor.hpp"
#include "rung/harness/any_operator.hpp"
#include "rung/harness/option_effect.hpp"
#include "rung/harness/problem_writer.hpp"
#include "rung/ops/optimizer/op/optimizer.hpp"

namespace rung {
namespace {

/// Returns a second moment: non-negative, sometimes 0.
double second_moments(std::int64_t index, double uniform) {
  return index % 11 == 0 ? 0 : uniform * uniform;
}

constexpr std::string_view survey_patterns[] = {
    "(f32*3|f64) 1..67108864(|,momentum=0.9|,momentum=0.9,nesterov|,adam,step=7)(*2|,decay=0.01)",
    "(bf16*2|f16) 1..67108864(,momentum=0.9|,adam,step=7,decay=0.01,decoupled)(,master*2|)",
    "(f32*2|bf16) 1..8192x1..8192(,momentum=0.9|,adam),clip=1",
};
const Survey<Optimizer> survey{survey_patterns};

}  // namespace

std::vector<Problem> Optimizer::check_problems(Backend backend) {
  std::vector<Problem> problems = Problem::parse_all({
      "f32 0",                                        // no parameters
      "f32 0,clip=1,norm",                            //
      "f32 1",                                        //
      "f32 1037",                                     // plain
      "f32 7x67,decay=0.01",                          //
      "f32 7x67,momentum=0.9",                        //
      "f32 1037,momentum=0.9,nesterov,decay=0.01",    //
      "f32 5x3x41,momentum=0.9,decay=0.1,decoupled",  //
      "f32 1037,adam",                             // the first step, where bias correction matters
      "f32 7x67,adam,step=100,decay=0.01",         //
      "f32 1037,adam,step=3,decay=0.1,decoupled",  // AdamW
      "f32 1037,clip=1",                           // clipped
      "f32 9x130,clip=1000,norm,momentum=0.5",     // not clipped
      "f32 3001,clip=0.5,norm,adam",               //
      "f64 7x67,momentum=0.9,nesterov",            // every type
      "f64 1037,adam,step=5,clip=1,norm",          //
      "f16 7x67,momentum=0.9",                     //
      "f16 1037,momentum=0.9,master",              //
      "f16 1037,adam,master,clip=1",               //
      "bf16 7x67,decay=0.01",                      //
      "bf16 1037,momentum=0.9,nesterov,master,decay=0.01",  //
      "bf16 7x67,adam,step=9,decay=0.1,decoupled,master",   //
      "bf16 1037,adam,clip=1,norm",                         //
  });
  if (backend == Backend::simt) return problems;
  for (const char* larger : {"f32 300001,adam,clip=1,norm", "f32 300x1003,momentum=0.9,clip=1"}) {
    problems.push_back(Problem::parse(larger));
  }
  return problems;
}

std::vector<Problem> Optimizer::bench_problems(Backend backend) {
  switch (backend) {
    case Backend::cpu:
    case Backend::opencl:
      return Problem::parse_all({"f32 65536,momentum=0.9", "f32 8388608,momentum=0.9",
                                 "f32 8388608,adam,decay=0.01,decoupled"});
    case Backend::cuda:
      return Problem::parse_all({"f32 67108864,momentum=0.9",
                                 "f32 67108864,adam,decay=0.01,decoupled",
                                 "bf16 67108864,adam,decay=0.01,decoupled,master,clip=1"});
    case Backend::simt:
      return Problem::parse_all({"f32 4096,momentum=0.9", "f32 4096,adam"});
  }
  return {};
}

Optimizer::Call Optimizer::make(const Problem& problem, Inputs& inputs) {
  problem.expect(
      name, problem.extents.size(),
      {"adam", "momentum", "nesterov", "decay", "decoupled", "step", "clip", "master", "norm"});
  const Extents shape{std::span<const std::int64_t>(problem.extents)};
  const DType wide = problem.dtype == DType::f64 ? DType::f64 : DType::f32;
  Call call;
  OptimizerOptions& o = call.options;
  o.kind = problem.has("adam") ? OptimizerKind::adam : OptimizerKind::sgd;
  o.learning_rate = 0.0625;
  o.momentum = problem.number("momentum", 0);
  o.nesterov = problem.has("nesterov");
  o.weight_decay = problem.number("decay", 0);
  o.decoupled = problem.has("decoupled");
  o.step = static_cast<int>(problem.integer("step", 1, {1, INT32_MAX}));
  o.max_norm = problem.number("clip", 0);
  const bool adam = o.kind == OptimizerKind::adam;
  const bool has_master = problem.has("master");
  call.parameters = has_master ? inputs.output("parameters", problem.dtype, shape)
                               : inputs.in_out("parameters", problem.dtype, shape);
  call.gradients = inputs.input("gradients", problem.dtype, shape);
  if (adam || o.momentum != 0) o.first_moment = inputs.in_out("first_moment", wide, shape);
  if (adam) o.second_moment = inputs.in_out("second_moment", wide, shape, second_moments);
  if (has_master) o.master = inputs.in_out("master", wide, shape);
  if (problem.has("norm")) o.norm = inputs.output("norm", wide, {});
  return call;
}

Problem Optimizer::describe(const Call& call) {
  const OptimizerOptions& o = call.options;
  return ProblemWriter(call.parameters.dtype, call.parameters.shape)
      .flag("adam", o.kind == OptimizerKind::adam)
      .number("momentum", o.momentum, 0)
      .flag("nesterov", o.nesterov)
      .number("decay", o.weight_decay, 0)
      .flag("decoupled", o.decoupled)
      .integer("step", o.step, 1)
      .number("clip", o.max_norm, 0)
      .flag("master", is_given(o.master))
      .flag("norm", is_given(o.norm))
      .problem();
}

std::span<const ArgumentSpec> Optimizer::arguments() {
  using Kind = ArgumentSpec::Kind;
  static constexpr std::array<ArgumentSpec, 8> specs{{
      {"parameters", Kind::tensor, true, "what is to be stepped"},
      {"gradients", Kind::tensor, true, "of the same shape"},
      {"kind", Kind::text, false, "default sgd; moments are 0", "sgd|adam"},
      {"rate", Kind::number, false, "learning rate; default 0.001"},
      {"decay", Kind::number, false, "weight decay"},
      {"decoupled", Kind::flag, false, "decay apart from the gradient (AdamW)"},
      {"step", Kind::number, false, "of adam, from 1 on; default 1"},
      {"max-norm", Kind::number, false, "clips the gradients' norm"},
  }};
  return specs;
}

void Optimizer::invoke(Context& context, Invocation& call, Pick pick) {
  const ConstTensorRef parameters = call.tensors.at("parameters");
  OptimizerOptions options;
  expect_effect(name, call, "kind", call.text("kind", "sgd"), {{"step", "adam"}});
  if (call.has("decoupled") && !call.has("decay")) {
    reject(name,
           "--decoupled is given and has no effect without a weight decay; accepted: with "
           "--decay");
  }
  if (call.text("kind", "sgd") == "adam") options.kind = OptimizerKind::adam;
  options.learning_rate = call.number("rate", 1e-3);
  options.weight_decay = call.number("decay", 0);
  options.decoupled = call.has("decoupled");
  options.step = static_cast<int>(call.integer(name, "step", 1, {1, INT32_MAX}));
  options.max_norm = call.number("max-norm", 0);
  const DType wide = parameters.dtype == DType::f64 ? DType::f64 : DType::f32;
  call.result = Tensor(parameters.dtype, parameters.shape, context.device());
  copy(parameters, call.result);
  Tensor first;
  Tensor second;
  if (options.kind == OptimizerKind::adam) {
    const Tensor zeros(wide, parameters.shape);
    std::memset(zeros.ref().data, 0, static_cast<std::size_t>(zeros.ref().size()) * size_of(wide));
    first = Tensor(wide, parameters.shape, context.device());
    second = Tensor(wide, parameters.shape, context.device());
    copy(zeros, first);
    copy(zeros, second);
    options.first_moment = first;
    options.second_moment = second;
  }
  optimizer(context, call.result, call.tensors.at("gradients"), options, pick);
  context.synchronize();  // before the moments are freed
}

}  // namespace rung
