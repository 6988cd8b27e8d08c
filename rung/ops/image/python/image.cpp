// SPDX-License-Identifier: Apache-2.0
// Python bindings of image.
#include "rung/ops/image/image.hpp"

#include "python/module/call.hpp"

namespace rung::python {
namespace {

constexpr std::string_view filter_names[] = {"grey", "box", "gaussian", "unsharp", "sobel"};
constexpr std::string_view weights_names[] = {"tenths", "bt601", "bt709", "tenths_by_term"};
constexpr std::string_view edge_names[] = {"clamp", "zero"};

PyObject* run_image(Call& call) {
  ImageOptions options{.filter = call.word<ImageFilter>("filter", filter_names)};
  const Array x = call.in("x");
  Array y = call.out("out");
  options.weights = call.word<GreyWeights>("weights", weights_names);
  options.radius = call.integer("radius");
  options.sigma = call.real("sigma");
  options.amount = call.real("amount");
  options.planar = call.flag();
  options.edge = call.word<ImageEdge>("edge", edge_names);
  options.truncate = call.flag();
  const bool keep_alpha = call.flag();
  Extents shape = x.shape();
  if (options.filter == ImageFilter::grey && shape.rank >= 3) {
    std::int64_t& channels = shape[shape.rank - (options.planar ? 3 : 1)];
    if (keep_alpha && channels != 4 && !y.given()) {
      call.reject("keep_alpha is given, x has " + std::to_string(channels) +
                  " channels; accepted: 4");
    }
    channels = keep_alpha ? 2 : 1;
  }
  y.make_if_left_out(x, shape, x.dtype());
  call.run([&](Context& context, Pick pick) { image(context, x, y, options, pick); });
  return y.result();
}

PyMethodDef functions[] = {bound<"image", run_image>(), {}};
const Binding self{functions};

}  // namespace
}  // namespace rung::python
