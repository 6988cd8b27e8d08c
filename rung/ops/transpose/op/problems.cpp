// SPDX-License-Identifier: Apache-2.0
// transpose: problems for checks and timing, their inputs, and the command line.
#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

#include "rung/harness/any_operator.hpp"
#include "rung/harness/problem_words.hpp"
#include "rung/harness/problem_writer.hpp"
#include "rung/harness/run_examples.hpp"
#include "rung/ops/transpose/op/transpose.hpp"

namespace rung {
namespace {

/// Returns the axes of a text such as "0213"; the operator checks that they are a permutation.
Extents parse_order(std::string_view text, int rank) {
  Extents order = parse_axis_list(Transpose::name, "order", text);
  for (int i = 0; i < order.rank; ++i) order[i] += order[i] < 0 ? rank : 0;
  return order;
}

/// Returns y's shape; bind() rejects an order that does not fit.
Extents shape_of_y(const Extents& shape, const Extents& order) {
  Extents result = shape;
  if (order.rank == 0 && shape.rank >= 2) {
    std::swap(result[shape.rank - 2], result[shape.rank - 1]);
  }
  for (int axis = 0; axis < std::min(order.rank, shape.rank); ++axis) {
    const bool fits = order[axis] >= 0 && order[axis] < shape.rank;
    if (fits) result[axis] = shape[static_cast<int>(order[axis])];
  }
  return result;
}

// Matrices, narrow ones and vectors; batches; orders that merge axes, and others.
constexpr std::string_view survey_patterns[] = {
    "(f32*3|f16|f64|u8) 1..16777216x1..16777216",
    "(f32*2|f16|f64|u8) 1..16777216x2..8",
    "(f32*2|f16|f64|u8) 2..8x1..16777216",
    "(f32*2|bf16|f64|u8) 1..4096x1..4096x1..4096(*2|,order=102|,order=120|,order=201|,order=210)",
    "(f32*2|f16|i64|u8) 1..256x1..256x1..256x1..256,order=(0213*2|0231|0312|1302|2031|3210|3120)",
};
const Survey<Transpose> survey{survey_patterns};

const RunExample examples[] = {
    {"transpose", "x.npy -o y.npy"},
    {"transpose", "x.npy --order 1,0 -o y.npy", "axis 1 first"},
};

}  // namespace

std::vector<Problem> Transpose::check_problems(Backend backend) {
  // Odd and even sizes around the tiles of each element size, vectors, empty tensors, permutations
  // that merge axes, keep runs together, or leave neither tensor dense along any axis.
  std::vector<Problem> problems = Problem::parse_all({
      "f32 0x5",
      "f32 1x1",
      "f32 1x37",
      "f32 37x1",
      "f32 3x5",
      "f32 32x32",
      "f32 64x128",
      "f32 33x67",
      "f32 129x70",
      "f32 2x40x50",
      "u8 64x64",
      "u8 70x131",
      "i8 3x130x66",
      "u8 50x40x3,order=201",
      "f16 64x96",
      "bf16 67x35",
      "u16 40x7x9,order=102",
      "f64 32x48",
      "i64 35x33",
      "i32 5x6x7x8,order=3120",
      "f64 20x18x2,order=102",
      "f32 12x10x4,order=102",
      "f32 6x5x24,order=102",
      "f32 6x5x7,order=102",
      "f16 4x3x5x2x6,order=41302",
      "e5m2 2x3x4x2x3x2x3x2,order=75316420",
      "f32 3x4x5,order=012",
      "u8 300,order=0",
      "f64 5x16384",
      // Fewer rows or columns than a tile.
      "f32 7x203",
      "f32 203x7",
      "f32 12x50",
      "f64 5x43",
      "f64 43x3",
      "f16 6x100",
      "f16 100x6",
      "u8 5x150",
      "u8 150x5",
      "u8 40x70",
      "f32 9x8x32",
      "f32 5x2x9x7,order=3210",
      "f64 2x14x13,order=210",
  });
  if (backend == Backend::simt) return problems;
  // Matrices larger than one cache block, with work for several threads.
  const std::vector<Problem> larger = Problem::parse_all({
      "f32 1100x300",
      "f32 257x2100",
      "f64 130x1030",
      "f16 300x1090",
      "u8 2x1030x270",
      "f32 100000x3",
      "u8 3x70000",
      "u16 5000x2",
      "i32 4x777",
      "u8 999x4",
      "bf16 3x3x1001,order=021",
      "f32 3000x4x4",
      "f32 40x50x60,order=210",
      "f32 64x12x64x8,order=0213",
      "f32 30x40x64,order=102",
  });
  problems.insert(problems.end(), larger.begin(), larger.end());
  return problems;
}

std::vector<Problem> Transpose::bench_problems(Backend backend) {
  switch (backend) {
    case Backend::cpu:
    case Backend::opencl:
      return Problem::parse_all({"f32 8192x8192", "f32 1024x1024", "f32 8191x8193", "f64 4096x4096",
                                 "f16 8192x8192", "u8 8192x8192", "f32 2048x2048x3,order=201",
                                 "f16 16x1024x16x64,order=0213"});
    case Backend::cuda:
      return Problem::parse_all({"f32 32768x32768", "f32 8192x8192", "f32 32767x32769",
                                 "f64 16384x16384", "f16 32768x32768", "u8 32768x32768",
                                 "f32 8192x8192x3,order=201", "f16 64x4096x16x64,order=0213"});
    case Backend::simt:
      return Problem::parse_all(
          {"f32 128x128", "f16 128x128", "f32 16x16x16x8,order=0213", "f32 1000x3"});
  }
  return {};
}

Transpose::Call Transpose::make(const Problem& problem, Inputs& inputs) {
  problem.expect(name, problem.extents.size(), {"order"});
  const Extents shape{std::span<const std::int64_t>(problem.extents)};
  const Extents order = parse_order(problem.text("order", ""), shape.rank);
  const ConstTensorRef x = inputs.input("x", problem.dtype, shape);
  const TensorRef y = inputs.output("y", problem.dtype, shape_of_y(shape, order));
  return {.x = x, .y = y, .order = order};
}

Problem Transpose::describe(const Call& call) {
  // A scalar becomes one element of rank 1, whose two axes the default order cannot exchange.
  const int rank = call.x.rank();
  return ProblemWriter(call.x.dtype, call.x.shape)
      .axes("order", rank == 0 ? Extents{0} : call.order, rank)
      .problem();
}

std::span<const ArgumentSpec> Transpose::arguments() {
  using Kind = ArgumentSpec::Kind;
  static constexpr std::array<ArgumentSpec, 2> specs{{
      {"x", Kind::tensor, true, "the tensor, up to 8 axes"},
      {"order", Kind::text, false,
       "the axis of x that each axis of the result is, as in 0,2,1,3; default: the last two "
       "exchanged"},
  }};
  return specs;
}

void Transpose::invoke(Context& context, Invocation& call, Pick pick) {
  const ConstTensorRef x = call.tensors.at("x");
  const Extents order = parse_order(call.text("order", ""), x.rank());
  call.result = Tensor(x.dtype, shape_of_y(x.shape, order), context.device());
  transpose(context, x, call.result, {.order = order}, pick);
}

}  // namespace rung
