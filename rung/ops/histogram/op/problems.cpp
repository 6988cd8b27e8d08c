// SPDX-License-Identifier: Apache-2.0
// histogram: problems for checks and timing, their inputs, and the command line.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"
#include "rung/harness/problem_pattern.hpp"
#include "rung/harness/problem_writer.hpp"
#include "rung/ops/histogram/op/bins.hpp"

namespace rung {
namespace {

/// Returns a maker of the values that a problem names, over the range of its bins.
ValueMaker maker(const Problem& problem, double low, double high, std::int64_t size) {
  const double width = high - low;
  // Integers: `high` itself is outside, but rounding would produce it.
  const bool whole = !is_floating(problem.dtype);
  const auto inside = [=](double t) {
    const double value = low + t * width;
    return whole ? std::min(std::floor(value), high - 1) : value;
  };
  const double hot = inside(0.6180339887);
  if (problem.has("uniform")) return [=](std::int64_t, double u) { return inside(u); };
  if (problem.has("one")) return [=](std::int64_t, double) { return hot; };
  if (problem.has("skew")) {
    return [=](std::int64_t, double u) { return u < 0.9 ? hot : inside(10 * (u - 0.9)); };
  }
  if (problem.has("sorted")) {
    return [=](std::int64_t i, double) {
      return inside(static_cast<double>(i) / static_cast<double>(size));
    };
  }
  if (problem.has("outside")) {  // a quarter below, a quarter above, and the edges themselves
    return [=](std::int64_t i, double u) {
      if (i % 16 == 0) return high;
      if (i % 16 == 1) return low;
      const double value = low + (2 * u - 0.5) * width;
      return whole ? std::floor(value) : value;
    };
  }
  if (problem.has("nan")) {
    return [=](std::int64_t i, double u) {
      constexpr double infinity = std::numeric_limits<double>::infinity();
      if (i % 3 == 0) return std::numeric_limits<double>::quiet_NaN();
      if (i % 7 == 0) return i % 2 == 0 ? infinity : -infinity;
      return inside(u);
    };
  }
  return {};
}

// Bytes and wider integers; reals in few and in many bins; given edges; values of every
// distribution.
constexpr std::string_view survey_patterns[] = {
    "u8 1..134217728(*2|,uniform|,skew|,one|,sorted)",
    "(u8|u16|i32|i64) 1..33554432,bins=1..65536(|,uniform|,skew|,one|,sorted)(*3|,accumulate)",
    "(f32*3|bf16|f16|f64) 1..33554432,bins=1..4096(*2|,uniform|,skew|,one|,sorted|,outside|,nan)",
    "(f32*3|f64) 1..33554432,bins=4096..1048576(*2|,uniform|,skew|,one|,sorted)(*3|,wide)",
    "(f32*2|bf16|f64|i32) 1..16777216,bins=1..16384,edges(*2|,uniform|,skew|,sorted)",
};
const Survey<Histogram> survey{survey_patterns};

}  // namespace

std::vector<Problem> Histogram::check_problems(Backend backend) {
  // Empty, one element, tails around every vector and tile; numbers of bins around every table's
  // limit; every type; every distribution that might be slow or wrong in a rung.
  std::vector<Problem> problems = Problem::parse_all({
      "u8 0",
      "f32 3x0x2,bins=5,accumulate",
      "u8 1",
      "u8 37x29",
      "u8 5000,uniform",
      "u8 4099,one,wide",
      "u8 7x11x13,sorted",
      "u8 3001,bins=4,low=65,high=85,outside",
      "u8 2048,bins=100,low=3,high=243,accumulate",
      "u8 999,bins=3,edges,wide",
      "u16 3000,bins=65536,uniform",
      "u16 2500,bins=300,low=100,high=60000,skew",
      "i32 2100,bins=17,low=-100,high=103,outside",
      "i32 1500,bins=1000,low=-2147483648,high=2147483648",
      "i64 33x31,bins=20,edges",
      "i64 700,bins=9,low=-9000000000,high=-8999999000,uniform",
      "f32 1,bins=1",
      "f32 61x67,bins=256",
      "f32 4096,bins=10,nan",
      "f32 3000,bins=1024,outside,accumulate",
      "f32 2000,bins=700,skew",
      "f32 2222,bins=5000,sorted,wide",
      "f32 1800,bins=60000,uniform",
      "f32 1700,bins=13,edges,outside",
      "f64 1501,bins=100,outside",
      "f64 900,bins=7,edges,nan",
      "f16 41x50,bins=33",
      "f16 1025,bins=2000,edges",
      "bf16 2049,bins=64,one",
      "bf16 1000,bins=3000,uniform",
      "u8 50x1001,uniform",
      "f32 20001,bins=100",
  });
  if (backend != Backend::cpu) {
    // Bins for a cluster's table, and more than fit any table in shared memory.
    const std::vector<Problem> many_bins = Problem::parse_all({
        "f32 500,bins=300000,sorted",
        "f32 600,bins=500000,skew",
        "f32 700,bins=500000,low=-400000,high=400000",
    });
    problems.insert(problems.end(), many_bins.begin(), many_bins.end());
  }
  if (backend == Backend::simt) return problems;
  // Random ranges whose ends are not representable as floats and whose scale rounds.
  Random random(31);
  for (int i = 0; i < 5; ++i) {
    problems.push_back(
        Problem::parse(draw_text("f32 200000,bins=2..5001,low=-4.0..3.0,high=3.25..8.0", random)));
  }
  // Larger than one chunk of the rungs that sample, buffer or divide work among threads.
  const std::vector<Problem> larger = Problem::parse_all({
      "u8 300007,skew",
      "u8 700x501",
      "u8 200001,uniform,accumulate",
      "u16 100003",
      "f32 150001,bins=1000",
      "f32 100000,bins=1000000,sorted",
      "bf16 70001,bins=300,skew",
  });
  problems.insert(problems.end(), larger.begin(), larger.end());
  return problems;
}

std::vector<Problem> Histogram::bench_problems(Backend backend) {
  switch (backend) {
    case Backend::cpu:
    case Backend::opencl:
      return Problem::parse_all({"u8 268435456,uniform", "u8 268435456,skew", "u8 268435456,one",
                                 "u8 268435456,sorted", "f32 67108864,bins=1024"});
    case Backend::cuda:
      return Problem::parse_all(
          {"u8 1073741824", "u8 268435456,uniform", "u8 268435456,one", "u8 268435456,skew",
           "u8 268435456,sorted", "f32 268435456,bins=256", "f32 268435456,bins=1024",
           "f32 268435456,bins=4096", "f32 268435456,bins=16384", "f32 268435456,bins=50000",
           "f32 268435456,bins=1000000", "bf16 536870912,bins=1024"});
    case Backend::simt:
      return Problem::parse_all({"u8 65536,uniform", "f32 65536,bins=1024", "u16 65536"});
  }
  return {};
}

Histogram::Call Histogram::make(const Problem& problem, Inputs& inputs) {
  if (problem.extents.empty()) problem.expect(name, 1, {});
  problem.expect(name, problem.extents.size(),
                 {"bins", "low", "high", "edges", "accumulate", "wide", "uniform", "one", "skew",
                  "sorted", "outside", "nan"});
  const std::int64_t bins = problem.integer("bins", 256, Problem::count);
  const bool whole = !is_floating(problem.dtype);
  Call call;
  call.low = problem.number("low", whole ? 0 : -4);
  call.high = problem.number("high", whole ? static_cast<double>(bins) : 4);
  call.accumulate = problem.has("accumulate");
  const Extents shape{std::span<const std::int64_t>(problem.extents)};
  ValueMaker values = maker(problem, call.low, call.high, shape.product());
  call.x = values ? inputs.input("x", problem.dtype, shape, std::move(values))
                  : inputs.input("x", problem.dtype, shape);
  if (problem.has("edges")) {
    // Narrow bins at the lower end, and sometimes two equal edges.
    const double low = call.low;
    const double width = call.high - low;
    call.edges = inputs.input(
        "edges", key_dtype(problem.dtype), Extents{bins + 1}, [=](std::int64_t i, double) {
          const double t = static_cast<double>(i - i % 5 / 4) / static_cast<double>(bins);
          return low + (whole ? std::floor(t * t * width) : t * t * width);
        });
    call.low = call.high = 0;
  }
  const DType type = problem.has("wide") ? DType::i64 : DType::i32;
  call.counts = call.accumulate ? inputs.in_out("counts", type, Extents{bins})
                                : inputs.output("counts", type, Extents{bins});
  return call;
}

Problem Histogram::describe(const Call& call) {
  const std::int64_t bins = call.counts.shape[0];
  const bool whole = !is_floating(call.x.dtype);
  const double default_low = whole ? 0 : -4;
  const double default_high = whole ? static_cast<double>(bins) : 4;
  double low = call.low;
  double high = call.high;
  if (is_given(call.edges)) {
    low = default_low;
    high = default_high;
  } else if (low == high) {  // one integer per bin
    low = 0;
    high = static_cast<double>(bins);
  }
  return ProblemWriter(call.x.dtype, call.x.shape)
      .integer("bins", bins, 256)
      .number("low", low, default_low)
      .number("high", high, default_high)
      .flag("edges", is_given(call.edges))
      .flag("accumulate", call.accumulate)
      .flag("wide", call.counts.dtype == DType::i64)
      .problem();
}

std::span<const ArgumentSpec> Histogram::arguments() {
  using Kind = ArgumentSpec::Kind;
  static constexpr std::array<ArgumentSpec, 6> specs{{
      {"x", Kind::tensor, true, "the values, of any shape"},
      {"bins", Kind::number, false, "how many; default 256, or what --edges say"},
      {"low", Kind::number, false, "lower end of the range; default 0"},
      {"high", Kind::number, false, "upper end; default: low + bins"},
      {"edges", Kind::tensor, false, "bins + 1 ascending edges instead of a range"},
      {"out", Kind::text, false, "the type of the counts; default i64", "i32|i64"},
  }};
  return specs;
}

void Histogram::invoke(Context& context, Invocation& call, Pick pick) {
  const bool has_edges = call.has("edges");
  const ConstTensorRef x = call.tensors.at("x");
  HistogramOptions options;
  std::int64_t usual = 256;
  if (has_edges) {
    options.edges = call.tensors.at("edges");
    usual = options.edges.size() - 1;
  }
  const std::int64_t bins = call.integer(name, "bins", usual, {1, std::int64_t{1} << 30});
  options.low = call.number("low", 0);
  options.high = call.number("high", has_edges ? 0 : options.low + static_cast<double>(bins));
  const DType type = parse_dtype(call.text("out", "i64"));
  call.result = Tensor(type, Extents{bins}, context.device());
  histogram(context, x, call.result, options, pick);
}

}  // namespace rung
