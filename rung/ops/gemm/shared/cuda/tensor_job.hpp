// SPDX-License-Identifier: Apache-2.0
// Parameters of a product on TMA and wgmma: tensor maps, epilogue, order of tiles. Shared with
// operators that are products of tensors loaded by im2col TMA copies.
#pragma once

#include <cstdint>

#include "rung/device/tile/raster.hpp"
#include "rung/device/tile/strip_boxes.hpp"
#include "rung/ops/gemm/shared/cuda/slices.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

/// Kernel parameters.
template <class T>
struct TensorJob {
  TensorMap a, b;
  TensorMap c;  // valid if boxes_of_c
  Finish<T> finish;
  Raster raster;
  int a_moves, b_moves;  // 1: a matrix per batch index; 0: one matrix for all
  int k_tiles;
  int slice_tiles;  // tiles of k per slice
  bool boxes_of_c;  // TMA stores C, which is alpha times the sums and can be mapped
  // TMA stores a C with further terms; with `adds` it also loads the added matrix.
  bool finishes_boxes = false;
  bool adds = false;
  TensorMap addend = {};  // C, for beta, or the residual

  /// Returns the product that the epilogue computes.
  [[nodiscard]] __device__ const auto& product() const { return finish.p; }
  [[nodiscard]] __device__ int out_bytes() const {
    return finish.narrow ? static_cast<int>(sizeof(T)) : 4;
  }

  /// Returns the tiles of k in a slice, which begins at tile slice * slice_tiles.
  [[nodiscard]] __device__ int tiles_of_slice(int slice) const {
    return smaller(slice_tiles, k_tiles - slice * slice_tiles);
  }
};

/// Runs the epilogue that C needs. `Job` is a TensorJob.
template <int Columns, class T, class Job, class Sums>
__device__ __forceinline__ void write_strip(const Job& job, StripBoxes& boxes, int& turn,
                                            int matrix, int first_row, int first_column,
                                            const Sums& sums) {
  const auto& p = job.finish.p;
  const auto write = [&]<class Out>() {
    if (job.boxes_of_c) {
      store_strip<Out, Columns>(job.c, boxes, turn, p.alpha, matrix, first_row, first_column,
                                static_cast<int>(p.m()), static_cast<int>(p.n()), sums);
      return;
    }
    constexpr int width = Columns > 128 ? 16 : StripStage::columns;
    finish_strip<Columns, width>(with_output<Out>(p), boxes.box[0], matrix, first_row, first_column,
                                 sums);
  };
  if constexpr (sizeof(T) == 2) {
    if (job.finish.narrow) return write.template operator()<T>();
  }
  write.template operator()<float>();
}

// --- on the host ---------------------------------------------------------------------------------

/// Largest mapped extent: TMA coordinates have 32 bits.
constexpr std::int64_t longest_mapped = std::int64_t{1} << 30;

/// Maps a matrix of C's shape, reinterpreted as Out, as boxes of a strip, if TMA supports it: rows
/// end at a multiple of 16 bytes.
template <class Out, class Matrix>
bool map_boxes(const Matrix& given, TensorMap& map) {
  View<Out, 3> matrix;
  matrix.data = reinterpret_cast<Out*>(const_cast<void*>(static_cast<const void*>(given.data)));
  for (int axis = 0; axis < 3; ++axis) {
    matrix.shape[axis] = given.shape[axis];
    matrix.strides[axis] = given.strides[axis];
  }
  if (matrix.shape[2] * static_cast<std::int64_t>(sizeof(Out)) % 16 != 0) return false;
  if (!tensor_map_support(matrix, strip_box<Out>, Swizzle::bytes_128)) return false;
  map = make_tensor_map(matrix, strip_box<Out>, Swizzle::bytes_128);
  return true;
}

/// Maps C, reinterpreted as Out, if only alpha applies between the sums and C.
template <class Out, class P>
bool map_c(const P& p, TensorMap& map) {
  const bool plain = p.beta == 0 && p.bias.data == nullptr && p.residual.data == nullptr &&
                     p.activation == Activation::none;
  return plain && map_boxes<Out>(p.c, map);
}

/// Maps partial sums, or an f32 C, for TMA stores. The slices are matrices of one contiguous batch;
/// the padding after their rows may be overwritten.
template <class T>
void map_sums(TensorJob<T>& job, bool sliced) {
  Product<T, float> longer = job.finish.p;
  longer.c.shape[0] *= job.raster.slices;
  if (sliced) longer.c.shape[2] = partial_pitch(longer.n());
  job.boxes_of_c = map_c<float>(longer, job.c);
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
