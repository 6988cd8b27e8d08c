// SPDX-License-Identifier: Apache-2.0
// Problems on which stencil is checked and timed, their construction, and the command-line syntax.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <string>
#include <string_view>

#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"
#include "rung/harness/problem_writer.hpp"
#include "rung/harness/run_examples.hpp"
#include "rung/ops/stencil/op/stencil.hpp"

namespace rung {
namespace {

/// Parses "3x5" as extents or as an index. The operator validates the rank.
Extents parse_extents(std::string_view option, std::string_view text) {
  Extents extents;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (extents.rank < max_rank) {
    const auto [behind, error] = std::from_chars(at, end, extents[extents.rank]);
    if (error != std::errc()) break;
    ++extents.rank;
    if (behind == end) return extents;
    if (*behind != 'x') break;
    at = behind + 1;
  }
  reject(Stencil::name,
         fmt::format("{} is '{}'; accepted: numbers joined by x, such as 3x5", option, text));
}

constexpr std::string_view edge_names[] = {"zero", "clamp", "mirror", "wrap"};

StencilEdge parse_edge(std::string_view text) {
  const auto found = std::find(std::begin(edge_names), std::end(edge_names), text);
  if (found == std::end(edge_names)) {
    reject(Stencil::name,
           fmt::format("edge is '{}'; accepted: zero, clamp, mirror and wrap", text));
  }
  return static_cast<StencilEdge>(found - std::begin(edge_names));
}

/// Returns weights that keep sums within the range of narrow types, and within f32 over iterations:
/// their absolute values sum to about 1. For u8 their sum is about 0.9, so that some sums are
/// clamped and most are not.
ValueMaker tame_weights(const Problem& problem, std::int64_t taps) {
  const bool positive = problem.dtype == DType::u8;
  return [positive, taps](std::int64_t, double uniform) {
    return (positive ? 3.2 * uniform - 0.7 : 4 * uniform - 2) / static_cast<double>(taps);
  };
}

// Images, lines and volumes of all sizes under masks of all sizes; windows and separable masks;
// iterations; batches of small arrays.
constexpr std::string_view survey_patterns[] = {
    ("(f32*3|u8|f16|bf16|f64) 1..8192x1..8192,mask=(3x3*3|5x5*2|7x7|9x9|1..15x1..15)"
     "(*3|,edge=clamp|,edge=mirror|,edge=wrap)"),
    "(f32*3|u8|bf16|f64) 1..16777216,(mask=(3|5|9|2..31)|window=3..31)(*2|,edge=clamp)",
    ("(f32*3|f16|f64) 1..512x1..512x1..512,mask=(3x3x3*3|5x5x5|1..5x1..5x1..5)"
     "(*2|,edge=mirror)"),
    ("(f32*3|u8|f64) 1..4096x1..4096,(window=3..31x3..31,scale=0.01|mask=3..31x3..31,separable)"
     "(*2|,edge=clamp)"),
    "(f32*2|u8) 1..2048x1..2048,mask=(3x3*2|5x5),iterations=2..20(*2|,edge=clamp)",
    "(f32*2|u8|f64) 1..4096x1..256x1..256,mask=(3x3*2|5x5)(*2|,edge=wrap)",
};
const Survey<Stencil> survey{survey_patterns};

const RunExample examples[] = {
    {"stencil", "x.npy --window 3x3 --scale 0.111 -o y.npy", "the mean of 3 x 3 elements"},
    {"stencil", "x.npy --mask mask.npy --edge clamp -o y.npy", "a mask of your own"},
    {"stencil", "photo.png --window 3x3 --scale 0.111 -o soft.png", "each channel of a picture"},
};

}  // namespace

std::vector<Problem> Stencil::check_problems(Backend backend) {
  std::vector<Problem> problems = Problem::parse_all({
      // Empty tensors, one element, arrays smaller than the mask.
      "f32 0,mask=3",
      "f32 3x0x4,mask=3x3",
      "f32 0x5x5,window=3x3",
      "f32 1,mask=1,edge=clamp",
      "f32 1x1,mask=5x5,edge=wrap",
      "f32 1x1,mask=3x3,edge=mirror",
      "f32 2x3,mask=7x9,edge=mirror",
      "f32 3x2,mask=9x7,edge=wrap",
      "f32 2x2,mask=5x5,edge=clamp",
      "f32 3x3,window=7x7",
      // One axis.
      "f32 16,window=5",
      "f32 37,mask=5",
      "f32 1000,mask=31,edge=mirror",
      "f32 513,window=31,edge=clamp",
      "f32 300,mask=4,edge=wrap,convolution",
      "f32 5x70,mask=7,edge=clamp",
      // Two axes: sizes around tiles, every edge, even masks, anchors, batches.
      "f32 16x16,mask=5x5",
      "f32 33x67,mask=3x3",
      "f32 40x70,mask=5x5,edge=clamp",
      "f32 64x130,mask=9x9,edge=mirror",
      "f32 45x48,mask=5x9,edge=wrap",
      "f32 31x37,mask=4x6",
      "f32 40x140,mask=7x7",
      "bf16 37x133,mask=7x7,edge=mirror",
      "f32 30x260,mask=9x9,edge=wrap",
      "f32 31x37,mask=2x2,edge=wrap,convolution",
      "f32 30x41,mask=3x5,anchor=0x4,edge=clamp",
      "f32 30x41,mask=5x3,anchor=4x0,convolution,scale=-0.5",
      "f32 21x140,mask=1x31",
      "f32 70x21,mask=31x1,edge=mirror",
      "f32 40x40,mask=31x31,edge=wrap",
      "f32 2x3x20x30,mask=3x3,edge=mirror",
      "f32 34x66,window=5x5",
      "f32 34x66,window=4x31,edge=wrap,scale=0.01",
      "f32 50x60,mask=7x5,separable,edge=mirror",
      "f32 50x60,mask=4x9,separable,edge=clamp,convolution",
      // Three axes.
      "f32 6x17x20,mask=3x3x3",
      "f32 9x20x35,mask=3x5x3,edge=clamp",
      "f32 5x9x40,mask=7x3x5,edge=wrap",
      "f32 2x4x8x33,mask=2x3x4,edge=mirror,anchor=0x1x3",
      "f32 7x12x33,window=5x3x7",
      "f32 7x12x33,mask=3x4x5,separable,edge=mirror",
      "f32 6x9x20,mask=1x3x5,separable",
      "f32 3x4x5,mask=9x9x9,edge=mirror",
      // Iterations.
      "f32 40x50,mask=3x3,iterations=2",
      "f32 40x150,mask=3x3,iterations=5",
      "f32 150x300,mask=3x3,iterations=7",
      "f32 90x260,mask=5x5,iterations=4",
      "f32 3x40x133,mask=2x3,iterations=3",
      "f32 33x40,mask=5x3,iterations=3,edge=mirror",
      "f32 100,window=3,iterations=4,scale=0.3,edge=wrap",
      "f32 5x12x20,mask=3x3x3,iterations=2,edge=clamp",
      // Types.
      "f64 30x40,mask=5x5,edge=mirror",
      "f64 5x10x20,mask=3x3x3",
      "f64 30x40,window=9x9",
      "f64 30x40,mask=3x7,separable,iterations=2",
      "f16 33x70,mask=3x3",
      "f16 33x70,mask=5x5,out=f32,edge=wrap",
      "f16 20x30,window=7x3,scale=0.05,iterations=2,edge=clamp",
      "bf16 33x70,mask=5x4,edge=clamp",
      "bf16 6x10x20,mask=3x3x3,out=f32",
      "u8 40x131,mask=3x3",
      "u8 40x131,mask=5x5,edge=mirror,out=f32",
      "u8 3x30x41,window=5x5,scale=0.04,edge=clamp",
      "u8 30x41,mask=3x3,iterations=3,edge=wrap",
      "u8 4x10x20,mask=3x3x3,separable",
  });
  if (backend == Backend::simt) return problems;
  // More than one band of rows, panel of columns or thread block.
  const std::vector<Problem> larger = Problem::parse_all({
      "f32 300x2100,mask=3x3,edge=mirror",
      "f32 150x2100,mask=31x31,edge=wrap",
      "f32 270x530,window=31x31,edge=clamp",
      "f32 500x1500,mask=9x9,separable",
      "f32 100000,mask=7,edge=wrap",
      "f32 200001,window=31",
      "f32 40x60x130,mask=5x5x5,edge=clamp",
      "f32 40x34x70,window=7x7x7,edge=mirror",
      "f32 200x300,mask=5x5,iterations=7,edge=clamp",
      "f64 200x700,mask=7x7,edge=clamp",
      "f16 200x1300,mask=5x5,edge=wrap",
      "u8 480x640,mask=7x7,edge=mirror",
      "f32 700x30x20,mask=3x3,edge=clamp",
  });
  problems.insert(problems.end(), larger.begin(), larger.end());
  return problems;
}

std::vector<Problem> Stencil::bench_problems(Backend backend) {
  switch (backend) {
    case Backend::cpu:
    case Backend::opencl:
      return Problem::parse_all({"f32 4096x4096,mask=3x3", "f32 4096x4096,mask=5x5",
                                 "f32 4096x4096,mask=15x15", "f32 4096x4096,mask=15x15,separable",
                                 "f32 4096x4096,window=31x31", "f32 256x256x256,mask=3x3x3",
                                 "u8 3000x4000,mask=5x5,edge=clamp",
                                 "f32 1024x1024,mask=3x3,iterations=10", "f32 16777216,mask=9"});
    case Backend::cuda:
      return Problem::parse_all({"f32 8192x8192,mask=3x3", "f32 8192x8192,mask=5x5",
                                 "f32 8192x8192,mask=9x9", "f32 8192x8192,mask=15x15",
                                 "f32 8192x8192,mask=31x31", "f32 512x512x512,mask=3x3x3",
                                 "f32 67108864,mask=9", "u8 8192x8192,mask=5x5,edge=clamp",
                                 "f32 8192x8192,mask=3x3,iterations=10"});
    case Backend::simt:
      return Problem::parse_all({"f32 64x64,mask=5x5", "f32 4096,window=5",
                                 "f32 8x32x32,mask=3x3x3", "f32 64x64,mask=3x3,iterations=2"});
  }
  return {};
}

Stencil::Call Stencil::make(const Problem& problem, Inputs& inputs) {
  problem.expect(name, problem.extents.size(),
                 {"mask", "window", "anchor", "edge", "separable", "convolution", "scale", "out",
                  "iterations"});
  const Extents shape{std::span<const std::int64_t>(problem.extents)};
  Call call;
  call.edge = parse_edge(problem.text("edge", "zero"));
  call.convolution = problem.has("convolution");
  call.scale = problem.number("scale", 1.0);
  call.iterations = static_cast<int>(problem.integer("iterations", 1));
  if (problem.has("anchor")) call.anchor = parse_extents("anchor", problem.text("anchor", ""));
  if (problem.has("window")) call.window = parse_extents("window", problem.text("window", ""));
  call.x = inputs.input("x", problem.dtype, shape);
  const bool tame = problem.dtype == DType::u8 || problem.dtype == DType::f16 ||
                    call.iterations > 1 || problem.has("separable");
  const DType type = problem.dtype == DType::f64 ? DType::f64 : DType::f32;
  const auto weights = [&](std::string_view tensor, const Extents& extents) {
    if (!tame) return inputs.input(tensor, type, extents);
    return inputs.input(tensor, type, extents, tame_weights(problem, extents.product()));
  };
  if (problem.has("mask")) {
    const Extents mask = parse_extents("mask", problem.text("mask", ""));
    if (!problem.has("separable")) {
      call.mask = weights("mask", mask);
    } else if (mask.rank >= 1 && mask.rank <= 3) {
      ConstTensorRef* const vectors[] = {&call.across, &call.down, &call.through};
      constexpr std::string_view names[] = {"across", "down", "through"};
      for (int i = 0; i < mask.rank; ++i) {
        *vectors[i] = weights(names[i], {mask[mask.rank - 1 - i]});
      }
    }
  }
  const DType out = problem.has("out") ? parse_dtype(problem.text("out", "")) : problem.dtype;
  call.y = inputs.output("y", out, shape);
  return call;
}

Problem Stencil::describe(const Call& call) {
  Extents mask = call.mask.shape;
  for (const ConstTensorRef* vector : {&call.through, &call.down, &call.across}) {
    if (is_given(*vector)) mask[mask.rank++] = vector->shape[0];
  }
  return ProblemWriter(call.x.dtype, call.x.shape)
      .extents("mask", mask)
      .extents("window", call.window)
      .text("edge", edge_names[static_cast<std::size_t>(call.edge)], "zero")
      .flag("separable", is_given(call.across))
      .flag("convolution", call.convolution)
      .extents("anchor", call.anchor)
      .number("scale", call.scale, 1.0)
      .integer("iterations", call.iterations, 1)
      .dtype("out", call.y.dtype, call.x.dtype)
      .problem();
}

namespace {

/// Views an H x W x C picture as a batch of C planes, so that channels are not each other's
/// neighbors.
void channels_first(auto& tensor) {
  const auto moved = [](const Extents& axes) { return Extents{axes[2], axes[0], axes[1]}; };
  tensor.shape = moved(tensor.shape);
  tensor.strides = moved(tensor.strides);
}

}  // namespace

std::span<const ArgumentSpec> Stencil::arguments() {
  using Kind = ArgumentSpec::Kind;
  static constexpr std::array<ArgumentSpec, 12> specs{{
      {"x", Kind::tensor, true,
       "an array, or a batch along the axes in front; a .png: its channels"},
      {"mask", Kind::tensor, false, "of 1, 2 or 3 axes, f32 (f64 where x is)"},
      {"across", Kind::tensor, false, "or a mask as vectors: along the last axis,"},
      {"down", Kind::tensor, false, "along the one before it,"},
      {"through", Kind::tensor, false, "and along the one before that"},
      {"window", Kind::text, false, "or the extents of a box whose elements all weigh 1: 5x5"},
      {"anchor", Kind::text, false, "the mask's element that is at the result's: 0x1"},
      {"edge", Kind::text, false, "what is outside; default zero", "zero|clamp|mirror|wrap"},
      {"convolution", Kind::flag, false, "the mask turned round"},
      {"scale", Kind::number, false, "factor of the sums; default 1"},
      {"iterations", Kind::number, false, "the result takes the place of x; default 1"},
      {"out", Kind::text, false, "the result's type; default that of x", "f32|f64|f16|bf16|u8"},
  }};
  return specs;
}

void Stencil::invoke(Context& context, Invocation& call, Pick pick) {
  ConstTensorRef x = call.tensors.at("x");
  StencilOptions options;
  if (call.has("window")) options.window = parse_extents("window", call.text("window", ""));
  if (call.has("anchor")) options.anchor = parse_extents("anchor", call.text("anchor", ""));
  options.edge = parse_edge(call.text("edge", "zero"));
  options.convolution = call.has("convolution");
  options.scale = call.number("scale", 1.0);
  options.iterations = static_cast<int>(call.number("iterations", 1));
  const DType out = call.has("out") ? parse_dtype(call.text("out", "")) : x.dtype;
  call.result = Tensor(out, x.shape, context.device());
  TensorRef y = call.result;
  const auto tensor = [&](std::string_view which) {
    const auto found = call.tensors.find(which);
    return found == call.tensors.end() ? ConstTensorRef() : ConstTensorRef(found->second);
  };
  const bool is_cube =
      call.has("through") || tensor("mask").rank() == 3 || options.window.rank == 3;
  if (call.has("x.picture") && x.rank() == 3 && !is_cube) {
    channels_first(x);
    channels_first(y);
  }
  if (call.has("across") || call.has("down") || call.has("through")) {
    if (call.has("mask")) reject(name, "mask and vectors are given; accepted: one of them");
    stencil_separable(context, x, tensor("across"), tensor("down"), tensor("through"), y, options,
                      pick);
    return;
  }
  stencil(context, x, tensor("mask"), y, options, pick);
}

}  // namespace rung
