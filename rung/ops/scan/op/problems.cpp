// SPDX-License-Identifier: Apache-2.0
// scan: problems for checks and timing, their inputs, and the command line.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"
#include "rung/harness/problem_words.hpp"
#include "rung/harness/problem_writer.hpp"
#include "rung/ops/scan/op/scan.hpp"

namespace rung {
namespace {

constexpr std::pair<std::string_view, ScanOperation> operations[] = {
    {"sum", ScanOperation::sum},
    {"product", ScanOperation::product},
    {"min", ScanOperation::min},
    {"max", ScanOperation::max}};

/// Returns a factor near 1, of either sign: products of thousands neither overflow nor underflow.
double factor(std::int64_t index, double uniform) {
  const double size = std::exp2((uniform - 0.5) / 8);
  return index % 3 == 0 ? -size : size;
}

/// Returns a maker of numbers with rare infinities and NaN, placed late, so that results before and
/// after them are checked: an infinity after a quarter, in every other tensor the opposite one
/// after it, NaN in the middle.
ValueMaker with_nan(const Extents& shape, bool factors, Values values) {
  const std::int64_t quarter = shape.product() / 4 + 1;
  const bool whole = values == Values::integers;  // sums of integers must agree in every bit
  return [=](std::int64_t index, double uniform) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (index == quarter) return infinity;
    if (index == quarter + quarter / 2 && uniform < 0.5) return -infinity;
    if (index == 2 * quarter) return std::numeric_limits<double>::quiet_NaN();
    if (factors) return factor(index, uniform);
    return whole ? std::floor(uniform * 9) - 4 : uniform * 200 - 100;
  };
}

// One line; few long and many short lines; axes that are not the last; segments.
constexpr std::string_view survey_patterns[] = {
    "(f32*3|bf16|f16|f64|i32|u8) 1..67108864(*2|,max|,product)(*2|,exclusive)(*2|,reverse)",
    "(f32*3|bf16|f16|f64|i32) 1..16777216x1..16777216(*2|,max)(*2|,exclusive)(*3|,reverse)",
    "(f32*3|bf16|f16|f64|i32) 1..16777216x1..16777216,axis=0(*2|,max)(*2|,exclusive)",
    "(f32*2|bf16|f64|u8) 1..4096x1..4096x1..4096,axis=(0|1|2)(*2|,min)(*3|,reverse)",
    "(f32*2|bf16|i32) 1..33554432,segments=1..1048576(*2|,exclusive)(|,offsets=i32)",
    "(f32*2|bf16|i64|i8) 1..33554432(*2|,exclusive),in_place",
};
const Survey<Scan> survey{survey_patterns};

}  // namespace

