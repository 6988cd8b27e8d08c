// SPDX-License-Identifier: Apache-2.0
// softmax_backward: problems for checks and benchmarks, their inputs, and the command line.
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "rung/harness/any_operator.hpp"
#include "rung/harness/problem_writer.hpp"
#include "rung/ops/softmax_backward/op/softmax_backward.hpp"

namespace rung {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Returns values with one special element in three of four rows: NaN, +infinity or -infinity.
ValueMaker special_values(std::int64_t last_extent, bool whole_numbers) {
  return [last_extent, whole_numbers](std::int64_t index, double uniform) {
    const std::int64_t row = index / last_extent;
    if (index % last_extent == row % last_extent) {
      if (row % 4 == 1) return std::numeric_limits<double>::quiet_NaN();
      if (row % 4 == 2) return infinity;
      if (row % 4 == 3) return -infinity;
    }
    const double value = 4 * uniform - 2;
    return whole_numbers ? std::floor(value) : value;
  };
}

/// Returns a value in the range of log-softmax: at most 0.
double log_value(std::int64_t, double uniform) { return -10 * uniform; }

// Shapes: few long and many short rows; the last and other axes; in place.
constexpr std::string_view survey_patterns[] = {
    "(f32*3|bf16*2|f16|f64) 1..16777216x1..16777216(*2|,log)(*3|,scale=0.125)",
    "(f32*2|bf16*2|f16) 1..16777216x2..64(*2|,log)",
    "(f32*3|bf16|f16|f64) 1..16777216x1..16777216,axis=0(*2|,log)",
    "(f32*2|bf16|f16) 1..4096x1..4096x1..4096,axis=1(*2|,log)",
    "(f32*2|bf16|f16) 1..65536x1..65536(*2|,log)(*2|,in_place)",
    "f32 1..65536x1..65536,out=(bf16|f16)",
};
const Survey<SoftmaxBackward> survey{survey_patterns};

}  // namespace

std::vector<Problem> SoftmaxBackward::check_problems(Backend backend) {
  std::vector<Problem> problems = Problem::parse_all({
      "f32 0x4",                    // no rows
      "f32 4x0",                    // empty rows
      "f32 1",                      // a single element
      "f32 7x33",                   // one lane more than a warp
      "f32 5x1,log",                // rows of one element
      "f32 3x5x67,scale=0.125",     // a multiple of no vector width
      "f32 130x9",                  // more rows than a block holds
      "bf16 900x5",                 // many more rows than a block holds
      "f16 1001x2,log",             // rows within a pack
      "f16 33x515,log",             // rows at unaligned addresses
      "f32 5x300,scale=0.5",        //
      "f32 6x45,log",               //
      "f32 2x1500",                 // a row for many threads
      "f32 1x9000",                 // a row for several blocks
      "bf16 2x16384",               // rows that fill every thread's registers
      "f32 9x40x5,axis=1",          // columns, narrow
      "f32 37x70,axis=0,log",       // columns, wide
      "f32 3x6x5x4,axis=-3",        // rows neither contiguous nor adjacent
      "f32 9x65,in_place",          //
      "f32 17x40,axis=0,in_place",  //
      "f32 12x31,special",          // NaN and infinities
      "f64 5x70",                   //
      "f64 7x31,log",               //
      "f64 21x12,axis=0",           //
      "f32 3x16x9,axis=1",          // rows of 16 and 32: the longest of their kernels
      "bf16 32x40,axis=0",          //
      "f16 6x75",                   //
      "bf16 21x40,axis=0",          //
      "bf16 37x131",                // whole packs and single elements, by 4, 8 and 16 lanes
      "f16 19x299,log",             //
      "bf16 9x511,in_place",        //
      "f16 35x272",                 // whole packs
      "f32 5x75,out=bf16",          //
      "f32 5x75,log,out=f16",       //
  });
  if (backend == Backend::simt) {
    // Few long rows, also adjacent ones, in spans.
    const std::vector<Problem> spans = Problem::parse_all(
        {"f32 1100x5,axis=0", "f16 900x3,axis=0,log", "f32 2x2050,out=bf16", "bf16 1x3001,log",
         // Whole packs, and single elements before and after them.
         "f32 5x1031,special", "bf16 5x2051,log,in_place", "bf16 2x16389"});
    problems.insert(problems.end(), spans.begin(), spans.end());
    return problems;
  }
  // Longer rows than fit on chip or in a cache, and enough of them for every thread.
  const std::vector<Problem> larger = Problem::parse_all({
      "f32 2x150000",
      "f64 2x70000,log",
      "f32 500x1023",
      "f32 3000x70,axis=0",
      "bf16 3x40000",
      "bf16 300x1024",
      "f16 50001x15,axis=0,log",
  });
  problems.insert(problems.end(), larger.begin(), larger.end());
  return problems;
}

