// SPDX-License-Identifier: Apache-2.0
// Layers of 1 x 1 filters as calls of gemm on views of their tensors; for conv and
// conv_backward_data.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include "rung/core/integer.hpp"
#include "rung/ops/conv/shared/gathered.hpp"
#include "rung/ops/gemm/op/gemm.hpp"

namespace rung::conv_cpu {

using conv_layer::Gathered;

/// Returns whether pixels have one common stride in each tensor, after join_axes().
inline bool is_product(const Gathered& g) {
  for (const conv_layer::SourceAxis& axis : g.axis) {
    if (axis.kernel != 1 || axis.step != 1 || axis.start != 0 || axis.divisor != 1) return false;
  }
  return g.axis[0].places == 1 && g.axis[1].places == 1 && g.axis[2].places == g.axis[2].extent;
}

/// Returns whether pixels are the rows of y's matrix: it has several channels, and they are
/// adjacent.
inline bool pixels_are_rows(const Gathered& g) { return g.y_strides[1] == 1 && g.m > 1; }

/// Returns whether few channels are written: such a layer is bound by reading x, and gemm's kernels
/// for few rows read x in place. Each element's sum is the same for any number of threads.
inline bool reads_in_place(const Gathered& g) {
  constexpr std::int64_t few_channels_written = 8;
  return !pixels_are_rows(g) && g.m <= few_channels_written && g.q > 0 && g.q <= 65536 &&
         g.axis[2].places > 1 && g.x_strides[4] == 1 && g.y_strides[4] == 1 &&
         (g.dtype == DType::f32 || g.dtype == DType::f64);
}

/// Returns whether pixels are rows that gemm's `small` reads in place: channels of x are adjacent,
/// and the weights stay in L1 or L2.
inline bool reads_rows_in_place(const Gathered& g) {
  constexpr std::int64_t few_channels_written = 64, max_channels_read = 2048;
  return pixels_are_rows(g) && g.x_strides[1] == 1 && g.m <= few_channels_written && g.q > 0 &&
         g.q <= max_channels_read && (g.dtype == DType::f32 || g.dtype == DType::f64);
}

/// Returns the work of a pointwise layer. Copied positions fill whole strips.
inline Work pointwise_facts(const Gathered& g, int threads) {
  constexpr std::int64_t strip = 32, rows_of_tile = 6;
  const bool rows = pixels_are_rows(g), whole = rows || reads_in_place(g) || reads_rows_in_place(g);
  const std::int64_t places = whole ? g.axis[2].places : round_up(g.axis[2].places, strip);
  const std::int64_t wide = rows ? round_up(g.m, strip) : std::max(rows_of_tile, g.m);
  const auto pixels = static_cast<double>(g.groups * g.images * places);
  return {.operations = 2 * pixels * static_cast<double>(g.q * wide),
          .blocks = pixels,
          .steps = g.q + g.m,
          .threads = threads};
}

/// Returns the rung of gemm to call. It is not gemm's own choice: the rung's bits are the same for
/// any number of threads.
inline std::string_view product_rung(const Gathered& g) {
  if (reads_rows_in_place(g)) return "small";
  if (!reads_in_place(g)) return "threads";
  return g.m == 1 ? "gemv" : "few_rows";
}

/// Returns the elements [offset, ...) of a tensor as an array of other extents and strides.
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

/// Returns the `channels` of a group as matrices: channels by pixels, one per image; or, if pixels
/// are rows, pixels by channels, as one matrix if `joined`.
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

/// Returns true if the pixels of all images are rows of one matrix, in both tensors.
inline bool images_join(const Gathered& g) {
  const std::int64_t pixels = g.axis[2].places;
  return pixels_are_rows(g) && (g.images == 1 || (g.x_strides[0] == pixels * g.x_strides[4] &&
                                                  g.y_strides[0] == pixels * g.y_strides[4]));
}

/// Returns the weights of a group: m x q, or q x m if pixels are rows.
inline ConstTensorRef weight_matrix(const ConstTensorRef& w, const Gathered& g,
                                    std::int64_t group) {
  const std::int64_t first = group * g.w_group;
  if (!pixels_are_rows(g)) {
    return part_of(w, first, {g.m, g.q}, {g.w_strides[0], g.w_strides[1]});
  }
  return part_of(w, first, {g.q, g.m}, {g.w_strides[1], g.w_strides[0]});
}

}  // namespace rung::conv_cpu