std::vector<Problem> Scan::check_problems(Backend backend) {
  // Lengths around vectors, warps and blocks; every type; every operation, forward and reversed,
  // inclusive and exclusive; axes that are not the last; segments of every size.
  std::vector<Problem> problems = Problem::parse_all({
      "f32 0",                                 // empty
      "f32 3x0x2,axis=0",                      // no elements in each line
      "f32 1",                                 //
      "f32 31,exclusive",                      // less than a warp and than two vectors
      "f32 33",                                // slightly more
      "f32 1000",                              // a block
      "f32 1023,reverse",                      //
      "f32 4097,exclusive",                    // a tile and one element
      "f32 40000",                             // many tiles
      "f32 40001,exclusive,reverse,in_place",  //
      "f32 7x300",                             // lines
      "f32 5x2049,in_place",                   //
      "f32 130x37,axis=0",                     // across lines
      "f32 3x50x4,axis=1,reverse,exclusive",   //
      "f32 2x3x4x5x6,axis=-3",                 //
      "f32 900,product",                       //
      "f32 2x1500,min,nan",                    //
      "f32 5000,max,nan,exclusive",            //
      "f32 900,nan",                           // sums, too, with infinities and NaN
      "f32 9000,nan,reverse,exclusive",        //
      "f32 3x700,product,nan",                 //
      "f32 60x50,axis=0,nan",                  //
      "f32 800,nan,segments=37",               //
      "f32 300,segments=90",                   // shorter than a vector
      "f32 20000,segments=13",                 // longer than a chunk's share
      "f32 9000,exclusive,reverse,segments=400,offsets=i32,max",
      "f32 60x33,axis=0,segments=45",  //
      "f32 700x9",                     // many short lines
      "u8 300x33,reverse",             //
      "bf16 77x31,exclusive,max",      //
      "i64 900x2,in_place",            //
      "f64 40x100,min,nan",            //
      "f16 29x128,exclusive,reverse",  //
      "u16 64x7,product",              //
      "f32 600x70,axis=0,exclusive",   // longer than a panel's step
      "f32 3x17000",                   // longer than a block's step
      "bf16 300x140,axis=0",           //
      "u8 520x20,axis=0,segments=9,max",
      "f64 1",                       //
      "f64 5003",                    //
      "f64 3x700,min,exclusive",     //
      "f64 700,product,segments=9",  //
      "f64 64,nan",                  //
      "f16 1030",                    //
      "f16 9001,reverse",            //
      "f16 2x1025,max,nan",          //
      "f16 1500,nan",                //
      "f16 40x10,axis=0,exclusive",  //
      "bf16 1027,exclusive",         //
      "bf16 20011",                  //
      "bf16 600,product",            //
      "bf16 2100,nan,in_place",      //
      "bf16 3000,segments=50",       //
      "i32 1021",                    //
      "i32 10007,exclusive",         //
      "i32 4x999,max",               //
      "i32 500,product,segments=3",  //
      "i64 1025",                    //
      "i64 6001,min,reverse",        //
      "i64 900,product,exclusive",   //
      "u8 1000",                     //
      "u8 50021",                    //
      "u8 3x4099,exclusive",         //
      "u8 2500,max,segments=30",     //
      "u8 700,product",              //
      "u8 90x70,axis=0,min",         //
      "i8 3001,min",                 //
      "i8 2000,exclusive,in_place",  //
      "u16 5001",                    //
      "u16 2001,max,exclusive",      //
  });
  if (backend == Backend::simt) return problems;
  // Several chunks for each thread, and many lines.
  const std::vector<Problem> larger = Problem::parse_all({
      "f32 300000",
      "f32 300001,exclusive,in_place",
      "f32 250001,nan",
      "f32 200000,reverse",
      "f32 250000,segments=100",
      "f32 3000x40",
      "f32 600x130,axis=0",
      "f32 70x9x300,axis=1,max",
      "f64 150001,exclusive",
      "bf16 300007",
      "u8 1000003",
      "i32 400001,min",
      "u16 500000,segments=20000",
      "i64 100003",
  });
  problems.insert(problems.end(), larger.begin(), larger.end());
  return problems;
}

std::vector<Problem> Scan::bench_problems(Backend backend) {
  switch (backend) {
    case Backend::cpu:
    case Backend::opencl:
      return Problem::parse_all({"f32 134217728", "f32 4194304", "f32 131072", "f32 4096",
                                 "u8 134217728", "bf16 134217728", "f32 4096x4096",
                                 "f32 4096x4096,axis=0"});
    case Backend::cuda:
      return Problem::parse_all({"f32 268435456", "f32 1073741824", "f32 65536", "f32 1048576",
                                 "f32 4194304", "f32 16777216", "f64 268435456", "i32 1073741824",
                                 "f16 1073741824", "bf16 536870912", "u8 1073741824",
                                 "f32 65536x4096", "f32 16384x16384,axis=0",
                                 "f32 268435456,segments=1000000"});
    case Backend::simt:
      return Problem::parse_all(
          {"f32 20x1024", "f32 20000", "u8 20000", "f32 4000x32,axis=0", "f32 2000x9"});
  }
  return {};
}

