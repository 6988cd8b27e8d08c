// SPDX-License-Identifier: Apache-2.0
// A gathered layer of 1 x 1 filters as products by gemm, on views of its tensors: conv's and its
// gradient's for x.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include "rung/core/integer.hpp"
#include "rung/cpu/isa.hpp"
#include "rung/ops/conv/shared/gathered.hpp"
#include "rung/ops/gemm/op/gemm.hpp"

namespace rung::conv_cpu {

using conv_layer::Gathered;

/// Whether pixels are a line in both tensors, after join_axes().
inline bool is_product(const Gathered& g) {
  for (const conv_layer::SourceAxis& axis : g.axis) {
    if (axis.kernel != 1 || axis.step != 1 || axis.start != 0 || axis.divisor != 1) return false;
  }
  return g.axis[0].places == 1 && g.axis[1].places == 1 && g.axis[2].places == g.axis[2].extent;
}

/// Pixels are rows of y's matrix, with channels last.
inline bool pixels_are_rows(const Gathered& g) { return g.y_strides[1] == 1 && g.m > 1; }

/// Few channels are written: bound by reading x, which gemm's own kernels for few rows then read
/// where it is. Each element's sum is the same for any number of threads.
inline bool reads_in_place(const Gathered& g) {
  constexpr std::int64_t few_channels_written = 8;
  return !pixels_are_rows(g) && g.m <= few_channels_written && g.q > 0 && g.q <= 65536 &&
         g.axis[2].places > 1 && g.x_strides[4] == 1 && g.y_strides[4] == 1 &&
         (g.dtype == DType::f32 || g.dtype == DType::f64);
}

/// The same where channels are adjacent, in x too: gemm's `small` reads x where it is, as long as
/// the weights stay in L1 or L2.
inline bool reads_rows_in_place(const Gathered& g) {
  constexpr std::int64_t few_channels_written = 64, max_channels_read = 2048;
  return pixels_are_rows(g) && g.x_strides[1] == 1 && g.m <= few_channels_written && g.q > 0 &&
         g.q <= max_channels_read && (g.dtype == DType::f32 || g.dtype == DType::f64);
}

inline double pointwise_seconds(const Gathered& g, int threads) {
  const double rate = cpu::isa() == cpu::Isa::avx512 ? 200e9 : 90e9;
  constexpr double an_element = 0.08e-9, a_call = 1e-6, a_thread = 2e-6, a_small_strip = 14e-9;
  constexpr double an_element_in_place = 0.05e-9, a_sweep = 3e-9, a_result = 0.25e-9;
  const std::int64_t places = g.axis[2].places;
  const bool rows = pixels_are_rows(g);
  const auto q = static_cast<double>(g.q);
  const auto m = static_cast<double>(g.m);
  const double team = threads > 1 ? a_thread : 0;
  const auto groups = static_cast<double>(g.groups);
  if (reads_in_place(g)) {
    const auto elements = static_cast<double>(g.pixels()) * q;
    const double an_image = g.m == 1 ? 0.05e-6 : 0.4e-6;
    const double work = elements * (m * 2 / rate + an_element_in_place) +
                        static_cast<double>(g.pixels()) * m * a_result +
                        static_cast<double>(g.images) * (an_image + q * a_sweep);
    return groups * (0.5e-6 + work / threads + team);
  }
  if (reads_rows_in_place(g)) {
    // 0.6 of the times of a Xeon: as estimates of the other rungs, fitted to Zen, stand to theirs.
    constexpr double a_vector = 0.15e-9, a_written = 0.05e-9, a_pixel = 0.6e-9;
    const std::size_t lanes = (cpu::isa() == cpu::Isa::avx512 ? 64 : 32) / size_of(g.dtype);
    const double a_row = q * std::ceil(m / static_cast<double>(lanes)) * a_vector + m * a_written;
    const double work = static_cast<double>(g.pixels()) * (a_row + a_pixel);
    return groups * (0.5e-6 + work / threads + team);
  }
  // Where pixels are columns, those of an image end in a vector that is not full. Small types are
  // widened, and narrowed, in passes of their own, 32 elements of a row at a time.
  const auto pixels =
      static_cast<double>(g.images * (rows ? places : round_up(places, std::int64_t{32})));
  const double strips =
      rows ? pixels * std::ceil(m / 32)
           : static_cast<double>(g.images) * m * std::ceil(static_cast<double>(places) / 32);
  const double small = size_of(g.dtype) == 2 ? strips * a_small_strip + pixels * q * 0.15e-9 : 0;
  // Columns are filters with channels last: of a strip that is not full most are empty.
  const double wide = std::max(rows ? 20.0 : 6.0, m);
  const double work = (pixels * q * (wide * 2 / rate + an_element) + small) / threads;
  return groups * (a_call + work + team);
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

/// g is of x_given, w_given and y_given, which have five axes; bias as conv's, or null.
inline void multiply_pointwise(Context& context, const Gathered& g, const ConstTensorRef& x_given,
                               const ConstTensorRef& w_given, const TensorRef& y_given,
                               const ConstTensorRef* bias) {
  const std::int64_t pixels = g.axis[2].places;
  const bool rows = pixels_are_rows(g);
  const auto behind = [&](const std::int64_t(&strides)[5]) {
    return g.images == 1 || strides[0] == pixels * strides[4];
  };
  // Only these, not what gemm would choose: their bits are the same for any number of threads.
  const std::string_view rung = reads_rows_in_place(g) ? "small"
                                : !reads_in_place(g)   ? "threads"
                                : g.m == 1             ? "gemv"
                                                       : "few_rows";
  const auto element = static_cast<std::int64_t>(size_of(g.dtype));
  for (std::int64_t group = 0; group < g.groups; ++group) {
    ConstTensorRef x = matrices(x_given, group, g.q, pixels, g.x_strides[4], rows);
    TensorRef y = matrices(y_given, group, g.m, pixels, g.y_strides[4], rows);
    ConstTensorRef w = w_given;
    w.data = static_cast<const std::byte*>(w_given.data) + group * g.w_group * element;
    w.shape = rows ? Extents{g.q, g.m} : Extents{g.m, g.q};
    w.strides =
        rows ? Extents{g.w_strides[1], g.w_strides[0]} : Extents{g.w_strides[0], g.w_strides[1]};
    if (rows && behind(g.x_strides) && behind(g.y_strides)) {
      join_images(x);
      join_images(y);
    }
    GemmOptions options{.bias = {}, .activation = g.activation};
    if (bias != nullptr) {
      options.bias = *bias;
      options.bias.data =
          static_cast<const std::byte*>(bias->data) + group * g.m * g.bias_stride * element;
      options.bias.shape = rows ? Extents{g.m} : Extents{g.m, 1};
      options.bias.strides = rows ? Extents{g.bias_stride} : Extents{g.bias_stride, 1};
    }
    if (rows) {
      gemm(context, x, w, y, options, {rung});
    } else {
      gemm(context, w, x, y, options, {rung});
    }
  }
}

}  // namespace rung::conv_cpu
