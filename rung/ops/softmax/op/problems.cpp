// SPDX-License-Identifier: Apache-2.0
// softmax: problems for checks and benchmarks, their inputs, and the command line.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <string>

#include "rung/harness/any_operator.hpp"
#include "rung/harness/problem_writer.hpp"
#include "rung/ops/softmax/op/softmax.hpp"

namespace rung {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Returns values with a third of the elements masked, and every fifth row (of the last axis)
/// fully.
ValueMaker masked_values(std::int64_t last_extent) {
  return [last_extent](std::int64_t index, double uniform) {
    if (uniform < 1.0 / 3 || index / last_extent % 5 == 2) return -infinity;
    return 12 * uniform - 8;
  };
}

/// Returns values with one special element in three of four rows: NaN, +infinity or -infinity.
ValueMaker special_values(std::int64_t last_extent) {
  return [last_extent](std::int64_t index, double uniform) {
    const std::int64_t row = index / last_extent;
    if (index % last_extent == row % last_extent) {
      if (row % 4 == 1) return std::numeric_limits<double>::quiet_NaN();
      if (row % 4 == 2) return infinity;
      if (row % 4 == 3) return -infinity;
    }
    return 4 * uniform - 2;
  };
}

// Shapes: few long and many short rows; the last and other axes; in place.
constexpr std::string_view survey_patterns[] = {
    "(f32*3|bf16*2|f16|f64) 1..16777216x1..16777216(*2|,log)(*3|,scale=0.125)",
    "(f32*2|bf16*2|f16) 1..16777216x2..64(*2|,log)",
    "(f32*3|bf16|f16|f64) 1..16777216x1..16777216,axis=0(*2|,log)",
    "(f32*2|bf16|f16) 1..4096x1..4096x1..4096,axis=1(*2|,log)",
    "(f32*2|bf16|f16) 1..65536x1..65536(*2|,log)(,in_place*2|,masked)",
    "(bf16|f16) 1..65536x1..65536,out=f32",
};
const Survey<Softmax> survey{survey_patterns};

}  // namespace

std::vector<Problem> Softmax::check_problems(Backend backend) {
  std::vector<Problem> problems = Problem::parse_all({
      "f32 0x4",                    // no rows
      "f32 4x0",                    // empty rows
      "f32 1",                      // a single element: 1
      "f32 5x1,log",                // rows of one element: 0
      "f32 7x33",                   // one lane more than a warp
      "f32 3x5x67,scale=0.125",     // a multiple of no vector width
      "f32 4x257,log,scale=3",      //
      "f32 130x9",                  // more rows than a block holds
      "bf16 1100x3,log",            // many more rows than a block holds
      "f16 33x515",                 // rows at unaligned addresses
      "f32 2x1500",                 // a row for many threads
      "f32 1x20001",                // a row for several blocks
      "f32 5x4096,log,masked",      // a row that fills every thread's registers
      "bf16 2x16384",               //
      "f32 12x40x5,axis=1",         // columns, narrow
      "f32 37x70,axis=0,log",       // columns, wide
      "f32 3x6x5x4,axis=-3",        // rows neither contiguous nor adjacent
      "f32 23x64,masked",           // -inf, including rows of -inf only
      "f32 13x70,masked,log",       //
      "f32 8x130,special",          // NaN and +inf
      "f32 16x37,special,log",      //
      "f32 37x16,axis=0,masked",    // masked, across columns
      "f32 9x65,in_place",          //
      "f32 17x40,axis=0,in_place",  //
      "f64 5x77",                   //
      "f64 5x40,log,masked",        //
      "f64 21x12,axis=0",           //
      "f32 3x16x9,axis=1",          // rows of 16 and 32: the longest of their kernels
      "bf16 32x40,axis=0",          //
      "f16 6x131",                  //
      "f16 21x40,axis=0,log",       //
      "f16 5x70,out=f32",           //
      "bf16 9x200,log",             //
      "bf16 300x38",                // rows of pairs of elements, packs cut
      "f16 70x106,log,masked",      //
      "bf16 20x650",                //
      "bf16 40x272",                // short rows of whole packs
      "bf16 37x125",                // whole packs and single elements, by 4, 8 and 16 lanes
      "f16 19x299,log,special",     //
      "bf16 9x511,masked",          //
      "bf16 6x90,masked,out=f32",   //
  });
  if (backend == Backend::simt) {
    // Few long rows, also adjacent ones, in spans.
    const std::vector<Problem> spans = Problem::parse_all(
        {"f32 1100x5,axis=0", "bf16 1x3001,log", "f16 900x3,axis=0,log", "bf16 2x2050,out=f32",
         // Chunks of contiguous planes, which begin and end within packs.
         "f32 700x33,axis=0", "f16 3x177x129,axis=1,log", "f32 25x1023,axis=0",
         // Whole packs, and single elements before and after them.
         "f32 5x1031,log,masked", "f32 5x1031,special", "bf16 5x2051,masked", "f32 1x33001"});
    problems.insert(problems.end(), spans.begin(), spans.end());
    return problems;
  }
  // Longer rows than fit on chip or in a cache, and enough of them for every thread.
  const std::vector<Problem> larger = Problem::parse_all({
      "f32 3x70001",
      "f32 2x150000,log",
      "f32 500x1023",
      "f32 3000x70,axis=0",
      "bf16 3x40000",
      "bf16 300x1024",
      "f16 50001x15,axis=0,log",
      "bf16 5x20001x35,axis=1",
      "bf16 3x200003",
  });
  problems.insert(problems.end(), larger.begin(), larger.end());
  return problems;
}

