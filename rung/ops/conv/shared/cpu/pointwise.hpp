// SPDX-License-Identifier: Apache-2.0
// Words of layers of 1 x 1 filters, which are products by gemm on views of their tensors: conv's
// and its gradient's for x.
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

/// The rung of gemm to call, not what gemm would choose: its bits are the same for any number of
/// threads.
inline std::string_view product_rung(const Gathered& g) {
  if (reads_rows_in_place(g)) return "small";
  if (!reads_in_place(g)) return "threads";
  return g.m == 1 ? "gemv" : "few_rows";
}

/// Elements [offset, ...) of a tensor as an array of other extents and strides.
template <class Ref>
Ref part_of(const Ref& tensor, std::int64_t offset, const Extents& shape, const Extents& strides) {
  using Byte = std::conditional_t<std::is_same_v<Ref, TensorRef>, std::byte, const std::byte>;
  Ref made = tensor;
  made.data =
      static_cast<Byte*>(tensor.data) + offset * static_cast<std::int64_t>(size_of(tensor.dtype));
  made.shape = shape;
  made.strides = strides;
  return made;
}

/// The `channels` of a group as matrices of channels by pixels, one per image; or, where pixels are
/// rows, of pixels by channels, as one where `joined`.
template <class Ref>
Ref channel_matrices(const Ref& tensor, const std::int64_t (&strides)[5], const Gathered& g,
                     std::int64_t group, std::int64_t channels, bool joined) {
  const std::int64_t first = group * channels * strides[1], pixels = g.axis[2].places;
  if (!pixels_are_rows(g)) {
    return part_of(tensor, first, {g.images, channels, pixels},
                   {strides[0], strides[1], strides[4]});
  }
  if (joined) {
    return part_of(tensor, first, {g.images * pixels, channels}, {strides[4], strides[1]});
  }
  return part_of(tensor, first, {g.images, pixels, channels}, {strides[0], strides[4], strides[1]});
}

/// Returns true if pixels of all images are rows of one matrix, in both tensors.
inline bool images_join(const Gathered& g) {
  const std::int64_t pixels = g.axis[2].places;
  return pixels_are_rows(g) && (g.images == 1 || (g.x_strides[0] == pixels * g.x_strides[4] &&
                                                  g.y_strides[0] == pixels * g.y_strides[4]));
}

/// The weights of a group: m x q, or q x m where pixels are rows.
inline ConstTensorRef weight_matrix(const ConstTensorRef& w, const Gathered& g,
                                    std::int64_t group) {
  const std::int64_t first = group * g.w_group;
  if (!pixels_are_rows(g)) {
    return part_of(w, first, {g.m, g.q}, {g.w_strides[0], g.w_strides[1]});
  }
  return part_of(w, first, {g.q, g.m}, {g.w_strides[1], g.w_strides[0]});
}

}  // namespace rung::conv_cpu
