// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter: the problems that check and bench use, their tensors, and the command line.
#include <fmt/format.h>

#include <array>
#include <string_view>

#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"
#include "rung/harness/facts.hpp"
#include "rung/ops/conv/shared/axes.hpp"
#include "rung/ops/conv/shared/facts.hpp"
#include "rung/ops/conv/shared/gradient_problems.hpp"
#include "rung/ops/conv/shared/survey_layers.hpp"
#include "rung/ops/conv/shared/text.hpp"
#include "rung/ops/conv_backward_filter/op/conv_backward_filter.hpp"

namespace rung {
namespace {

const Survey<ConvBackwardFilter> survey{conv_survey::layers};

std::vector<std::string> facts_of(const Problem& problem) {
  return conv_facts::facts_of<ConvBackwardFilterOptions>(ConvBackwardFilter::name, problem,
                                                         {"x", "dw", "dy"}, 1);
}
const Facts<ConvBackwardFilter> facts{facts_of};

}  // namespace

std::vector<Problem> ConvBackwardFilter::check_problems(Backend backend) {
  return conv_gradient::check_problems(backend);
}
std::vector<Problem> ConvBackwardFilter::bench_problems(Backend backend) {
  return conv_gradient::bench_problems(backend);
}

ConvBackwardFilter::Call ConvBackwardFilter::make(const Problem& problem, Inputs& inputs) {
  problem.expect(name, problem.extents.size(), {"out", "k", "s", "p", "d", "g", "nhwc"});
  Call call;
  const conv_text::Shapes shapes = conv_text::read_layer(name, problem, call.options);
  call.x = inputs.input("x", problem.dtype, shapes.x);
  call.dy = inputs.input("dy", problem.dtype, shapes.y);
  call.dw = inputs.output("dw", problem.dtype, shapes.w);
  return call;
}

Problem ConvBackwardFilter::describe(const Call& call) {
  return conv_text::describe_layer(call.x.dtype, call.x.shape, call.dw.shape, call.options)
      .problem();
}

std::span<const ArgumentSpec> ConvBackwardFilter::arguments() {
  using Kind = ArgumentSpec::Kind;
  static constexpr std::array<ArgumentSpec, 8> specs{{
      {"x", Kind::tensor, true, "N x C x H x W; also of one and three dimensions"},
      {"dy", Kind::tensor, true, "N x K x OH x OW"},
      {"kernel", Kind::text, false, "the filter: N, or as in NxM; default 3"},
      {"stride", Kind::text, false, "N, or as in NxM; default 1"},
      {"padding", Kind::text, false, "default 0"},
      {"dilation", Kind::text, false, "default 1"},
      {"groups", Kind::number, false, "default 1"},
      {"nhwc", Kind::flag, false, "channels are the last axis, of the result too"},
  }};
  return specs;
}

void ConvBackwardFilter::invoke(Context& context, Invocation& call, Pick pick) {
  const Tensor& x = call.tensors.at("x");
  const Tensor& dy = call.tensors.at("dy");
  const int rank = x.shape().rank;
  if (rank < 3 || rank > 5 || dy.shape().rank != rank) {
    reject(name, fmt::format("x has {} and dy {}; accepted: 3 to 5, as many of both",
                             axis_count(rank), dy.shape().rank));
  }
  ConvBackwardFilterOptions options;
  conv_text::read_windows(name, call, rank - 2, true, options);
  options.groups = static_cast<int>(call.integer(name, "groups", 1, {1, INT32_MAX}));
  options.channels_last = call.has("nhwc");
  const PerAxis kernel = parse_per_axis(name, "kernel", call.text("kernel", "3"), rank - 2);
  ConstTensorRef image = x;
  ConstTensorRef results = dy;
  conv_axes::to_five(image, options.channels_last);
  conv_axes::to_five(results, options.channels_last);
  Extents filter{results.shape[1], image.shape[1] / options.groups};
  filter.rank = rank;
  for (int axis = 2; axis < rank; ++axis) {
    filter[axis] = kernel.along(axis - 2);
    if (filter[axis] < 1) {
      reject(name, fmt::format("kernel is {}; accepted: from 1 on", filter[axis]));
    }
  }
  call.result =
      Tensor(x.dtype(), conv_axes::given_order(filter, options.channels_last), context.device());
  conv_backward_filter(context, x, dy, call.result, options, pick);
}

}  // namespace rung