Scan::Call Scan::make(const Problem& problem, Inputs& inputs) {
  problem.expect(name, problem.extents.size(),
                 {"sum", "product", "min", "max", "axis", "exclusive", "reverse", "segments",
                  "offsets", "in_place", "nan"});
  const Extents shape{std::span<const std::int64_t>(problem.extents)};
  Call call;
  expect_one_of(name, problem, operations, [](const auto& one) { return one.first; });
  for (const auto& [text, operation] : operations) {
    if (problem.has(text)) call.operation = operation;
  }
  call.axis = require_axis(name, problem.integer("axis", -1, Problem::axis), shape.rank);
  call.exclusive = problem.has("exclusive");
  call.reverse = problem.has("reverse");

  const bool factors = call.operation == ScanOperation::product && is_floating(problem.dtype);
  ValueMaker maker;
  if (factors) maker = factor;
  if (problem.has("nan")) {
    if (!is_floating(problem.dtype)) {
      reject(name, fmt::format("nan: {} has none", to_string(problem.dtype)));
    }
    maker = with_nan(shape, factors, inputs.variant().values);
  }
  const auto read = [&] {
    return maker ? inputs.input("x", problem.dtype, shape, maker)
                 : inputs.input("x", problem.dtype, shape);
  };
  if (problem.has("in_place")) {
    call.y = maker ? inputs.in_out("y", problem.dtype, shape, maker)
                   : inputs.in_out("y", problem.dtype, shape);
    call.x = call.y;
  } else {
    call.x = read();
    call.y = inputs.output("y", problem.dtype, shape);
  }
  if (problem.has("segments")) {
    // One start in each of `segments` equal parts of the axis, so ascending; the last offset is the
    // length, as in CSR.
    const std::int64_t count = problem.integer("segments", 1, Problem::count);
    const auto length = static_cast<double>(shape[call.axis]);
    const DType type = parse_dtype(problem.text("offsets", "i64"));
    call.offsets = inputs.input("offsets", type, Extents{count + 1},
                                [count, length](std::int64_t index, double uniform) {
                                  if (index == 0) return 0.0;
                                  if (index == count) return length;
                                  return std::floor((static_cast<double>(index) + uniform) *
                                                    length / static_cast<double>(count));
                                });
  }
  return call;
}

Problem Scan::describe(const Call& call) {
  const bool segmented = is_given(call.offsets);
  const int last = call.x.rank() - 1;
  return ProblemWriter(call.x.dtype, call.x.shape)
      .word(operations, call.operation, ScanOperation::sum)
      .integer("axis", call.axis < 0 ? call.axis + last + 1 : call.axis, last)
      .flag("exclusive", call.exclusive)
      .flag("reverse", call.reverse)
      .integer("segments", segmented ? std::max<std::int64_t>(call.offsets.shape[0] - 1, 0) : -1,
               -1)
      .dtype("offsets", segmented ? call.offsets.dtype : DType::i64, DType::i64)
      .flag("in_place", shares_data(call.y, call.x))
      .problem();
}

std::span<const ArgumentSpec> Scan::arguments() {
  using Kind = ArgumentSpec::Kind;
  static constexpr std::array<ArgumentSpec, 6> specs{{
      {"x", Kind::tensor, true, "what is combined"},
      {"offsets", Kind::tensor, false, "positions along the axis at which a segment begins"},
      {"operation", Kind::text, false, "default sum", "sum|product|min|max"},
      {"axis", Kind::number, false, "along which; default the last"},
      {"exclusive", Kind::flag, false, "leave out the element itself"},
      {"reverse", Kind::flag, false, "from the end"},
  }};
  return specs;
}

void Scan::invoke(Context& context, Invocation& call, Pick pick) {
  ScanOptions options;
  const std::string_view requested = call.text("operation", "sum");
  bool found = false;
  for (const auto& [text, operation] : operations) {
    if (text != requested) continue;
    options.operation = operation;
    found = true;
  }
  if (!found)
    reject(name, fmt::format("operation '{}'; accepted: sum, product, min, max", requested));
  options.axis = static_cast<int>(call.integer(name, "axis", -1, Problem::axis));
  options.exclusive = call.has("exclusive");
  options.reverse = call.has("reverse");
  if (call.has("offsets")) options.offsets = call.tensors.at("offsets");
  const ConstTensorRef x = call.tensors.at("x");
  call.result = Tensor(x.dtype, x.shape, context.device());
  scan(context, x, call.result, options, pick);
}

}  // namespace rung
