// SPDX-License-Identifier: Apache-2.0
// Kernels of conv's CPU rungs, for this machine's instruction set, and the layers that they
// support, including the gradients, which are gathered layers too. Each is defined in the rung that
// its comment names.
#pragma once

#include <algorithm>
#include <string_view>

#include "rung/core/context.hpp"
#include "rung/core/work.hpp"
#include "rung/cpu/isa.hpp"
#include "rung/ops/conv/shared/gathered.hpp"

namespace rung::conv_cpu {

using conv_layer::Gathered;

/// Computes a layer as direct_simd, padded_planes or padded_pixels. Each adds an element's terms in
/// its own order.
void direct_on(const Gathered& g, Context& context, int threads);
void planes_on(const Gathered& g, Context& context, int threads);
void pixels_on(const Gathered& g, Context& context, int threads);

/// Returns the work of direct_simd, padded_planes or padded_pixels: multiply-adds per pixel, in
/// whole tiles, and elements gathered or copied.
Work direct_facts(const Gathered& g, int threads);
Work planes_facts(const Gathered& g, int threads);
Work pixels_facts(const Gathered& g, int threads);

/// Kernel of the rung threads for a layer. The choice must not depend on the number of threads, so
/// that results are bitwise the same for any number.
struct Way {
  void (*layer_on)(const Gathered& g, Context& context, int threads);
  Work (*facts)(const Gathered& g, int threads);
  std::string_view name;
};
const Way& fastest_way(const Gathered& g, const Context& context);
/// Returns the work of a layer's fastest kernel, without a rates key: the same rates serve all
/// kernels, which differ in their work.
inline Work fastest_facts(const Gathered& g, const Context& context, int threads) {
  Work work = fastest_way(g, context).facts(g, threads);
  work.path = "";
  return work;
}

/// Returns the number of vectors that hold as many elements as one vector of f32: 2 for f64.
inline double wide_of(const Gathered& g) { return g.dtype == DType::f64 ? 2 : 1; }

/// Returns the number of f32 elements of a vector.
inline std::int64_t vector_lanes() { return cpu::isa() == cpu::Isa::avx512 ? 16 : 8; }

/// Returns the work of a kernel with `products` multiply-adds per pixel, in whole tiles, and
/// `gathered` elements gathered or copied for them.
inline Work pixel_facts(const Gathered& g, Amount products, Amount gathered, int threads) {
  const auto pixels = static_cast<double>(g.groups * g.pixels());
  return {.operations = 2 * pixels * wide_of(g) * products,
          .blocks = pixels,
          .steps = gathered,
          .threads = threads};
}

/// Returns the bytes that a layer loads and stores.
inline double bytes_of(const Gathered& g) {
  double image = static_cast<double>(g.images * g.groups * g.q);
  for (const conv_layer::SourceAxis& axis : g.axis) image *= static_cast<double>(axis.extent);
  const auto m = static_cast<double>(g.groups * g.m);
  return (image + m * static_cast<double>(g.pixels() + g.terms())) *
         static_cast<double>(size_of(g.dtype));
}

/// Returns the number of threads that gives each at least 2^17 of `products` multiply-adds.
inline int threads_for(double products, int available) {
  constexpr double of_each = 1 << 17;
  return static_cast<int>(std::clamp(products / of_each, 1.0, double{1} * available));
}
inline double products_of(const Gathered& g) {
  return static_cast<double>(g.groups) * static_cast<double>(g.m) *
         static_cast<double>(g.pixels()) * static_cast<double>(g.terms());
}

/// Returns whether pixels are rows and channels columns: channels are last and fill half a vector.
inline bool channels_are_columns(const Gathered& g) {
  constexpr std::int64_t enough_channels = 8;
  return g.y_strides[1] == 1 && g.m >= enough_channels;
}

/// Interface of the rung depthwise: its kernel for vectors of channels, and its work. The kernel
/// requires one filter per channel and contiguous channels; a strided gradient is first split into
/// phases.
inline constexpr std::int64_t max_depthwise_taps = 128;  // limit of arrays on the stack
inline bool has_channel_vectors(const Gathered& g) {
  return g.q <= 1 && g.m == 1 && g.groups > 1 && g.taps() <= max_depthwise_taps &&
         g.x_strides[1] == 1 && g.y_strides[1] == 1 && g.dtype != DType::f64;
}
void channel_vectors_on(const Gathered& g, Context& context, int threads);
Work channel_vectors_facts(const Gathered& g, int threads);

}  // namespace rung::conv_cpu