std::vector<Problem> Softmax::bench_problems(Backend backend) {
  switch (backend) {
    case Backend::cpu:
    case Backend::opencl:
      return Problem::parse_all({"f32 4096x4096", "f32 1024x256", "f32 65536x256", "f32 8x1000000",
                                 "f32 4096x4096,axis=0", "f32 1024x256,log", "bf16 4096x4096"});
    case Backend::cuda:
      return Problem::parse_all({"f32 65536x1024", "f32 16384x4096", "f32 4096x16384",
                                 "f32 8192x32768", "f32 2048x131072", "bf16 65536x1024",
                                 "bf16 16384x4096", "bf16 4096x16384", "bf16 8192x32768",
                                 "bf16 2048x131072", "f32 16384x4096,axis=0"});
    case Backend::simt:
      return Problem::parse_all({"f32 64x1024", "f32 1024x64,axis=0"});
  }
  return {};
}

Softmax::Call Softmax::make(const Problem& problem, Inputs& inputs) {
  problem.expect(name, problem.extents.size(),
                 {"axis", "log", "scale", "out", "in_place", "masked", "special"});
  const Extents shape{std::span<const std::int64_t>(problem.extents)};
  Call call;
  call.axis = static_cast<int>(problem.integer("axis", -1, Problem::axis));
  call.log = problem.has("log");
  call.scale = problem.number("scale", 1.0);
  const DType out = problem.has("out") ? parse_dtype(problem.text("out", "")) : problem.dtype;
  ValueMaker maker;
  const std::int64_t last = shape.rank == 0 ? 1 : shape[shape.rank - 1];
  if (problem.has("masked")) maker = masked_values(last);
  if (problem.has("special")) maker = special_values(last);
  if (problem.has("in_place")) {
    call.y = maker ? inputs.in_out("y", problem.dtype, shape, maker)
                   : inputs.in_out("y", problem.dtype, shape);
    call.x = call.y;
    return call;
  }
  call.x = maker ? inputs.input("x", problem.dtype, shape, maker)
                 : inputs.input("x", problem.dtype, shape);
  call.y = inputs.output("y", out, shape);
  return call;
}

Problem Softmax::describe(const Call& call) {
  return ProblemWriter(call.x.dtype, call.x.shape)
      .integer("axis", call.axis, -1)
      .flag("log", call.log)
      .number("scale", call.scale, 1.0)
      .flag("in_place", shares_data(call.y, call.x))
      .dtype("out", call.y.dtype, call.x.dtype)
      .problem();
}

std::span<const ArgumentSpec> Softmax::arguments() {
  using Kind = ArgumentSpec::Kind;
  static constexpr std::array<ArgumentSpec, 5> specs{{
      {"x", Kind::tensor, true, "x"},
      {"axis", Kind::number, false, "from the front, or the end when negative; default -1"},
      {"scale", Kind::number, false, "factor of x; default 1"},
      {"log", Kind::flag, false, "log-softmax"},
      {"out", Kind::text, false, "the result's type; default that of x", "f32|f64|f16|bf16"},
  }};
  return specs;
}

void Softmax::invoke(Context& context, Invocation& call, Pick pick) {
  const ConstTensorRef x = call.tensors.at("x");
  SoftmaxOptions options;
  options.axis = static_cast<int>(call.integer(name, "axis", -1, Problem::axis));
  options.scale = call.number("scale", 1.0);
  options.log = call.has("log");
  const DType type = call.has("out") ? parse_dtype(call.text("out", "")) : x.dtype;
  call.result = Tensor(type, x.shape, context.device());
  softmax(context, x, call.result, options, pick);
}

}  // namespace rung
