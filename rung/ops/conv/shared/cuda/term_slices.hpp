// SPDX-License-Identifier: Apache-2.0
// Split-K for layers of few tiles: the terms of a tile are partitioned into slices, one block each,
// whose sums a second kernel adds. The number of slices depends on the shape alone, so that all
// devices add in the same order.
#pragma once

#include "rung/ops/conv/shared/cuda/layer.hpp"
#include "rung/ops/conv/shared/cuda/partial_sums.hpp"
#include "rung/ops/conv/shared/cuda/tile_facts.hpp"
#include "rung/ops/conv/shared/cuda/tiles.hpp"

namespace rung::conv_cuda::inline RUNG_TARGET {

/// Adds the dense partial sums of all slices and stores y, with bias and activation. Channels are
/// innermost in the sums if they are innermost in y.
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

/// Returns the slices of a layer of `tiles` tiles, whose blocks take `depth` terms per step: enough
/// for two blocks per SM of a large device, with at least four steps each.
inline TermSlices slices_of(const Gathered& g, double tiles, int depth) {
  constexpr double enough_blocks = 264;
  constexpr std::int64_t few_steps = 4;
  if (!(tiles > 0)) return {};
  // A phase has the terms of the whole layer divided by the number of phases; the first phases have
  // more.
  const std::int64_t steps = ceil_div(g.terms() / conv_layer::phases_of(g), std::int64_t{depth});
  const auto wanted = static_cast<std::int64_t>(smaller(enough_blocks / tiles, enough_blocks));
  return {.count = clamped(wanted, std::int64_t{1}, larger(steps / few_steps, std::int64_t{1})),
          .elements = g.groups * g.m * g.pixels()};
}

/// Returns the bytes of the partial sums of one slice; 0 if there is only one slice.
inline double sum_bytes(const TermSlices& slices, std::size_t element) {
  return slices.count == 1 ? 0
                           : static_cast<double>(slices.elements) * static_cast<double>(element);
}

/// Returns the layer whose y is partial sums in the context's workspace; the layer itself if there
/// is one slice.
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

/// Computes a layer: multiply(layer), then, if there are several slices, the kernel finish(layer,
/// sums, slices), which calls finish_slices().
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
