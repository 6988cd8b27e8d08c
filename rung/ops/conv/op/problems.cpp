// SPDX-License-Identifier: Apache-2.0
// conv: the problems that check and bench use, their tensors, and the command line.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string_view>

#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"
#include "rung/harness/facts.hpp"
#include "rung/harness/problem_words.hpp"
#include "rung/ops/conv/op/conv.hpp"
#include "rung/ops/conv/shared/axes.hpp"
#include "rung/ops/conv/shared/facts.hpp"
#include "rung/ops/conv/shared/survey_layers.hpp"
#include "rung/ops/conv/shared/text.hpp"

namespace rung {
namespace {

/// Returns the layers on which the gradients are surveyed, too, and two that only conv supports or
/// has kernels for.
constexpr auto make_patterns() {
  std::array<std::string_view, std::size(conv_survey::layers) + 2> all;
  auto* const own = std::ranges::copy(conv_survey::layers, all.begin()).out;
  own[0] = "f32 1..4x1..32x4..16x4..32x4..32,out=1..32,k=3,p=1(|,nhwc)";  // three dimensions
  own[1] = "f32 1..16x16..128x6..64x6..64,out=16..128,k=3,p=1,winograd,bias,relu";
  return all;
}
constexpr auto survey_patterns = make_patterns();
const Survey<Conv> survey{survey_patterns};

std::vector<std::string> facts_of(const Problem& problem) {
  std::vector<std::string> facts =
      conv_facts::facts_of<ConvOptions>(Conv::name, problem, {"x", "w", "y"}, 2);
  if (problem.has("winograd")) {
    facts.emplace_back(
        "With winograd: rates count the operations of the definition, for all rungs. The "
        "winograd rungs need 4/9 (2 x 2 pixels) or 1/4 (4 x 4) of the multiplications for 3 x 3 "
        "taps, so "
        "that they may be faster than arithmetic's ceiling, and their share of it means nothing.");
  }
  return facts;
}
const Facts<Conv> facts{facts_of};

Activation activation_of(const auto& has) {
  for (const auto& [word, activation] : activation_names) {
    if (has(word)) return activation;
  }
  return Activation::none;
}

}  // namespace

std::vector<Problem> Conv::check_problems(Backend backend) {
  std::vector<Problem> problems = Problem::parse_all({
      "f32 0x3x4x4",                                         // no images
      "f32 2x3x4x4,out=0",                                   // no filters
      "f32 2x0x4x4,out=3,bias",                              // no channels: the bias alone
      "f32 1x1x1x1,k=1",                                     // one element
      "f32 1x1x1x1,k=3,p=1,bias",                            // padding all around
      "f32 1x1x2x3,k=3,p=4",                                 // windows entirely in the padding
      "f32 1x1x5x5,k=7,p=1",                                 // a filter larger than the image
      "f32 2x3x8x8,out=5,k=3,p=1",                           // few channels
      "f32 1x4x9x7,out=6,k=3,s=2,p=1,bias,relu",             //
      "f32 2x17x7x11,out=19,k=3,p=1",                        // no extent is a multiple of a tile
      "f32 2x17x7x11,out=35,k=3,p=1,nhwc",                   //
      "f32 1x3x65x65,out=70,k=1",                            // more pixels than a few tiles have
      "f32 1x30x5x5,out=20,k=3,p=1",                         // more terms than a table holds
      "f32 1x20x9x10,out=70,k=1",                            // a matrix product
      "f32 2x20x5x9,out=70,k=1,nhwc,bias,gelu",              //
      "f32 1x24x9x9,out=8,k=1,s=2",                          //
      "f32 1x2x13x17,out=3,k=3,d=2,p=2",                     // dilated
      "f32 1x2x10x12,out=4,k=2x5,s=2x3,p=1x0,d=3x1",         // axes with different windows
      "f32 1x3x9x9,out=4,k=2,s=4",                           // strides beyond the filter
      "f32 2x1x20x21,out=4,k=7",                             // one channel, 7 x 7
      "f32 1x4x12x12,out=16,k=7,p=3,bias,tanh",              // four channels, 7 x 7
      "f32 1x3x27x24,out=9,k=11,s=4,p=2",                    // more taps than a window slides over
      "f32 1x1x4x135,out=8,k=2x19,p=1x9,nhwc",               // more columns than a tile has
      "f32 1x3x16x15,out=33,k=5,s=2,p=2,nhwc",               //
      "f16 2x3x15x18,out=33,k=7,s=2,p=3,bias,relu",          // first layers: 1 to 4 channels
      "bf16 2x3x17x15,out=64,k=7,s=2,p=3,nhwc",              //
      "bf16 1x1x9x270,out=17,k=3,s=2,p=1",                   // strips of columns
      "f16 1x2x40x37,out=5,k=5,p=2,bias,gelu",               // bands of rows
      "bf16 1x4x13x21,out=80,k=3x2,d=2x3,p=2x0,nhwc,bias",   // dilated, groups of filters
      "f16 1x3x11x9,out=16,k=4,s=4,p=7",                     // padding wider than the filter
      "bf16 3x3x12x16,out=32,k=3,s=1x3,p=1,nhwc,relu",       //
      "f32 6x3x5x6,out=4,k=3,p=1,bias",                      // more images than streams
      "f32 3x11x9x15,out=68,k=3,p=1,bias,relu",              // a wide tile, 8 does not divide C
      "f32 2x6x7x9,k=3,p=1,g=6",                             // depthwise
      "f32 2x3x19x10,k=3,s=2,p=1,g=3,bias",                  // columns longer than a thread's
      "f32 1x2x20x7,k=5,p=2,g=2",                            //
      "f16 1x3x9x11,k=5,s=2,p=1,g=3",                        //
      "bf16 2x16x13x7,k=3,p=1,g=16,nhwc,bias",               // packs of channels
      "f32 1x24x9x10,k=5,s=2,p=2,g=24,nhwc",                 //
      "f16 1x272x3x5,k=3,p=1,g=272,nhwc",                    // more packs than a block has
      "f32 1x37x6x7,k=3,s=2,p=1,g=37,nhwc,bias",             //
      "f32 2x3x21x10,k=7,p=3,g=3,bias",                      // filters of 7 x 7
      "bf16 2x16x13x9,k=7,s=2,p=3,g=16,nhwc",                //
      "bf16 2x20x13x11,k=7,p=3,g=20,nhwc,bias",              // words of channels
      "f16 1x70x9x6,k=5,p=2,g=70,nhwc",                      // more words than a block has
      "f16 2x3x11x10,k=5,p=9,g=3",                           // rows entirely in the padding
      "f32 1x5x8x8,out=10,k=5,p=2,g=5,relu",                 // two filters per channel
      "f32 1x12x6x8,out=20,k=3,p=1,g=4",                     // groups
      "f32 1x12x6x8,out=8,k=3,p=1,g=2,nhwc,sigmoid",         //
      "f32 2x3x50,out=4,k=5,p=2",                            // one dimension
      "f32 1x18x33,out=20,k=3,s=2,nhwc,bias",                //
      "f32 1x2x4x5x6,out=3,k=3,p=1",                         // three dimensions
      "f32 1x3x4x6x5,out=7,k=2x3x1,s=1x2x1,p=1x0x2,nhwc",    //
      "f32 1x16x8x10,out=18,k=3,p=1,winograd",               // full tiles and partial ones
      "f32 2x9x7x5,out=17,k=3,winograd,bias,relu",           //
      "f32 1x10x9x9,out=17,k=3,p=1,winograd,nhwc",           //
      "f64 1x3x6x7,out=5,k=3,p=1,bias",                      // every type
      "f64 1x9x5x6,out=10,k=3,nhwc,relu",                    //
      "f16 1x16x6x9,out=24,k=3,p=1,nhwc,bias",               //
      "f16 2x5x7x7,out=6,k=3,s=2,p=1,relu",                  //
      "bf16 1x32x5x7,out=16,k=3,p=1,nhwc",                   //
      "f16 1x32x9x9,out=72,k=3,s=2,p=1,nhwc,g=2,bias,relu",  // channels in multiples of 8
      "bf16 2x24x8x17,out=40,k=3x2,d=2x1,p=2x0,nhwc",        //
      "f16 1x8x3x5x4,out=9,k=2,nhwc",                        //
      "bf16 1x256x3x4,out=8,k=3,p=1,nhwc",                   // more chunks than a table holds
      "f16 1x16x15x16,out=70,k=1,nhwc",                      // more pixels than a tile
      "bf16 1x72x5x7,out=136,k=1x2,p=0x1,nhwc,relu",         // a partial tile of channels
      "bf16 1x6x7x8,out=9,k=3,p=1,bias,gelu",                //
      "bf16 1x8x7x8,k=3,p=1,g=8,nhwc",                       //
  });
  if (backend == Backend::simt) return problems;
  // Layers with more terms than a chunk, more pixels than a panel, and work for several threads.
  const std::vector<Problem> larger = Problem::parse_all({
      "f32 2x64x28x28,out=64,k=3,p=1",
      "f32 1x150x14x14,out=70,k=3,p=1,bias,relu",
      "f32 2x64x20x21,out=96,k=3,p=1,nhwc",
      "f32 2x64x30x31,out=64,k=3,p=1,winograd",
      "f32 1x512x7x7,out=33,k=1",
      "f32 4x1x40x41,out=6,k=5",
      "f32 1x64x30x30,k=3,p=1,g=64",
      "bf16 1x64x15x16,out=40,k=3,s=2,p=1",
      "f64 1x40x17x18,out=30,k=3,p=1",
      "f32 2x7x11x70,out=9,k=3x5",                     // no padding: rows of the image itself
      "f32 2x37x3x40,out=24,k=3",                      // one row of y from three rows of x
      "f32 3x34x5x17,out=12,k=3,p=1,nhwc",             // a vector of filters, rows of odd lengths
      "f32 1x70x7x33,out=150,k=3,p=1,nhwc,bias,relu",  // blocks of filters, and of terms
      "f32 1x9x20x37,out=13,k=3,d=2,p=2,nhwc",         // dilated taps
      "f64 2x5x3x6x19,out=21,k=3,p=1,nhwc",            // depth taps, some in the padding
      "bf16 2x40x9x33,out=36,k=3,s=2,p=1,nhwc",        //
      "f32 2x5x1100,out=9,k=5,p=2,nhwc",               // rows of several bands
      "f32 2x5x1100,out=7,k=3",                        //
      "f32 2x40x9x37,k=5,s=2,p=2,g=40,nhwc,bias",      // 2.5 vectors of channels
  });
  problems.insert(problems.end(), larger.begin(), larger.end());
  return problems;
}

std::vector<Problem> Conv::bench_problems(Backend backend) {
  switch (backend) {
    case Backend::cpu:
    case Backend::opencl:
      return Problem::parse_all(
          {"f32 4x64x56x56,out=64,k=3,p=1", "f32 4x64x56x56,out=64,k=3,p=1,winograd",
           "f32 4x64x56x56,out=64,k=3,p=1,nhwc", "f32 4x256x14x14,out=256,k=3,p=1",
           "f32 4x256x56x56,out=64,k=1", "f32 4x3x224x224,out=64,k=7,s=2,p=3",
           "f32 64x1x86x86,out=4,k=7", "f32 4x64x56x56,k=3,p=1,g=64"});
    case Backend::cuda:
      return Problem::parse_all(
          {"f32 32x64x224x224,out=64,k=3,p=1", "f32 32x128x28x28,out=128,k=3,p=1",
           "f16 32x64x224x224,out=64,k=3,p=1,nhwc", "bf16 32x128x28x28,out=128,k=3,p=1,nhwc",
           "bf16 32x512x7x7,out=512,k=3,p=1,nhwc", "f32 32x256x56x56,out=64,k=1",
           "f32 32x3x224x224,out=64,k=7,s=2,p=3", "f32 1000x1x86x86,out=4,k=7",
           "f32 1000x4x40x40,out=16,k=7", "f32 32x64x56x56,k=3,p=1,g=64"});
    case Backend::simt:
      return Problem::parse_all({"f32 1x16x14x14,out=16,k=3,p=1", "f32 1x4x20x20,out=16,k=7",
                                 "f16 1x32x10x10,out=32,k=3,p=1,nhwc",
                                 "f32 1x16x14x14,out=16,k=3,p=1,winograd",
                                 "f32 1x16x14x14,k=3,p=1,g=16"});
  }
  return {};
}

Conv::Call Conv::make(const Problem& problem, Inputs& inputs) {
  problem.expect(name, problem.extents.size(),
                 {"out", "k", "s", "p", "d", "g", "nhwc", "winograd", "bias", "relu", "gelu",
                  "sigmoid", "tanh"});
  Call call;
  const conv_text::Shapes shapes = conv_text::read_layer(name, problem, call.options);
  call.options.winograd = problem.has("winograd");
  expect_one_of(name, problem, activation_names, [](const auto& one) { return one.first; });
  call.options.activation = activation_of([&](std::string_view word) { return problem.has(word); });
  call.x = inputs.input("x", problem.dtype, shapes.x);
  call.w = inputs.input("w", problem.dtype, shapes.w);
  if (problem.has("bias")) call.options.bias = inputs.input("bias", problem.dtype, {shapes.w[0]});
  call.y = inputs.output("y", problem.dtype, shapes.y);
  return call;
}

Problem Conv::describe(const Call& call) {
  const ConvOptions& options = call.options;
  return conv_text::describe_layer(call.x.dtype, call.x.shape, call.w.shape, options)
      .flag("bias", is_given(options.bias))
      .word(activation_names, options.activation, Activation::none)
      .flag("winograd", options.winograd)
      .problem();
}

std::span<const ArgumentSpec> Conv::arguments() {
  using Kind = ArgumentSpec::Kind;
  static constexpr std::array<ArgumentSpec, 10> specs{{
      {"x", Kind::tensor, true, "N x C x H x W; also of one and three dimensions"},
      {"w", Kind::tensor, true, "K x C/G x filter"},
      {"stride", Kind::text, false, "N, or as in NxM; default 1"},
      {"padding", Kind::text, false, "default 0"},
      {"dilation", Kind::text, false, "default 1"},
      {"groups", Kind::number, false, "default 1"},
      {"nhwc", Kind::flag, false, "channels are the last axis, of w too"},
      {"winograd", Kind::flag, false, "may lose digits in 3 x 3 layers"},
      {"bias", Kind::tensor, false, "K numbers, added to the result"},
      {"activation", Kind::text, false, "default none", "none|relu|gelu|sigmoid|tanh"},
  }};
  return specs;
}

void Conv::invoke(Context& context, Invocation& call, Pick pick) {
  const Tensor& x = call.tensors.at("x");
  const Tensor& w = call.tensors.at("w");
  const int rank = x.shape().rank;
  if (rank < 3 || rank > 5 || w.shape().rank != rank) {
    reject(name, fmt::format("x has {} and w {}; accepted: 3 to 5, as many of both",
                             axis_count(rank), w.shape().rank));
  }
  ConvOptions options;
  conv_text::read_windows(name, call, rank - 2, true, options);
  options.groups = static_cast<int>(call.integer(name, "groups", 1, {1, INT32_MAX}));
  options.channels_last = call.has("nhwc");
  options.winograd = call.has("winograd");
  options.activation = activation_of([&](std::string_view word) {
    return word != "none" && call.text("activation", "none") == word;
  });
  if (call.has("bias")) options.bias = call.tensors.at("bias");
  ConstTensorRef image = x;
  ConstTensorRef filter = w;
  conv_axes::to_five(image, options.channels_last);
  conv_axes::to_five(filter, options.channels_last);
  Extents y{image.shape[0], filter.shape[0]};
  y.rank = rank;
  for (int axis = 5 - rank; axis < 3; ++axis) {
    y[axis + rank - 3] =
        conv_axes::axis_of(name, conv_axes::axis_names[axis], image.shape[2 + axis],
                           filter.shape[2 + axis], conv_axes::window_of(options, axis, rank - 2))
            .out;
  }
  call.result =
      Tensor(x.dtype(), conv_axes::given_order(y, options.channels_last), context.device());
  conv(context, x, w, call.result, options, pick);
}

}  // namespace rung
