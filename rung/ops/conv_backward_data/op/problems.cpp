// SPDX-License-Identifier: Apache-2.0
// conv_backward_data: the problems that check and bench use, their tensors, and the command line.
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
#include "rung/ops/conv_backward_data/op/conv_backward_data.hpp"

namespace rung {
namespace {

const Survey<ConvBackwardData> survey{conv_survey::layers};

std::vector<std::string> facts_of(const Problem& problem) {
  return conv_facts::facts_of<ConvBackwardDataOptions>(ConvBackwardData::name, problem,
                                                       {"dx", "w", "dy"}, 0);
}
const Facts<ConvBackwardData> facts{facts_of};

}  // namespace

std::vector<Problem> ConvBackwardData::check_problems(Backend backend) {
  return conv_gradient::check_problems(backend);
}
std::vector<Problem> ConvBackwardData::bench_problems(Backend backend) {
  return conv_gradient::bench_problems(backend);
}

ConvBackwardData::Call ConvBackwardData::make(const Problem& problem, Inputs& inputs) {
  problem.expect(name, problem.extents.size(), {"out", "k", "s", "p", "d", "g", "nhwc"});
  Call call;
  const conv_text::Shapes shapes = conv_text::read_layer(name, problem, call.options);
  call.dy = inputs.input("dy", problem.dtype, shapes.y);
  call.w = inputs.input("w", problem.dtype, shapes.w);
  call.dx = inputs.output("dx", problem.dtype, shapes.x);
  return call;
}

Problem ConvBackwardData::describe(const Call& call) {
  return conv_text::describe_layer(call.dx.dtype, call.dx.shape, call.w.shape, call.options)
      .problem();
}

std::span<const ArgumentSpec> ConvBackwardData::arguments() {
  using Kind = ArgumentSpec::Kind;
  static constexpr std::array<ArgumentSpec, 8> specs{{
      {"dy", Kind::tensor, true, "N x K x OH x OW; also of one and three dimensions"},
      {"w", Kind::tensor, true, "K x C/G x filter"},
      {"image", Kind::text, false, "extents of x, as in NxM; default: as far as filters reach"},
      {"stride", Kind::text, false, "N, or as in NxM; default 1"},
      {"padding", Kind::text, false, "default 0"},
      {"dilation", Kind::text, false, "default 1"},
      {"groups", Kind::number, false, "default 1"},
      {"nhwc", Kind::flag, false, "channels are the last axis, of w too"},
  }};
  return specs;
}

void ConvBackwardData::invoke(Context& context, Invocation& call, Pick pick) {
  const Tensor& dy = call.tensors.at("dy");
  const Tensor& w = call.tensors.at("w");
  const int rank = dy.shape().rank;
  if (rank < 3 || rank > 5 || w.shape().rank != rank) {
    reject(name, fmt::format("dy has {} and w {}; accepted: 3 to 5, as many of both",
                             axis_count(rank), w.shape().rank));
  }
  ConvBackwardDataOptions options;
  conv_text::read_windows(name, call, rank - 2, true, options);
  options.groups = static_cast<int>(call.integer(name, "groups", 1, {1, INT32_MAX}));
  options.channels_last = call.has("nhwc");
  ConstTensorRef results = dy;
  ConstTensorRef filter = w;
  conv_axes::to_five(results, options.channels_last);
  conv_axes::to_five(filter, options.channels_last);
  Extents image{results.shape[0], filter.shape[1] * options.groups};
  image.rank = rank;
  PerAxis given;
  if (call.has("image")) {
    given = parse_per_axis(name, "image", call.text("image", ""), rank - 2);
  }
  for (int axis = 5 - rank; axis < 3; ++axis) {
    const int at = axis + rank - 3;
    const conv_axes::Window window = conv_axes::window_of(options, axis, rank - 2);
    image[at] = given.count == 0 ? (results.shape[2 + axis] - 1) * window.stride +
                                       (filter.shape[2 + axis] - 1) * window.dilation + 1 -
                                       std::int64_t{2} * window.padding
                                 : given.along(at - 2);
    if (image[at] < 1) {
      reject(name, fmt::format("{}: extent {} of x; accepted: from 1 on",
                               conv_axes::axis_names[axis], image[at]));
    }
  }
  call.result =
      Tensor(dy.dtype(), conv_axes::given_order(image, options.channels_last), context.device());
  conv_backward_data(context, dy, w, call.result, options, pick);
}

}  // namespace rung
