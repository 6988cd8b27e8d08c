// SPDX-License-Identifier: Apache-2.0
// loss: problems for checks and benchmarks, their inputs, and the command line.
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <string>

#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"
#include "rung/harness/option_effect.hpp"
#include "rung/harness/problem_writer.hpp"
#include "rung/ops/loss/op/loss.hpp"

namespace rung {
namespace {

constexpr int ignored = -100;

struct Labels {
  std::int64_t classes;
  bool has_ignored;
  bool has_wrong;

  double operator()(std::int64_t index, double uniform) const {
    if (has_ignored && uniform < 0.25) return ignored;
    if (has_wrong && index % 7 == 3) return index % 2 == 0 ? -1 : static_cast<double>(classes);
    return std::fmod(std::floor(uniform * 1e6), static_cast<double>(classes));
  }
};

/// Returns values with a third of the elements masked, and every fifth row (of the last axis)
/// fully.
ValueMaker masked_values(std::int64_t last_extent) {
  return [last_extent](std::int64_t index, double uniform) {
    if (uniform < 1.0 / 3 || index / last_extent % 5 == 2) {
      return -std::numeric_limits<double>::infinity();
    }
    return 12 * uniform - 8;
  };
}

/// Returns the shape without one axis; rank 0 if no axis is left.
Extents across(const Extents& shape, int axis) {
  Extents rest;
  for (int i = 0; i < shape.rank; ++i) {
    if (i != axis) rest[rest.rank++] = shape[i];
  }
  return rest;
}

// Shapes: classifiers with few and many classes, pixel-wise labels, the other kinds of loss.
constexpr std::string_view survey_patterns[] = {
    "(f32*3|bf16*2|f16|f64) 1..1048576x2..1024(*3|,smoothing=0.1|,ignored)",
    "(f32*2|bf16*2|f16) 1..65536x1024..262144(*3|,smoothing=0.1|,ignored|,forward)",
    "(f32*2|bf16|f64) 1..64x2..64x1..512x1..512,axis=1(|,ignored)(|,losses)",
    "(f32*2|bf16|f64) 1..1048576x1..4096,(squared*2|hinge|hinge,margin=0)(*3|,sum)",
    "(f32|bf16) 1..65536x1..65536,in_place(|,smoothing=0.1)(|,labels=i32)",
};
const Survey<Loss> survey{survey_patterns};

}  // namespace

std::vector<Problem> Loss::check_problems(Backend backend) {
  std::vector<Problem> problems = Problem::parse_all({
      "f32 0x4",                 // no rows: the mean of no losses
      "f32 0x4,losses,ignored",  //
      "f32 5",                   // one row, a label of no axes
      "f32 2x5001,smoothing=0.1",
      "bf16 3x9000,ignored",
      "f32 6x1",                                     // one class: zero gradient
      "f32 7x10",                                    // ten classes
      "f32 33x10,losses,ignored,labels=i32",         //
      "f32 200x10,sum",                              // more rows than a block holds
      "f32 300x3,losses",                            // many more rows than a block holds
      "f32 3x5x67,losses,smoothing=0.1",             // a multiple of no vector width
      "f32 9x130,smoothing=1",                       // uniform targets
      "f32 4x300,forward,losses",                    //
      "f32 3x1500,ignored",                          // a row for many threads
      "f32 1x9000,smoothing=0.25",                   // a row for a whole block
      "f32 1x40001,losses",                          // a row that exceeds the registers
      "f32 12x40x5,axis=1,losses",                   // pixel-wise labels
      "f32 37x70,axis=0,ignored",                    //
      "f32 23x64,masked,losses",                     // -inf, including rows of -inf only
      "f32 13x70,masked,smoothing=0.1,losses",       //
      "f32 40x9,wrong,losses",                       // invalid labels
      "f32 40x9,wrong,ignored,losses",               //
      "f32 9x65,in_place",                           //
      "f32 5x1030,in_place,smoothing=0.1",           //
      "f32 17x40,axis=0,in_place",                   //
      "f32 21x10,hinge,losses",                      //
      "f32 21x10,hinge,margin=0",                    // perceptron loss
      "f32 6x515,hinge,margin=0.5,sum,ignored",      //
      "f32 8x9x5,hinge,axis=1,losses,wrong",         //
      "f32 3x2100,hinge,in_place",                   //
      "f32 21x10,squared,losses",                    //
      "f32 3x515,squared,sum",                       //
      "f32 8x9x5,squared,axis=1",                    //
      "f32 3x2100,squared,in_place",                 //
      "f64 11x77,losses",                            // every type
      "f64 5x300,smoothing=0.1,ignored,labels=i32",  //
      "f64 7x31,hinge",                              //
      "f64 7x31,squared,in_place",                   //
      "f16 9x131,losses",                            //
      "f16 21x40,axis=0,smoothing=0.1",              //
      "f16 7x100,squared",                           //
      "bf16 33x10,losses,ignored",                   //
      "bf16 5x2050,smoothing=0.1,in_place",          //
      "bf16 7x100,hinge",                            //
      "bf16 6x90,masked,losses",                     //
  });
  if (backend == Backend::simt) {
    // Rows spread over a cluster.
    const std::vector<Problem> longer = Problem::parse_all({
        "bf16 2x33001,losses,ignored,in_place",
        "f32 2x16400,smoothing=0.1,masked",
        "f16 1x32776,wrong,forward",
    });
    problems.insert(problems.end(), longer.begin(), longer.end());
    return problems;
  }
  const std::vector<Problem> larger = Problem::parse_all({
      "f32 3000x10,losses,ignored",  // more than one chunk
      "f32 500x1023,smoothing=0.1",
      "f32 2x150000,losses",
      "bf16 300x1024",
      "f32 16x21x37x41,axis=1,ignored",
      "f32 3000x70,squared",
  });
  problems.insert(problems.end(), larger.begin(), larger.end());
  if (backend == Backend::cuda) {
    // Enough rows that each cluster loops over several.
    const std::vector<Problem> rounds =
        Problem::parse_all({"f32 1000x16501,losses,smoothing=0.1", "bf16 400x66003,ignored"});
    problems.insert(problems.end(), rounds.begin(), rounds.end());
  }
  return problems;
}

std::vector<Problem> Loss::bench_problems(Backend backend) {
  switch (backend) {
    case Backend::cpu:
    case Backend::opencl:
      return Problem::parse_all({"f32 65536x10", "f32 4096x1000", "bf16 512x32000,smoothing=0.1"});
    case Backend::cuda:
      return Problem::parse_all({"f32 4194304x10", "f32 65536x1024",
                                 "bf16 8192x32000,smoothing=0.1", "f32 65536x1024,squared"});
    case Backend::simt:
      return Problem::parse_all({"f32 256x10", "f32 16x1024"});
  }
  return {};
}

Loss::Call Loss::make(const Problem& problem, Inputs& inputs) {
  problem.expect(name, problem.extents.size(),
                 {"hinge", "squared", "axis", "sum", "smoothing", "margin", "labels", "losses",
                  "forward", "in_place", "ignored", "wrong", "masked"});
  const Extents shape{std::span<const std::int64_t>(problem.extents)};
  Call call;
  LossOptions& options = call.options;
  options.kind = problem.has("squared") ? LossKind::squared
                 : problem.has("hinge") ? LossKind::hinge
                                        : LossKind::cross_entropy;
  options.reduction = problem.has("sum") ? LossReduction::sum : LossReduction::mean;
  options.axis = static_cast<int>(problem.integer("axis", -1, Problem::axis));
  options.smoothing = problem.number("smoothing", 0.0);
  options.margin = problem.number("margin", 1.0);
  if (problem.has("ignored")) options.ignored_label = ignored;
  const int axis = options.axis < 0 ? options.axis + shape.rank : options.axis;
  const bool exists = axis >= 0 && axis < shape.rank;
  const Extents rows = exists ? across(shape, axis) : shape;
  const std::int64_t classes = exists ? shape[axis] : 1;
  const DType wide = problem.dtype == DType::f64 ? DType::f64 : DType::f32;

  ValueMaker maker;
  if (problem.has("masked")) maker = masked_values(shape.rank == 0 ? 1 : shape[shape.rank - 1]);
  const bool in_place = problem.has("in_place");
  if (!in_place) {
    call.x = maker ? inputs.input("x", problem.dtype, shape, maker)
                   : inputs.input("x", problem.dtype, shape);
  }
  if (options.kind == LossKind::squared) {
    call.target = inputs.input("target", problem.dtype, shape);
  } else {
    call.target = inputs.input("target", parse_dtype(problem.text("labels", "i64")), rows,
                               Labels{classes, problem.has("ignored"), problem.has("wrong")});
  }
  call.result = inputs.output("result", wide, {});
  if (problem.has("losses")) options.losses = inputs.output("losses", wide, rows);
  if (in_place) {
    options.dx = inputs.in_out("dx", problem.dtype, shape);
    call.x = options.dx;
  } else if (!problem.has("forward")) {
    options.dx = inputs.output("dx", problem.dtype, shape);
  }
  return call;
}

Problem Loss::describe(const Call& call) {
  const LossOptions& options = call.options;
  const bool in_place = shares_data(options.dx, call.x);
  const bool labeled = options.kind != LossKind::squared;
  return ProblemWriter(call.x.dtype, call.x.shape)
      .flag("hinge", options.kind == LossKind::hinge)
      .flag("squared", options.kind == LossKind::squared)
      .integer("axis", options.axis, -1)
      .flag("sum", options.reduction == LossReduction::sum)
      .number("smoothing", options.smoothing, 0.0)
      .number("margin", options.margin, 1.0)
      .dtype("labels", labeled ? call.target.dtype : DType::i64, DType::i64)
      .flag("losses", is_given(options.losses))
      .flag("forward", !is_given(options.dx))
      .flag("in_place", in_place)
      .flag("ignored", options.ignored_label != no_label)
      .problem();
}

std::span<const ArgumentSpec> Loss::arguments() {
  using Kind = ArgumentSpec::Kind;
  static constexpr std::array<ArgumentSpec, 9> specs{{
      {"x", Kind::tensor, true, "what a model gave"},
      {"target", Kind::tensor, true, "labels, or (squared) what x should be"},
      {"kind", Kind::text, false, "default cross_entropy", "cross_entropy|hinge|squared"},
      {"axis", Kind::number, false, "of the classes: from the front, or the end when negative"},
      {"smoothing", Kind::number, false, "of cross entropy: 0 to 1"},
      {"margin", Kind::number, false, "of hinge; default 1"},
      {"ignored", Kind::number, false, "the label of rows that do not count"},
      {"sum", Kind::flag, false, "the sum, not the mean"},
      {"gradient", Kind::flag, false, "the result is dx, not the loss"},
  }};
  return specs;
}

void Loss::invoke(Context& context, Invocation& call, Pick pick) {
  const ConstTensorRef x = call.tensors.at("x");
  LossOptions options;
  const std::string_view kind = call.text("kind", "cross_entropy");
  expect_effect(name, call, "kind", kind,
                {{"axis", "cross_entropy|hinge"},
                 {"smoothing", "cross_entropy"},
                 {"margin", "hinge"},
                 {"ignored", "cross_entropy|hinge"}});
  options.kind = kind == "squared" ? LossKind::squared
                 : kind == "hinge" ? LossKind::hinge
                                   : LossKind::cross_entropy;
  options.reduction = call.has("sum") ? LossReduction::sum : LossReduction::mean;
  options.axis = static_cast<int>(call.integer(name, "axis", -1, Problem::axis));
  options.smoothing = call.number("smoothing", 0.0);
  options.margin = call.number("margin", 1.0);
  if (call.has("ignored")) {
    options.ignored_label =
        static_cast<int>(call.integer(name, "ignored", 0, {INT_MIN + 1, INT_MAX}));
  }
  const DType wide = x.dtype == DType::f64 ? DType::f64 : DType::f32;
  Tensor result(wide, Extents{1}, context.device());
  if (!call.has("gradient")) {
    loss(context, x, call.tensors.at("target"), result, options, pick);
    call.result = std::move(result);
    return;
  }
  call.result = Tensor(x.dtype, x.shape, context.device());
  options.dx = call.result;
  loss(context, x, call.tensors.at("target"), result, options, pick);
  context.synchronize();  // before `result` is freed
}

}  // namespace rung
