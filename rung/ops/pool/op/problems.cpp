// SPDX-License-Identifier: Apache-2.0
// pool: the problems that check and bench use, their tensors, and the command line.
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
#include "rung/ops/pool/op/pool.hpp"
#include "rung/ops/pool/shared/axes.hpp"
#include "rung/ops/pool/shared/text.hpp"

namespace rung {
namespace {

/// Returns mostly small integers, many of them equal, some infinities, and NaN for one value in 61.
double with_nan(std::int64_t, double uniform) {
  if (uniform < 1.0 / 61) return std::numeric_limits<double>::quiet_NaN();
  if (uniform > 0.9) return -std::numeric_limits<double>::infinity();
  if (uniform > 0.89) return std::numeric_limits<double>::infinity();
  return std::floor(uniform * 12) - 6;
}

/// Returns a maker of positive weights, whose sums do not cancel; integers if sums are to be exact.
ValueMaker weight_values(Values values) {
  if (values == Values::integers) {
    return [](std::int64_t, double uniform) { return 1 + std::floor(uniform * 4); };
  }
  return [](std::int64_t, double uniform) { return 0.25 + uniform; };
}

Extents pooled_shape(const Extents& x, const PoolOptions& o) {
  const auto extent = [&](int axis) {
    return pool_axes::axis_of(Pool::name, "axis", x[2 + axis], pool_axes::window_of(o, axis)).out;
  };
  return {x[0], x[1], extent(0), extent(1)};
}

// Images of all sizes, channels first and last, with windows of networks and others; windows of
// whole planes; one dimension; maxima with their indices.
constexpr std::string_view survey_patterns[] = {
    ("(f32*3|bf16|f16|f64) 1..64x1..512x1..256x1..256,(k=2|k=3,s=2,p=1|k=3,s=1,p=1)"
     "(*2|,ceil|,average*2|,average,valid)"),
    "(f32*3|bf16|f16) 1..64x1..512x1..256x1..256,nhwc,(k=2|k=3,s=2,p=1|k=3,s=1,p=1)(|,average)",
    ("(f32*2|bf16|f64) 1..64x1..512x1..128x1..128,(k=2..7|k=7,s=2,p=3|k=2x3,s=1x2|k=3,d=2,p=2,s=1)"
     "(*2|,average)(*2|,nhwc)"),
    ("(f32*2|bf16|f64) "
     "1..64x1..512x1..128x1..128,(k=2|k=3,s=2,p=1),(l2|weighted|indices=i64*2)(|,nhwc)"),
    "(f32*2|bf16|f16) 1..256x1..2048(x7x7,k=7|x8x8,k=8|x14x14,k=14),average(|,nhwc)",
    "(f32*2|bf16) 1..64x1..256x1x1..65536,k=1x(2|3,p=0x1),s=1x(1|2|3)(|,average)",
    "(f32*2|bf16) 1..32x1..256x1..128x1..128,k=3,s=2,p=1(|,nhwc),bias,(relu|gelu|sigmoid)",
};
const Survey<Pool> survey{survey_patterns};

}  // namespace

std::vector<Problem> Pool::check_problems(Backend backend) {
  std::vector<Problem> problems = Problem::parse_all({
      "f32 0x3x4x4",                                    // no images
      "f32 2x0x4x4,average",                            // no channels
      "f32 1x1x1x1,k=1",                                // one element
      "f32 1x1x1x1,k=2,p=1,s=2,average",                // padding all around
      "f32 2x3x8x8",                                    // 2 x 2 with stride 2
      "f32 2x3x9x7,k=3,s=2,p=1",                        // ragged
      "f32 1x2x5x131,k=3,s=1,p=1",                      // more than two vectors
      "f32 1x3x12x70,k=3,s=2,p=1,indices=i64",          //
      "f32 2x2x11x13,k=3x2,s=2x3,p=1x0,indices=i32",    // axes with different windows
      "f32 1x2x10x37,k=3,s=1,p=1,nan",                  // NaN, infinities
      "f32 1x2x10x37,k=3,s=2,p=1,nan,indices=i64",      // many equal values
      "f32 3x4x6x9,k=2,s=2,ceil,nan,indices=i32,nhwc",  //
      "f32 1x2x10x10,k=3,s=2,ceil",                     // a partial window at the end
      "f32 1x2x7x8,k=2,s=2,p=1,ceil,average",           // a window that exceeds the padding
      "f32 1x2x7x8,k=2,s=2,p=1,ceil,average,valid",     //
      "f32 1x1x2x2,k=3,s=2,ceil,average",               // larger than the image
      "f32 1x2x13x17,k=3,d=2,p=2,s=1",                  // dilated
      "f32 1x2x13x40,k=2x3,d=3x2,p=0x2,s=2,average",    //
      "f32 2x3x1x50,k=1x5,s=1x1,p=0x2,average,valid",   // one dimension
      "f32 33x32x4x3,k=2",                           // more planes than shared_rows has blocks for
      "f32 1x2x9x64,k=3,s=4",                        // strides beyond the kernel
      "f32 1x2x20x41,k=3,s=1,p=1,average",           //
      "f32 2x2x20x33,k=3,s=2,p=1,average,valid",     //
      "f32 1x3x7x7,k=7,average",                     // windows of a whole plane
      "f32 3x41x7x7,k=7",                            // ... many planes
      "bf16 3x37x8x8,k=8,average,bias",              //
      "f16 2x11x14x14,k=14,l2",                      //
      "f64 2x9x6x6,k=6,average,nan",                 //
      "f32 2x3x12x10,k=3x10,s=4x1,average",          // windows of contiguous rows
      "bf16 3x5x1x133,k=1x6,s=1x7,average",          // windows of part of a row
      "f32 2x9x7x7,k=7,average,nhwc",                // all of an image, channels last: ragged
      "bf16 2x40x8x8,k=8,average,nhwc,bias",         // ... and full vectors
      "f16 1x77x14x9,k=14x9,nhwc,nan",               //
      "f64 2x6x9x9,k=5,s=2,p=2,average,valid,nhwc",  //
      "f32 1x7x12x12,k=4,d=2,p=3,s=3,l2,nhwc",       //
      "f32 1x3x1x1500,k=1x3,p=0x1,s=1x1,average,valid",
      "bf16 1x2x3x1290,k=3x2,p=1x1,s=2x3,d=1x2,bias,relu",
      "f16 2x27x9x11,k=3,s=1,p=1,average,nhwc",            // odd channels
      "bf16 1x19x11x8,k=2,nhwc,bias,gelu",                 //
      "f32 1x5x9x30,k=3,s=2,p=1,ceil,average,valid,nhwc",  //
      "f32 2x2x11x35,k=5x3,s=1,p=2x1,l2",                  //
      "f32 1x2x11x35,k=3,s=2,p=1,weighted",                //
      "f32 1x2x12x34,k=3x4,s=1,p=1x2,weighted,valid",      //
      "f32 2x5x9x9,k=3,s=2,p=1,ceil,weighted,nhwc",        //
      "f32 2x37x6x5,k=3,s=2,p=1,nhwc",                     // channels last: ragged
      "f32 1x64x7x6,k=3,s=1,p=1,average,valid,nhwc",       // ... and full vectors
      "f32 1x32x6x6,k=2,average,nhwc,bias,relu",           //
      "f32 2x48x5x5,k=3,s=1,p=1,l2,nhwc",                  //
      "f32 1x40x7x5,k=3,d=2,p=2,s=1,nhwc,indices=i64",     //
      "f32 1x160x4x4,k=2,s=1,weighted,nhwc",               // several vectors
      "f32 2x3x9x40,k=3,s=2,p=1,bias,gelu",                // the epilogue
      "f32 2x3x9x20,k=2,average,bias,sigmoid",             //
      "f32 2x3x9x20,k=2,l2,tanh",                          //
      "f32 2x3x9x20,k=3,s=1,p=1,bias,indices=i32",         //
      "f64 1x3x9x21,k=3,s=2,p=1,indices=i64",              // every type
      "f64 1x3x9x21,k=3,s=1,p=1,average",                  //
      "f64 1x18x5x6,k=3,s=1,p=1,weighted,nhwc,bias",       //
      "f64 1x3x9x21,k=2,l2,relu",                          //
      "f16 2x3x9x70,k=3,s=2,p=1",                          //
      "f16 1x24x7x6,k=3,s=1,p=1,average,nhwc",             //
      "f16 1x3x8x33,k=2,l2,bias",                          //
      "f16 1x2x9x33,k=3,s=2,p=1,nan,indices=i64",          //
      "bf16 2x3x9x37,k=3,s=1,p=1,average,valid",           //
      "bf16 1x40x6x6,k=2,nhwc,nan",                        //
      "bf16 1x3x9x35,k=3,s=2,p=1,weighted,relu",           //
  });
  if (backend == Backend::simt) return problems;
  // Problems for several threads, and lines longer than the staged part of a block.
  const std::vector<Problem> larger = Problem::parse_all({
      "f32 4x16x56x56,k=3,s=2,p=1",
      "f32 1x2x40x5000,k=3,s=1,p=1,average",
      "f32 2x64x56x56,k=3,s=2,p=1,nhwc",
      "bf16 2x64x28x28,k=3,s=1,p=1,average,nhwc",
      "f32 1x1x600x600,k=31,s=7,p=15,average,valid",
      "f64 2x8x60x61,k=3,s=2,p=1,indices=i64",
      "f32 1x1x3x20000,k=3x5,s=1,p=1x2,average,valid",  // rows of several blocks
      "f16 1x1x2x20001,k=2x3,s=1x2,p=1,l2,bias",
      "f64 1x2x3x9001,k=3x4,s=1x3,p=1x2,ceil,average",
      "f32 1x1x4x9001,k=3,s=1x3,p=1,weighted",
      "bf16 1x1x4x9001,k=3,s=1,p=1,indices=i32,nan",
      "f32 1x5000x2x3,k=2,nhwc,bias,relu",  // blocks of channels, and of windows
      "f16 1x4500x2x3,k=2x3,nhwc,indices=i64",
      "f32 1x9x1x9000,k=1x3,s=1,p=0x1,average,valid,nhwc",
      "f32 1x2x1x5,k=1x3,s=1,d=1x200000,p=0x200000,nan,indices=i64",  // lines beyond the scratch
      "f16 1x1x2x9,k=2x200001,s=1,p=1x100000,average,bias",
      "f64 1x2x3x3,k=1x200001,s=1,p=0x100000,l2",
      "f32 1x1x5x5,k=200001x1,s=1,p=100000x0,weighted",
      "bf16 1x9x5x2,k=200001x1,s=1,p=100000x0,weighted,valid,nhwc",
  });
  problems.insert(problems.end(), larger.begin(), larger.end());
  return problems;
}

std::vector<Problem> Pool::bench_problems(Backend backend) {
  switch (backend) {
    case Backend::cpu:
    case Backend::opencl:
      return Problem::parse_all(
          {"f32 64x64x112x112,k=3,s=2,p=1", "f32 64x64x112x112,k=3,s=2,p=1,nhwc",
           "f32 32x64x56x56,k=2,average", "f32 32x64x56x56,k=3,s=1,p=1,average,nhwc",
           "f32 4x64x56x56,k=3,s=2,p=1", "bf16 64x64x112x112,k=3,s=2,p=1,nhwc",
           "f32 32x64x56x56,k=3,s=2,p=1,indices=i64"});
    case Backend::cuda:
      return Problem::parse_all(
          {"f32 64x64x112x112,k=3,s=2,p=1", "f32 64x64x112x112,k=3,s=2,p=1,nhwc",
           "f16 64x64x112x112,k=3,s=2,p=1,nhwc", "f32 64x64x112x112,k=2,average",
           "f32 64x64x111x111,k=3,s=2,p=1", "f32 64x64x112x112,k=3,s=1,p=1,average",
           "f32 64x64x112x112,k=3,s=2,p=1,indices=i64"});
    case Backend::simt:
      return Problem::parse_all({"f32 2x4x56x56,k=3,s=2,p=1", "f32 2x32x14x14,k=3,s=2,p=1,nhwc",
                                 "f32 2x4x28x28,k=3,s=1,p=1,average"});
  }
  return {};
}

Pool::Call Pool::make(const Problem& problem, Inputs& inputs) {
  problem.expect(name, 4,
                 {"max", "average", "l2", "weighted", "k", "s", "p", "d", "ceil", "valid", "nhwc",
                  "indices", "bias", "relu", "gelu", "sigmoid", "tanh", "nan"});
  Call call;
  PoolOptions& options = call.options;
  pool_text::read_windows(name, problem, options);
  expect_one_of(name, problem, activation_names, [](const auto& one) { return one.first; });
  for (const auto& [word, activation] : activation_names) {
    if (problem.has(word)) options.activation = activation;
  }
  const bool last = options.channels_last;
  const Extents x{std::span<const std::int64_t>(problem.extents)};
  const Extents y = pool_axes::given_order(pooled_shape(x, options), last);
  const Extents given = pool_axes::given_order(x, last);
  call.x = problem.has("nan") ? inputs.input("x", problem.dtype, given, with_nan)
                              : inputs.input("x", problem.dtype, given);
  if (options.kind == Pooling::weighted) {
    options.weights =
        inputs.input("weights", problem.dtype, {options.kernel.along(0), options.kernel.along(1)},
                     weight_values(inputs.variant().values));
  }
  if (problem.has("bias")) options.bias = inputs.input("bias", problem.dtype, {x[1]});
  call.y = inputs.output("y", problem.dtype, y);
  if (problem.has("indices")) {
    options.indices = inputs.output("indices", parse_dtype(problem.text("indices", "i64")), y);
  }
  return call;
}

Problem Pool::describe(const Call& call) {
  const PoolOptions& options = call.options;
  return pool_text::describe_windows(call.x.dtype, call.x.shape, options)
      .text("indices", is_given(options.indices) ? to_string(options.indices.dtype) : "", "")
      .flag("bias", is_given(options.bias))
      .word(activation_names, options.activation, Activation::none)
      .problem();
}

std::span<const ArgumentSpec> Pool::arguments() {
  using Kind = ArgumentSpec::Kind;
  static constexpr std::array<ArgumentSpec, 13> specs{{
      {"x", Kind::tensor, true, "N x C x H x W"},
      {"kind", Kind::text, false, "default max", "max|average|l2|weighted"},
      {"kernel", Kind::text, false, "the window: N or NxM; default 2"},
      {"stride", Kind::text, false, "N or NxM; default the kernel's extents"},
      {"padding", Kind::text, false, "N or NxM; default 0"},
      {"dilation", Kind::text, false, "N or NxM; default 1"},
      {"ceil", Kind::flag, false, "partial windows at the end count"},
      {"valid", Kind::flag, false, "averages do not count the padding"},
      {"nhwc", Kind::flag, false, "x is N x H x W x C"},
      {"weights", Kind::tensor, false, "of weighted: as large as the window"},
      {"bias", Kind::tensor, false, "C numbers, added to the result"},
      {"activation", Kind::text, false, "default none", "none|relu|gelu|sigmoid|tanh"},
      {"indices", Kind::flag, false, "the result is where the maxima are, i64"},
  }};
  return specs;
}

void Pool::invoke(Context& context, Invocation& call, Pick pick) {
  const Tensor& x = call.tensors.at("x");
  PoolOptions options;
  pool_text::read_windows(name, call, options);
  for (const auto& [word, activation] : activation_names) {
    if (call.text("activation", "none") == word) options.activation = activation;
  }
  if (call.has("weights")) options.weights = call.tensors.at("weights");
  if (call.has("bias")) options.bias = call.tensors.at("bias");
  ConstTensorRef image = x;
  if (image.rank() != 4) {
    reject(name, fmt::format("x has {}; accepted: 4, N x C x H x W or, with --nhwc, "
                             "N x H x W x C",
                             axis_count(image.rank())));
  }
  pool_axes::to_nchw(image, options.channels_last);
  const Extents shape =
      pool_axes::given_order(pooled_shape(image.shape, options), options.channels_last);
  Tensor y(x.dtype(), shape, context.device());
  Tensor indices;
  if (call.has("indices")) {
    indices = Tensor(DType::i64, shape, context.device());
    options.indices = indices;
  }
  pool(context, x, y, options, pick);
  call.result = call.has("indices") ? std::move(indices) : std::move(y);
}

}  // namespace rung
