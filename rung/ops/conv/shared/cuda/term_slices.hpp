// SPDX-License-Identifier: Apache-2.0
// Layers of few tiles: their terms are cut into slices, a block each, whose sums a second kernel
// adds. How many there are depends on the shape alone, so that all devices add in the same order.
#pragma once

#include "rung/ops/conv/shared/cuda/layer.hpp"
#include "rung/ops/conv/shared/cuda/partial_sums.hpp"
#include "rung/ops/conv/shared/cuda/tile_facts.hpp"
#include "rung/ops/conv/shared/cuda/tiles.hpp"

namespace rung::conv_cuda::inline RUNG_TARGET {

/// y, from the partial sums of all slices: dense, of y's channels innermost where y's are.
template <class T>
__device__ __forceinline__ void finish_slices(const Gathered& g, const Accumulator<T>* sums,
                                              const TermSlices& slices) {
  const bool innermost = g.y_strides[1] == 1;
  const std::int64_t channels = g.groups * g.m;
  add_partial_sums(sums, slices.count, slices.elements, [&](std::int64_t i, Accumulator<T> sum) {
    std::int64_t channel = 0;
    if (innermost) channel = take_channel(i, channels);
    std::int64_t at = take_axis(i, g.axis[2].places) * g.y_strides[4];
    at += take_axis(i, g.axis[1].places) * g.y_strides[3];
    at += take_axis(i, g.axis[0].places) * g.y_strides[2];
    if (!innermost) channel = take_channel(i, channels);
    at += i * g.y_strides[0] + channel * g.y_strides[1];
    if (g.bias != nullptr) {
      sum += convert<Accumulator<T>>(static_cast<const T*>(g.bias)[channel * g.bias_stride]);
    }
    static_cast<T*>(g.y)[at] = convert<T>(activate<T>(g.activation, sum));
  });
}

// --- on the host ---------------------------------------------------------------------------------

/// Slices of a layer in so many tiles, whose block takes `depth` terms at a time: blocks for two on
/// each SM of a large device, of at least four steps.
inline TermSlices slices_of(const Gathered& g, double tiles, int depth) {
  constexpr double enough_blocks = 264;
  constexpr std::int64_t few_steps = 4;
  if (!(tiles > 0)) return {};
  // A phase has as many terms as the whole layer, divided by the phases; the first ones have more.
  const std::int64_t steps = ceil_div(g.terms() / conv_layer::phases_of(g), std::int64_t{depth});
  const auto wanted = static_cast<std::int64_t>(smaller(enough_blocks / tiles, enough_blocks));
  return {.count = clamped(wanted, std::int64_t{1}, larger(steps / few_steps, std::int64_t{1})),
          .elements = g.groups * g.m * g.pixels()};
}

/// Bytes of a slice's sums, or 0: there is one.
inline double sum_bytes(const TermSlices& slices, std::size_t element) {
  return slices.count == 1 ? 0
                           : static_cast<double>(slices.elements) * static_cast<double>(element);
}

/// The layer whose y is partial sums, in the context's workspace; the layer itself where there is
/// one slice.
template <class T>
Gathered into_slices(const Gathered& g, const TermSlices& slices, Context& context) {
  if (slices.count == 1) return g;
  Gathered made = g;
  const Extents bytes{slices.count, slices.elements, sizeof(Accumulator<T>)};
  made.y = context.workspace(static_cast<std::size_t>(bytes.product()));
  const std::int64_t channels = g.groups * g.m;
  const bool innermost = g.y_strides[1] == 1;
  const std::int64_t along = innermost ? channels : 1;
  made.y_strides[4] = along;
  made.y_strides[3] = made.y_strides[4] * g.axis[2].places;
  made.y_strides[2] = made.y_strides[3] * g.axis[1].places;
  made.y_strides[1] = innermost ? 1 : g.places();
  made.y_strides[0] = channels * g.places();
  return made;
}

/// Makes a layer: multiply(layer, slices), then finish(layer, sums, slices), a kernel with
/// finish_slices(), where there are any.
template <class T, class Multiply>
void with_slices(const Gathered& g, const TermSlices& slices, Context& context,
                 void (*finish)(Gathered, const Accumulator<T>*, TermSlices), Multiply&& multiply) {
  const Gathered sliced = into_slices<T>(g, slices, context);
  multiply(sliced);
  if (slices.count == 1) return;
  launch(context, sum_grid<Accumulator<T>>(slices.elements, slices.count), finish, g,
         static_cast<const Accumulator<T>*>(sliced.y), slices);
}

}  // namespace rung::conv_cuda::inline RUNG_TARGET
