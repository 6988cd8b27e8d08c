// SPDX-License-Identifier: Apache-2.0
// reduce: problems for checks and timing, their inputs, and the command line.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"
#include "rung/harness/problem_words.hpp"
#include "rung/harness/problem_writer.hpp"
#include "rung/harness/run_examples.hpp"
#include "rung/ops/reduce/op/reduce.hpp"

namespace rung {
namespace {

constexpr Reduction operations[] = {Reduction::sum,    Reduction::product, Reduction::min,
                                    Reduction::max,    Reduction::mean,    Reduction::argmin,
                                    Reduction::argmax, Reduction::norm};

Reduction parse_operation(std::string_view text) {
  std::string known;
  for (const Reduction operation : operations) {
    if (to_string(operation) == text) return operation;
    known += (known.empty() ? "" : ", ") + std::string(to_string(operation));
  }
  reject(Reduce::name, fmt::format("operation '{}'; accepted: {}", text, known));
}

/// Returns the shape of y for x's shape.
Extents result_shape(const Extents& x, const Extents& axes, bool keep, std::int64_t segments) {
  Extents shape;
  for (int axis = 0; axis < x.rank; ++axis) {
    bool gone = axes.rank == 0;
    for (int i = 0; i < axes.rank; ++i) {
      gone = gone || (axes[i] < 0 ? axes[i] + x.rank : axes[i]) == axis;
    }
    if (segments >= 0) gone = axis == x.rank - 1;
    if (!gone || keep) shape[shape.rank++] = gone ? 1 : x[axis];
  }
  if (segments < 0) return shape;
  if (!keep) ++shape.rank;
  shape[shape.rank - 1] = segments;
  return shape;
}

/// Returns a maker of factors whose product stays in range: about 1, or powers of two for exact
/// products. Integers are odd, because products with even factors soon become 0.
ValueMaker factors(DType dtype, Values values) {
  if (!is_floating(dtype)) {
    return [](std::int64_t, double uniform) { return std::floor(uniform * 4) * 2 + 1; };
  }
  if (values == Values::integers) {
    return [](std::int64_t, double uniform) {
      return (uniform < 0.5 ? 2 : 0.5) * (std::fmod(uniform, 0.5) < 0.25 ? -1 : 1);
    };
  }
  return [](std::int64_t index, double uniform) {
    const double size = 0.8 + 0.4 * uniform;
    return index % 3 == 0 ? -1 / size : size;
  };
}

/// Returns a maker of numbers, many of them equal, with some infinities and a NaN in one of 61
/// values. Their products are exact as long as they are finite.
ValueMaker with_nan(Reduction operation) {
  const bool powers = operation == Reduction::product;
  return [powers](std::int64_t, double uniform) {
    if (uniform < 1.0 / 61) return std::numeric_limits<double>::quiet_NaN();
    if (uniform > 0.98) return (uniform > 0.99 ? 1 : -1) * std::numeric_limits<double>::infinity();
    const double whole = std::floor(uniform * 32) - 16;
    return powers ? std::copysign(std::exp2(std::fmod(whole, 2)), whole) : whole;
  };
}

// A whole vector; rows and columns, few and long or many and short; the middle axis and the outer
// axes; segments.
constexpr std::string_view survey_patterns[] = {
    "(f32*3|bf16|f16|f64|i32|u8) 1..67108864(*3|,max|,mean|,argmax|,norm)",
    "(f32*3|bf16|f16|f64) 1..16777216x1..16777216,axes=1(*3|,max|,mean|,argmin|,norm)",
    "(f32*3|bf16|f16|f64) 1..16777216x1..16777216,axes=0(*3|,max|,mean|,argmin|,norm)",
    "(i32|i64|u8|u16|i8) 1..16777216x1..16777216,axes=(0|1)(|,max|,min|,argmax|,product)",
    "(f32*2|bf16|f16) 1..4096x1..4096x1..4096,axes=(0|1|2|02|01|12)(*2|,max|,mean)",
    "(f32*2|bf16|i32) 1..16777216,segments=1..1048576(*2|,max|,mean)(|,offsets=i32)",
};
const Survey<Reduce> survey{survey_patterns};

const RunExample examples[] = {
    {"reduce", "x.npy -o y.npy", "the sum of all"},
    {"reduce", "x.npy --operation max --axes 0,1 -o y.npy", "along two axes"},
};

}  // namespace

std::vector<Problem> Reduce::check_problems(Backend backend) {
  std::vector<Problem> problems = Problem::parse_all({
      "f32 0",                         // empty: the identity
      "f32 0,product",                 //
      "f32 0x5,sum,axes=0",            // five empty sums
      "f32 0x5,max,axes=1",            // an empty result
      "f32 1",                         // one term
      "f32 31",                        // less than a warp
      "f32 1000",                      // ragged
      "f32 5000,max",                  // several blocks
      "f32 4099,argmin",               //
      "f64 9000",                      // several blocks on any device
      "f32 9001,argmin,nan,out=i32",   //
      "f32 300,product",               //
      "f32 2500,norm",                 //
      "f32 2049,mean",                 //
      "f32 700,min,nan,segments=3",    // (peers, which lose NaN, do not take these)
      "f16 700,min,nan",               //
      "f32 700,argmax,nan,out=i32",    //
      "f32 700,nan,segments=60",       // few NaN per segment, so that infinities appear in results
      "f32 600,mean,nan,segments=55",  //
      "f32 800,norm,nan,segments=70",  //
      "f32 700,product,nan,segments=60",         //
      "f64 500,norm,nan,segments=45",            //
      "f16 70x9,norm,nan,axes=1",                //
      "f32 80x9,norm,nan,axes=1",                //
      "f32 9x80,nan,axes=0",                     //
      "f32 17x33,axes=1",                        // rows
      "f32 33x70,axes=0",                        // columns
      "f32 37x300,min,axes=1",                   //
      "f32 300x37,argmax,axes=0",                //
      "f32 90x21,argmin,axes=1,nan,out=i32",     //
      "f32 3x26x9,max,axes=02,nan",              //
      "f32 6x5x7x8,min,axes=02,nan",             //
      "f32 5x7x11,axes=02,keepdims",             // several axes
      "f32 6x5x4x3,argmax,axes=13",              //
      "f32 300x70,axes=0",                       // columns in several parts
      "f32 50x3,mean,axes=0",                    // few columns
      "f32 9000x3,axes=0",                       //
      "f32 3x1301,axes=0",                       // few long rows
      "bf16 6x1030,argmax,axes=0",               //
      "f64 2x5x1034,min,axes=1",                 //
      "f16 2x33x1030,axes=1",                    //
      "f32 200x3,norm,axes=1",                   // short rows
      "f64 70x4,argmin,axes=1,nan,out=i32",      //
      "bf16 300x12,axes=1",                      //
      "u8 300x7,max,axes=1",                     //
      "f32 5x40x3,product,axes=2",               //
      "f32 5x2048,axes=1",                       // rows of whole packs
      "f64 3x1034,norm,axes=1",                  //
      "bf16 2x4112,argmax,axes=1",               //
      "i32 2x6184,min,axes=1",                   //
      "f32 900,segments=40",                     // segments
      "f32 3x500,max,segments=150,offsets=i32",  // most of three or four elements, some empty
      "f32 400,argmin,segments=23",              //
      "f32 60,mean,segments=90",                 // many empty
      "f64 3000",                                // every type
      "f64 40x60,min,axes=0",                    //
      "f64 60x40,norm,axes=1",                   //
      "f64 20x30,argmax,axes=0,nan",             //
      "f16 40x50,axes=1,out=f32",                //
      "f16 40x50,axes=0",                        //
      "f16 333,max,nan",                         //
      "bf16 33x45,norm,axes=0",                  //
      "bf16 900,segments=20",                    //
      "bf16 27x31,argmin,axes=1",                //
      "i32 1000",                                //
      "i32 19x50,axes=0,out=i32",                //
      "i32 999,argmin",                          //
      "i64 30x44,axes=1",                        //
      "i64 500,min",                             //
      "i64 50x8,argmax,axes=0",                  //
      "u8 3000",                                 //
      "u8 30x20x3,mean,axes=01",                 //
      "u8 700,out=u8",                           // wraps
      "u8 40x40,max,axes=0",                     //
      "i8 999,product",                          //
      "i8 300,argmax,segments=30",               //
      "u16 800,mean,out=f32",                    //
      "u16 50x12,min,axes=1",                    //
  });
  if (backend == Backend::simt) return problems;
  // Problems with several blocks, chunks and threads.
  const std::vector<Problem> larger = Problem::parse_all({
      "f32 300000",
      "f32 15555",
      "f32 15001,norm",
      "f32 150001,argmax",
      "f32 4x70000,max,axes=1",
      "f32 1500x120,axes=0",
      "f32 70000x3,axes=0",
      "f32 3x200x201,norm,axes=02",
      "f32 5000x9,axes=1",
      "f32 531x2048,axes=1",
      "bf16 530x4096,argmax,axes=1",
      "f64 140000,mean",
      "f16 90000",
      "u8 200000",
      "i64 100000,out=i64",
      "f32 200000,segments=31",
  });
  problems.insert(problems.end(), larger.begin(), larger.end());
  return problems;
}

std::vector<Problem> Reduce::bench_problems(Backend backend) {
  switch (backend) {
    case Backend::cpu:
    case Backend::opencl:
      return Problem::parse_all({"f32 16384", "f32 1048576", "f32 134217728", "f32 16777216,max",
                                 "f32 4096x4096,axes=1", "f32 4096x4096,axes=0"});
    case Backend::cuda:
      return Problem::parse_all({"f32 1048576", "f32 4194304", "f32 268435456", "f32 1073741824",
                                 "f32 16384x16384,axes=1", "f32 16384x16384,axes=0"});
    case Backend::simt:
      return Problem::parse_all({"f32 20000", "f32 40x300,axes=1", "i32 20000", "f32 20000,max"});
  }
  return {};
}

Reduce::Call Reduce::make(const Problem& problem, Inputs& inputs) {
  problem.expect(name, problem.extents.size(),
                 {"sum", "product", "min", "max", "mean", "argmin", "argmax", "norm", "axes",
                  "keepdims", "out", "segments", "offsets", "nan"});
  Call call;
  expect_one_of(name, problem, operations, [](Reduction one) { return to_string(one); });
  for (const Reduction operation : operations) {
    if (problem.has(to_string(operation))) call.operation = operation;
  }
  call.axes = parse_axis_list(name, "axes", problem.text("axes", ""));
  const Extents shape{std::span(problem.extents)};
  const DType out = problem.has("out") ? parse_dtype(problem.text("out", ""))
                                       : reduced_dtype(call.operation, problem.dtype);
  std::int64_t segments = -1;
  if (problem.has("segments")) {
    segments = problem.integer("segments", 0, Problem::count);
    if (shape.rank == 0) reject(name, "segments are of the last axis; x has none");
    // Ascending for any draws, uneven; part of the axis is in no segment.
    const auto length = static_cast<double>(shape[shape.rank - 1]);
    const double step = length / static_cast<double>(std::max<std::int64_t>(segments, 1));
    call.offsets = inputs.input("offsets", parse_dtype(problem.text("offsets", "i64")),
                                Extents{segments + 1}, [=](std::int64_t index, double uniform) {
                                  const double place =
                                      (static_cast<double>(index) + 0.9 * uniform) * step;
                                  return std::floor(std::min(place, length));
                                });
  }
  const Values values = inputs.variant().values;
  if (problem.has("nan")) {
    if (!is_floating(problem.dtype)) {
      reject(name, fmt::format("nan: {} has none", to_string(problem.dtype)));
    }
    call.x = inputs.input("x", problem.dtype, shape, with_nan(call.operation));
  } else if (call.operation == Reduction::product) {
    call.x = inputs.input("x", problem.dtype, shape, factors(problem.dtype, values));
  } else {
    call.x = inputs.input("x", problem.dtype, shape);
  }
  call.y =
      inputs.output("y", out, result_shape(shape, call.axes, problem.has("keepdims"), segments));
  return call;
}

Problem Reduce::describe(const Call& call) {
  const bool segmented = is_given(call.offsets);
  const int rank = call.x.rank();
  return ProblemWriter(call.x.dtype, call.x.shape)
      .flag(to_string(call.operation), call.operation != Reduction::sum)
      .axes("axes", call.axes, rank)
      .flag("keepdims", !segmented && rank != 0 && call.y.rank() == rank)
      .dtype("out", call.y.dtype, reduced_dtype(call.operation, call.x.dtype))
      .integer("segments", segmented ? call.offsets.shape[0] - 1 : -1, -1)
      .dtype("offsets", segmented ? call.offsets.dtype : DType::i64, DType::i64)
      .problem();
}

std::span<const ArgumentSpec> Reduce::arguments() {
  using Kind = ArgumentSpec::Kind;
  static constexpr std::array<ArgumentSpec, 6> specs{{
      {"x", Kind::tensor, true, "what to reduce"},
      {"offsets", Kind::tensor, false, "n + 1 ascending numbers that cut the last axis"},
      {"operation", Kind::text, false, "default sum",
       "sum|product|min|max|mean|argmin|argmax|norm"},
      {"axes", Kind::text, false, "as in 0,2 or -1; default all"},
      {"keepdims", Kind::flag, false, "keep reduced axes with an extent of 1"},
      {"out", Kind::text, false, "the result's type", "f32|f64|f16|bf16|i8|u8|u16|i32|i64"},
  }};
  return specs;
}

void Reduce::invoke(Context& context, Invocation& call, Pick pick) {
  const ConstTensorRef x = call.tensors.at("x");
  ReduceOptions options;
  options.operation = parse_operation(call.text("operation", "sum"));
  options.axes = parse_axis_list(name, "axes", call.text("axes", ""));
  std::int64_t segments = -1;
  if (call.has("offsets")) {
    options.offsets = call.tensors.at("offsets");
    if (options.offsets.rank() != 1 || options.offsets.shape[0] < 1) {
      reject(name, fmt::format("offsets are {}; accepted: n + 1 numbers for n segments",
                               to_string(options.offsets.shape)));
    }
    segments = options.offsets.shape[0] - 1;
  }
  for (int i = 0; i < options.axes.rank; ++i) {
    static_cast<void>(require_axis(name, options.axes[i], x.rank()));
  }
  const DType out = call.has("out") ? parse_dtype(call.text("out", ""))
                                    : reduced_dtype(options.operation, x.dtype);
  call.result = Tensor(out, result_shape(x.shape, options.axes, call.has("keepdims"), segments),
                       context.device());
  reduce(context, x, call.result, options, pick);
}

}  // namespace rung