std::vector<Problem> SoftmaxBackward::bench_problems(Backend backend) {
  switch (backend) {
    case Backend::cpu:
    case Backend::opencl:
      return Problem::parse_all({"f32 4096x4096", "f32 1024x256", "f32 8x1000000",
                                 "f32 4096x4096,axis=0", "f32 4096x4096,log", "bf16 4096x4096"});
    case Backend::cuda:
      return Problem::parse_all({"f32 65536x1024", "f32 16384x4096", "f32 4096x16384",
                                 "f32 2048x131072", "bf16 65536x1024", "bf16 16384x4096",
                                 "f32 16384x4096,axis=0"});
    case Backend::simt:
      return Problem::parse_all({"f32 64x1024", "f32 1024x64,axis=0"});
  }
  return {};
}

SoftmaxBackward::Call SoftmaxBackward::make(const Problem& problem, Inputs& inputs) {
  problem.expect(name, problem.extents.size(),
                 {"axis", "log", "scale", "out", "in_place", "special"});
  const Extents shape{std::span<const std::int64_t>(problem.extents)};
  Call call;
  call.axis = static_cast<int>(problem.integer("axis", -1, Problem::axis));
  call.log = problem.has("log");
  call.scale = problem.number("scale", 1.0);
  const DType out = problem.has("out") ? parse_dtype(problem.text("out", "")) : problem.dtype;
  ValueMaker maker;
  if (problem.has("special")) {
    // Integer problems compare sums bit by bit, so special values must be integers, too.
    maker = special_values(shape.rank == 0 ? 1 : shape[shape.rank - 1],
                           inputs.variant().values == Values::integers);
  } else if (call.log) {
    maker = log_value;
  }
  call.y = maker ? inputs.input("y", problem.dtype, shape, maker)
                 : inputs.input("y", problem.dtype, shape);
  if (problem.has("in_place")) {
    call.dx = inputs.in_out("dx", problem.dtype, shape);
    call.dy = call.dx;
  } else {
    call.dy = inputs.input("dy", problem.dtype, shape);
    call.dx = inputs.output("dx", out, shape);
  }
  return call;
}

Problem SoftmaxBackward::describe(const Call& call) {
  return ProblemWriter(call.y.dtype, call.y.shape)
      .integer("axis", call.axis, -1)
      .flag("log", call.log)
      .number("scale", call.scale, 1.0)
      .flag("in_place", shares_data(call.dx, call.dy))
      .dtype("out", call.dx.dtype, call.y.dtype)
      .problem();
}

std::span<const ArgumentSpec> SoftmaxBackward::arguments() {
  using Kind = ArgumentSpec::Kind;
  static constexpr std::array<ArgumentSpec, 6> specs{{
      {"y", Kind::tensor, true, "the result of softmax, called with the same options"},
      {"dy", Kind::tensor, true, "the gradient of y"},
      {"axis", Kind::number, false, "from the front, or the end when negative; default -1"},
      {"scale", Kind::number, false, "factor of x; default 1"},
      {"log", Kind::flag, false, "y is that of log-softmax"},
      {"out", Kind::text, false, "the result's type; default that of y", "f32|f64|f16|bf16"},
  }};
  return specs;
}

void SoftmaxBackward::invoke(Context& context, Invocation& call, Pick pick) {
  const ConstTensorRef y = call.tensors.at("y");
  SoftmaxOptions options;
  options.axis = static_cast<int>(call.integer(name, "axis", -1, Problem::axis));
  options.scale = call.number("scale", 1.0);
  options.log = call.has("log");
  const DType type = call.has("out") ? parse_dtype(call.text("out", "")) : y.dtype;
  call.result = Tensor(type, y.shape, context.device());
  softmax_backward(context, y, call.tensors.at("dy"), call.result, options, pick);
}

}  // namespace rung
