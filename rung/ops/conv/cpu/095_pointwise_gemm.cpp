// SPDX-License-Identifier: Apache-2.0
// conv / pointwise GEMM
//
// Idea     with filters of 1 x 1 an image is the second matrix already: its channels are rows, its
//          pixels columns. Nothing is gathered; gemm is called on views of w, x and y, with
//          bias and activation. With channels last pixels are rows, of all images at once if they
//          lie one behind the other.
// Changes  against threads: x is packed by gemm, in blocks that it multiplies by all filters.
// Cost     as gemm's threads.
// Limits   1 x 1, stride 1, no padding; pixels in one line. Only gemm's threads is called, not what
//          gemm would choose: its bits are the same for any number of threads.
// Tried    -
// Source   -
#include <algorithm>

#include "rung/core/integer.hpp"
#include "rung/cpu/isa.hpp"
#include "rung/ops/conv/layer.hpp"
#include "rung/ops/gemm/gemm.hpp"

namespace rung {
namespace {

using conv_layer::Gathered;

/// A layer of 1 x 1 whose pixels join_axes() could bring into one line.
bool is_product(const Gathered& g) {
  for (const conv_layer::SourceAxis& axis : g.axis) {
    if (axis.kernel != 1 || axis.step != 1 || axis.start != 0) return false;
  }
  return g.axis[0].places == 1 && g.axis[1].places == 1 && g.axis[2].places == g.axis[2].extent;
}

Support supports(const Conv::Args& args, const Context&) {
  if (!args.geometry.is_pointwise()) return unsupported("1 x 1, stride 1, no padding");
  return is_product(conv_layer::forward(args)) ? supported
                                               : unsupported("pixels of x and y in one line");
}

double estimate(const Conv::Args& args, const Context& context) {
  const double rate = cpu::isa() == cpu::Isa::avx512 ? 200e9 : 90e9;
  constexpr double an_element = 0.08e-9, a_call = 1e-6, a_thread = 2e-6;
  const Gathered g = conv_layer::forward(args);
  // Where pixels are columns, those of an image end in a vector that is not full.
  const std::int64_t places = g.axis[2].places;
  const bool rows = g.y_strides[1] == 1;
  const auto pixels =
      static_cast<double>(g.images * (rows ? places : round_up(places, std::int64_t{32})));
  const auto q = static_cast<double>(g.q);
  const double m = std::max(6.0, static_cast<double>(g.m));
  const double work = pixels * q * (m * 2 / rate + an_element) / context.threads();
  const double team = context.threads() > 1 ? a_thread : 0;
  return static_cast<double>(g.groups) * (a_call + work + team);
}

/// The channels of a group: matrices x channels x pixels, or matrices x pixels x channels.
template <class Ref>
Ref matrices(const Ref& tensor, std::int64_t group, std::int64_t channels, std::int64_t pixels,
             std::int64_t pixel_stride, bool pixels_as_rows) {
  using Byte = std::conditional_t<std::is_same_v<Ref, TensorRef>, std::byte, const std::byte>;
  Ref made = tensor;
  const std::int64_t element = static_cast<std::int64_t>(size_of(tensor.dtype));
  made.data = static_cast<Byte*>(tensor.data) + group * channels * tensor.strides[1] * element;
  const std::int64_t images = tensor.shape[0];
  if (!pixels_as_rows) {
    made.shape = {images, channels, pixels};
    made.strides = {tensor.strides[0], tensor.strides[1], pixel_stride};
    return made;
  }
  made.shape = {images, pixels, channels};
  made.strides = {tensor.strides[0], pixel_stride, tensor.strides[1]};
  return made;
}

/// All images as one matrix, where their pixels are one line.
template <class Ref>
void join_images(Ref& tensor) {
  tensor.shape = {tensor.shape[0] * tensor.shape[1], tensor.shape[2]};
  tensor.strides = {tensor.strides[1], tensor.strides[2]};
}

void run(const Conv::Args& args, Context& context) {
  if (args.y.empty()) return;
  const Gathered g = conv_layer::forward(args);
  const std::int64_t pixels = g.axis[2].places;
  const bool rows = g.y_strides[1] == 1 && g.m > 1;  // pixels are rows
  const auto behind = [&](const std::int64_t(&strides)[5]) {
    return g.images == 1 || strides[0] == pixels * strides[4];
  };
  const auto element = static_cast<std::int64_t>(size_of(g.dtype));
  for (std::int64_t group = 0; group < g.groups; ++group) {
    ConstTensorRef x = matrices(args.x, group, g.q, pixels, g.x_strides[4], rows);
    TensorRef y = matrices(args.y, group, g.m, pixels, g.y_strides[4], rows);
    ConstTensorRef w = args.w;
    w.data = static_cast<const std::byte*>(w.data) + group * g.w_group * element;
    w.shape = rows ? Extents{g.q, g.m} : Extents{g.m, g.q};
    w.strides =
        rows ? Extents{g.w_strides[1], g.w_strides[0]} : Extents{g.w_strides[0], g.w_strides[1]};
    if (rows && behind(g.x_strides) && behind(g.y_strides)) {
      join_images(x);
      join_images(y);
    }
    GemmOptions options{.bias = {}, .activation = args.options.activation};
    if (args.has_bias()) {
      options.bias = args.options.bias;
      options.bias.data = static_cast<const std::byte*>(args.options.bias.data) +
                          group * g.m * g.bias_stride * element;
      options.bias.shape = rows ? Extents{g.m} : Extents{g.m, 1};
      options.bias.strides = rows ? Extents{g.bias_stride} : Extents{g.bias_stride, 1};
    }
    if (rows) {
      gemm(context, x, w, y, options, {"threads"});
    } else {
      gemm(context, w, x, y, options, {"threads"});
    }
  }
}

const Rung<Conv> self{{.name = "pointwise_gemm",
                       .step = 95,
                       .after = "threads",
                       .supports = supports,
                       .estimate = estimate,
                       .run = run}};

}  // namespace
}  // namespace rung
