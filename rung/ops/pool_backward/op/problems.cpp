// SPDX-License-Identifier: Apache-2.0
// pool_backward: the problems that check and bench use, their tensors, and the command line.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>

#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"
#include "rung/harness/run_examples.hpp"
#include "rung/ops/pool/shared/axes.hpp"
#include "rung/ops/pool/shared/text.hpp"
#include "rung/ops/pool_backward/op/pool_backward.hpp"

namespace rung {
namespace {

ValueMaker weight_values(Values values) {
  if (values == Values::integers) {
    return [](std::int64_t, double uniform) { return 1 + std::floor(uniform * 4); };
  }
  return [](std::int64_t, double uniform) { return 0.25 + uniform; };
}

/// Returns a maker of indices: positions within the windows, of any of their taps.
ValueMaker positions(const PoolAxis& rows, const PoolAxis& columns, std::int64_t channels,
                     bool last) {
  return [=](std::int64_t index, double uniform) {
    const std::int64_t pixel = last ? index / channels : index;
    const PoolTaps by_row = rows.taps(pixel / columns.out % rows.out);
    const PoolTaps by_column = columns.taps(pixel % columns.out);
    const auto tap = static_cast<std::int64_t>(
        uniform * static_cast<double>(by_row.count() * by_column.count()));
    const std::int64_t h = rows.start(pixel / columns.out % rows.out) +
                           (by_row.begin + tap / by_column.count()) * rows.dilation;
    const std::int64_t w = columns.start(pixel % columns.out) +
                           (by_column.begin + tap % by_column.count()) * columns.dilation;
    return static_cast<double>(h * columns.in + w);
  };
}

/// Returns values of the magnitude that norms of normally distributed values have, some of them 0.
double norm_values(std::int64_t, double uniform) {
  return uniform < 0.1 ? 0 : 0.5 + std::floor(uniform * 8);
}

// Patterns of pool's survey: images of all sizes, channels first and last, with windows of
// networks.
constexpr std::string_view survey_patterns[] = {
    ("(f32*3|bf16|f16|f64) 1..64x1..512x1..256x1..256,(k=2|k=3,s=2,p=1|k=3,s=1,p=1)"
     "(*2|,ceil|,average*2|,average,valid)"),
    "(f32*3|bf16|f16) 1..64x1..512x1..256x1..256,nhwc,(k=2|k=3,s=2,p=1|k=3,s=1,p=1)(|,average)",
    ("(f32*2|bf16|f64) 1..64x1..512x1..128x1..128,(k=2..7|k=7,s=2,p=3|k=2x3,s=1x2|k=3,d=2,p=2,s=1)"
     "(*2|,average)(*2|,nhwc)"),
    ("(f32*2|bf16|f64) "
     "1..64x1..512x1..128x1..128,(k=2|k=3,s=2,p=1),(l2|weighted|indices=i32)(|,nhwc)"),
    "(f32*2|bf16|f16) 1..256x1..2048(x7x7,k=7|x8x8,k=8|x14x14,k=14),average(|,nhwc)",
    "(f32*2|bf16) 1..64x1..256x1x1..65536,k=1x(2|3,p=0x1),s=1x(1|2|3)(|,average)",
};
const Survey<PoolBackward> survey{survey_patterns};

const RunExample examples[] = {
    {"pool_backward", "dy.npy --kind average -o dx.npy"},
    {"pool_backward", "dy.npy --indices indices.npy -o dx.npy",
     "of max; pool --indices gives them"},
};

}  // namespace

std::vector<Problem> PoolBackward::check_problems(Backend backend) {
  std::vector<Problem> problems = Problem::parse_all({
      "f32 0x3x4x4",                                   // no images
      "f32 1x1x1x1,k=1",                               // one element
      "f32 2x3x8x8",                                   // 2 x 2 with stride 2
      "f32 2x3x9x7,k=3,s=2,p=1",                       // windows that overlap
      "f32 1x2x5x131,k=3,s=1,p=1",                     //
      "f32 2x2x11x13,k=3x2,s=2x3,p=1x0,indices=i32",   // positions in no window
      "f32 3x4x6x9,k=2,s=2,ceil,indices=i32,nhwc",     //
      "f32 1x2x9x64,k=3,s=4",                          // strides beyond the kernel
      "f32 1x2x13x17,k=3,d=2,p=2,s=1",                 // dilated
      "f32 1x2x7x8,k=2,s=2,p=1,ceil,average",          //
      "f32 1x2x7x8,k=2,s=2,p=1,ceil,average,valid",    //
      "f32 1x1x2x2,k=3,s=2,ceil,average",              // larger than the image
      "f32 1x2x13x40,k=2x3,d=3x2,p=0x2,s=2,average",   //
      "f32 2x2x9x12,k=3,s=2,p=1,average",              // elements in one window and in four
      "f32 2x3x1x50,k=1x5,s=1x1,p=0x2,average,valid",  // one dimension
      "f32 1x3x7x7,k=7,average",                       // windows of a whole plane
      "bf16 2x5x8x8,k=8,average,nhwc",                 //
      "f16 1x3x9x10,k=3,d=2,p=2,s=2,average",          //
      "f32 1x7x5x21,k=2x3,s=1x2,average,valid,nhwc",   //
      "f32 2x3x9x14,k=2x3,average",                    // disjoint windows, differing by axis
      "bf16 1x5x11x8,k=3x2,s=4x2,indices=i32,nhwc",    //
      "f64 2x3x1x61,k=1x3,p=0x1,s=1x2,l2",             //
      "f32 1x64x7x6,k=3,s=1,p=1,average,valid,nhwc",   //
      "f32 2x2x11x35,k=5x3,s=1,p=2x1,l2",              //
      "f32 2x20x5x5,k=3,s=1,p=1,l2,nhwc",              //
      "f32 1x2x11x35,k=3,s=2,p=1,weighted",            //
      "f32 1x2x12x34,k=3x4,s=1,p=1x2,weighted,valid",  //
      "f32 2x5x9x9,k=3,s=2,p=1,ceil,weighted,nhwc",    //
      "f64 1x3x9x21,k=3,s=2,p=1",                      // every type
      "f64 1x3x9x21,k=3,s=1,p=1,average",              //
      "f64 1x3x9x21,k=2,l2",                           //
      "f64 1x6x5x6,k=3,s=1,p=1,weighted,nhwc",         //
      "f16 2x3x9x70,k=3,s=2,p=1",                      //
      "f16 1x24x7x6,k=3,s=1,p=1,average,nhwc",         //
      "f16 1x3x8x33,k=2,l2",                           //
      "bf16 2x3x9x37,k=3,s=1,p=1,average,valid",       //
      "bf16 1x3x9x35,k=3,s=2,p=1,weighted",            //
      "bf16 1x40x6x6,k=3,s=1,p=1,nhwc,indices=i32",    //
  });
  if (backend == Backend::simt) return problems;
  const std::vector<Problem> larger = Problem::parse_all({
      "f32 4x16x56x56,k=3,s=2,p=1",
      "f32 1x2x90x120,k=3,s=2,p=1",  // more rows than gather_rows has sums of at once
      "f32 1x2x40x5000,k=3,s=1,p=1,average",
      "bf16 2x64x28x28,k=3,s=1,p=1,average,nhwc",
      "f32 1x1x3x10000,k=3x5,s=1,p=1x2,average,valid",  // several blocks of windows
      "f16 1x1x2x20001,k=2x3,s=1x2,p=1,l2",
      "f32 1x1x4x9001,k=3,s=1,p=1,weighted",
      "f64 1x2x3x9001,k=3x4,s=1x2,p=1x2,ceil,indices=i32",
      "f32 1x5000x2x3,k=2,s=1,nhwc,l2",  // ... and of channels
      "f16 1x4500x2x3,k=2,s=1,nhwc,indices=i32",
      "f32 1x9x1x9000,k=1x3,s=1,p=0x1,average,valid,nhwc",
  });
  problems.insert(problems.end(), larger.begin(), larger.end());
  return problems;
}

std::vector<Problem> PoolBackward::bench_problems(Backend backend) {
  switch (backend) {
    case Backend::cpu:
    case Backend::opencl:
      return Problem::parse_all({"f32 16x64x112x112,k=3,s=2,p=1", "f32 16x64x56x56,k=2,average",
                                 "f32 16x64x56x56,k=3,s=1,p=1,average,nhwc"});
    case Backend::cuda:
      return Problem::parse_all({"f32 64x64x112x112,k=3,s=2,p=1", "f32 64x64x112x112,k=2,average",
                                 "f16 64x64x112x112,k=3,s=2,p=1,nhwc"});
    case Backend::simt:
      return Problem::parse_all({"f32 2x4x28x28,k=3,s=2,p=1", "f32 2x4x28x28,k=2,average"});
  }
  return {};
}

PoolBackward::Call PoolBackward::make(const Problem& problem, Inputs& inputs) {
  problem.expect(
      name, 4,
      {"max", "average", "l2", "weighted", "k", "s", "p", "d", "ceil", "valid", "nhwc", "indices"});
  Call call;
  PoolBackwardOptions& options = call.options;
  pool_text::read_windows(name, problem, options);
  const bool last = options.channels_last;
  const std::vector<std::int64_t>& extents = problem.extents;
  const PoolAxis rows =
      pool_axes::axis_of(name, "rows", extents[2], pool_axes::window_of(options, 0));
  const PoolAxis columns =
      pool_axes::axis_of(name, "columns", extents[3], pool_axes::window_of(options, 1));
  const Extents image = pool_axes::given_order(Extents{std::span(extents)}, last);
  const Extents pooled =
      pool_axes::given_order({extents[0], extents[1], rows.out, columns.out}, last);
  call.dy = inputs.input("dy", problem.dtype, pooled);
  switch (options.kind) {
    case Pooling::max:
      options.indices = inputs.input("indices", parse_dtype(problem.text("indices", "i64")), pooled,
                                     positions(rows, columns, extents[1], last));
      break;
    case Pooling::average:
      break;
    case Pooling::l2:
      options.x = inputs.input("x", problem.dtype, image);
      options.y = inputs.input("y", problem.dtype, pooled, norm_values);
      break;
    case Pooling::weighted:
      options.weights = inputs.input("weights", problem.dtype, {rows.kernel, columns.kernel},
                                     weight_values(inputs.variant().values));
      break;
  }
  call.dx = inputs.output("dx", problem.dtype, image);
  return call;
}

Problem PoolBackward::describe(const Call& call) {
  const PoolBackwardOptions& options = call.options;
  const DType indices = options.kind == Pooling::max ? options.indices.dtype : DType::i64;
  return pool_text::describe_windows(call.dx.dtype, call.dx.shape, options)
      .dtype("indices", indices, DType::i64)
      .problem();
}

std::span<const ArgumentSpec> PoolBackward::arguments() {
  using Kind = ArgumentSpec::Kind;
  static constexpr std::array<ArgumentSpec, 15> specs{{
      {"dy", Kind::tensor, true, "N x C x OH x OW"},
      {"height", Kind::number, false, "H of the image; default: as many as the windows reach"},
      {"width", Kind::number, false, "W of the image"},
      {"kind", Kind::text, false, "default max", "max|average|l2|weighted"},
      {"kernel", Kind::text, false, "the window: N or NxM; default 2"},
      {"stride", Kind::text, false, "N or NxM; default the kernel's extents"},
      {"padding", Kind::text, false, "N or NxM; default 0"},
      {"dilation", Kind::text, false, "N or NxM; default 1"},
      {"ceil", Kind::flag, false, "partial windows at the end count"},
      {"valid", Kind::flag, false, "averages do not count the padding"},
      {"nhwc", Kind::flag, false, "dy is N x OH x OW x C"},
      {"indices", Kind::tensor, false, "of max: where the maxima are"},
      {"x", Kind::tensor, false, "of l2: pool's x"},
      {"y", Kind::tensor, false, "of l2: pool's y"},
      {"weights", Kind::tensor, false, "of weighted: as large as the window"},
  }};
  return specs;
}

void PoolBackward::invoke(Context& context, Invocation& call, Pick pick) {
  const Tensor& dy = call.tensors.at("dy");
  PoolBackwardOptions options;
  pool_text::read_windows(name, call, options);
  for (const auto& [tensor, to] : {std::pair{"indices", &options.indices},
                                   {"x", &options.x},
                                   {"y", &options.y},
                                   {"weights", &options.weights}}) {
    if (call.has(tensor)) *to = call.tensors.find(tensor)->second;
  }
  ConstTensorRef pooled = dy;
  if (pooled.rank() != 4) {
    reject(name, fmt::format("dy has {}; accepted: 4, N x C x OH x OW or, with --nhwc, "
                             "N x OH x OW x C",
                             axis_count(pooled.rank())));
  }
  pool_axes::to_nchw(pooled, options.channels_last);
  const auto reached = [&](int axis) {
    const pool_axes::Window window = pool_axes::window_of(options, axis);
    const std::int64_t step = window.stride == 0 ? window.kernel : window.stride;
    return static_cast<double>((pooled.shape[2 + axis] - 1) * step +
                               std::int64_t{window.kernel - 1} * window.dilation + 1 -
                               std::int64_t{2} * window.padding);
  };
  const auto height = static_cast<std::int64_t>(call.number("height", reached(0)));
  const auto width = static_cast<std::int64_t>(call.number("width", reached(1)));
  if (height < 1 || width < 1) {
    reject(name, fmt::format("the image is {} x {}; accepted: from 1 x 1 on", height, width));
  }
  const Extents image = pool_axes::given_order({pooled.shape[0], pooled.shape[1], height, width},
                                               options.channels_last);
  call.result = Tensor(dy.dtype(), image, context.device());
  pool_backward(context, dy, call.result, options, pick);
}

}  // namespace rung
