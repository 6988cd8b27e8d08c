// SPDX-License-Identifier: Apache-2.0
// The operator object of stencil, its rung list, and the argument checks of every call.
#include "rung/ops/stencil/op/stencil.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"
#include "rung/ops/stencil/op/steps.hpp"

namespace rung {
namespace {

// Initialized before any dynamic initializer runs, so rungs of any file may push themselves.
constinit RungList<Stencil> rung_list;
const Operator<Stencil> self;

/// Reverses a tensor along every axis.
void turn_round(ConstTensorRef& tensor) {
  const auto bytes = static_cast<std::int64_t>(size_of(tensor.dtype));
  for (int axis = 0; axis < tensor.rank(); ++axis) {
    const std::int64_t last = (tensor.shape[axis] - 1) * tensor.strides[axis];
    tensor.data = static_cast<const std::byte*>(tensor.data) + last * bytes;
    tensor.strides[axis] = -tensor.strides[axis];
  }
}

/// Extends a mask to three axes by leading axes of extent 1.
void add_axes_in_front(ConstTensorRef& tensor) {
  const int added = 3 - tensor.rank();
  Extents shape{1, 1, 1};
  Extents strides{0, 0, 0};
  for (int axis = 0; axis < tensor.rank(); ++axis) {
    shape[axis + added] = tensor.shape[axis];
    strides[axis + added] = tensor.strides[axis];
  }
  tensor.shape = shape;
  tensor.strides = strides;
}

/// Returns the extents of the mask that the vectors define. Throws unless `across` is given, and
/// `down` whenever `through` is.
Extents extents_of_vectors(const Stencil::Args& args, DType type) {
  const ConstTensorRef* const vectors[] = {&args.through, &args.down, &args.across};
  constexpr std::string_view names[] = {"through", "down", "across"};
  Extents extents;
  for (int i = 0; i < 3; ++i) {
    const ConstTensorRef& vector = *vectors[i];
    const auto name = names[i];
    if (!is_given(vector)) {
      if (extents.rank == 0) continue;
      reject(Stencil::name,
             fmt::format("{} is given, {} is not; accepted: across, across and down, "
                         "or all three vectors",
                         names[i - 1], name));
    }
    if (vector.rank() != 1) {
      reject(Stencil::name,
             fmt::format("{} is {}; accepted: one axis", name, to_string(vector.shape)));
    }
    require_dtype(Stencil::name, vector, name, {type});
    extents[extents.rank++] = vector.shape[0];
  }
  return extents;
}

/// Returns the extents of the mask, and stores in `args` how the weights were given.
Extents extents_of_mask(Stencil::Args& args) {
  const bool vectors = is_given(args.across) || is_given(args.down) || is_given(args.through);
  const int ways = (is_given(args.mask) ? 1 : 0) + (vectors ? 1 : 0) + (args.window.rank != 0);
  if (ways != 1) {
    reject(Stencil::name,
           fmt::format("{} of mask, vectors and window are given; accepted: one of them",
                       ways == 0 ? "none" : std::to_string(ways)));
  }
  const DType type = args.x.dtype == DType::f64 ? DType::f64 : DType::f32;
  if (vectors) {
    args.weights = Stencil::Weights::separable;
    return extents_of_vectors(args, type);
  }
  if (args.window.rank != 0) {
    args.weights = Stencil::Weights::ones;
    return args.window;
  }
  args.weights = Stencil::Weights::mask;
  require_dtype(Stencil::name, args.mask, "mask", {type});
  return args.mask.shape;
}

void require_types(const Stencil::Args& args) {
  require_dtype(Stencil::name, args.x, "x",
                {DType::f32, DType::f64, DType::f16, DType::bf16, DType::u8});
  const bool widens = args.y.dtype == DType::f32 && args.x.dtype != DType::f64;
  if (args.y.dtype == args.x.dtype || widens) return;
  reject(
      Stencil::name,
      fmt::format("x is {} and y {}; accepted: the same, or f32 for y where x is f16, bf16 or u8",
                  to_string(args.x.dtype), to_string(args.y.dtype)));
}

void require_numbers(const Stencil::Args& args) {
  require_choice(Stencil::name, args.edge, StencilEdge::wrap, "edge");
  if (args.iterations < 1) {
    reject(Stencil::name, fmt::format("iterations is {}; accepted: 1 or more", args.iterations));
  }
  const bool fits = args.x.dtype == DType::f64 || std::isfinite(static_cast<float>(args.scale));
  if (!std::isfinite(args.scale) || !fits) {
    reject(Stencil::name,
           fmt::format("scale is {}; accepted: what f32 (for f64: f64) can hold", args.scale));
  }
}

void require_extents(const Stencil::Args& args, const Extents& taps) {
  const std::string_view given = args.weights == Stencil::Weights::ones ? "window" : "mask";
  bool fits = taps.rank >= 1 && taps.rank <= 3;
  for (int axis = 0; fits && axis < taps.rank; ++axis) {
    fits = taps[axis] >= 1 && taps[axis] <= Stencil::max_taps;
  }
  if (!fits) {
    reject(Stencil::name, fmt::format("{} is {}; accepted: 1 to 3 axes of 1 to {} elements", given,
                                      to_string(taps), Stencil::max_taps));
  }
  if (args.x.rank() < taps.rank) {
    reject(Stencil::name, fmt::format("x is {}, {} {}; accepted: an x of as many axes, or more",
                                      to_string(args.x.shape), given, to_string(taps)));
  }
  bool anchored = args.anchor.rank == 0 || args.anchor.rank == taps.rank;
  for (int axis = 0; anchored && axis < args.anchor.rank; ++axis) {
    anchored = args.anchor[axis] >= 0 && args.anchor[axis] < taps[axis];
  }
  if (!anchored) {
    reject(Stencil::name, fmt::format("anchor is {}; accepted: an index of an element of {}, {}",
                                      to_string(args.anchor), given, to_string(taps)));
  }
}

}  // namespace

RungList<Stencil>& Stencil::rungs() { return rung_list; }

void Stencil::bind(Args& args) {
  require_list(name, args.window, "window");
  require_list(name, args.anchor, "anchor");
  const Extents& shape = args.x.shape;
  require_shape(name, args.y, "y", shape);
  require_types(args);
  require_numbers(args);
  const Extents taps = extents_of_mask(args);
  require_extents(args, taps);
  args.axes = taps.rank;
  const int first = shape.rank - taps.rank;
  args.batch = collapse<2>(shape, {args.x.strides, args.y.strides}, (AxisSet{1} << first) - 1);
  for (int i = 0; i < taps.rank; ++i) {
    Axis& axis = args.axis[3 - taps.rank + i];
    axis.extent = shape[first + i];
    axis.x = args.x.strides[first + i];
    axis.y = args.y.strides[first + i];
    axis.taps = static_cast<int>(taps[i]);
    axis.origin = static_cast<int>(args.anchor.rank == 0 ? taps[i] / 2 : args.anchor[i]);
    if (args.convolution) axis.origin = axis.taps - 1 - axis.origin;
  }
  for (ConstTensorRef* weights : {&args.mask, &args.across, &args.down, &args.through}) {
    if (is_given(*weights) && args.convolution) turn_round(*weights);
  }
  if (args.weights == Weights::mask) add_axes_in_front(args.mask);
}

namespace stencil_detail {

Stencil::Args one_step(const Stencil::Args& args, const ConstTensorRef& x, const TensorRef& y) {
  // Mask and anchor are resolved already: only addresses, strides and the batch are derived again.
  Stencil::Args step = args;
  step.x = x;
  step.y = y;
  step.iterations = 1;
  const int first = x.rank() - args.axes;
  step.batch = collapse<2>(x.shape, {x.strides, y.strides}, (AxisSet{1} << first) - 1);
  for (int i = 0; i < args.axes; ++i) {
    step.axis[3 - args.axes + i].x = x.strides[first + i];
    step.axis[3 - args.axes + i].y = y.strides[first + i];
  }
  return step;
}

std::size_t step_bytes(const Stencil::Args& args) {
  if (args.iterations == 1) return 0;
  constexpr std::size_t alignment = 256;
  const std::size_t bytes = static_cast<std::size_t>(args.y.size()) * size_of(args.y.dtype);
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace stencil_detail

void stencil(Context& context, const ConstTensorRef& x, const ConstTensorRef& mask,
             const TensorRef& y, const StencilOptions& options, Pick pick) {
  call<Stencil>(context,
                {.x = x,
                 .mask = mask,
                 .y = y,
                 .window = options.window,
                 .anchor = options.anchor,
                 .edge = options.edge,
                 .convolution = options.convolution,
                 .scale = options.scale,
                 .iterations = options.iterations},
                pick);
}

void stencil_separable(Context& context, const ConstTensorRef& x, const ConstTensorRef& across,
                       const ConstTensorRef& down, const ConstTensorRef& through,
                       const TensorRef& y, const StencilOptions& options, Pick pick) {
  call<Stencil>(context,
                {.x = x,
                 .across = across,
                 .down = down,
                 .through = through,
                 .y = y,
                 .window = options.window,
                 .anchor = options.anchor,
                 .edge = options.edge,
                 .convolution = options.convolution,
                 .scale = options.scale,
                 .iterations = options.iterations},
                pick);
}

}  // namespace rung
