// SPDX-License-Identifier: Apache-2.0
// A product on TMA and wgmma as its kernel is given it, for the operators that are products of
// tensors which the copy engine unrolls, too: maps, epilogue, the order of tiles.
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
  TensorMap c;  // where boxes_of_c
  Finish<T> finish;
  Raster raster;
  int a_moves, b_moves;  // 1: a matrix for each of the batch; 0: one for all
  int k_tiles;
  int slice_tiles;  // of k
  bool boxes_of_c;  // the copy engine writes C: it is alpha times the sums, and may be mapped
  // It writes a C that more than alpha makes, and where `adds` reads what is added.
  bool finishes_boxes = false;
  bool adds = false;
  TensorMap addend = {};  // C, for beta, or residual

  /// Returns the product that the epilogue computes.
  [[nodiscard]] __device__ const auto& product() const { return finish.p; }
  [[nodiscard]] __device__ int out_bytes() const {
    return finish.narrow ? static_cast<int>(sizeof(T)) : 4;
  }

  /// The tiles of k that a slice has, from slice * slice_tiles on.
  [[nodiscard]] __device__ int tiles_of_slice(int slice) const {
    return smaller(slice_tiles, k_tiles - slice * slice_tiles);
  }
};

/// Whichever epilogue C needs. `Job` is a TensorJob.
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

/// TMA coordinates have 32 bits.
constexpr std::int64_t longest_mapped = std::int64_t{1} << 30;

/// A matrix of C's shape, of Out whatever it is given as, as boxes of a strip: rows end where a
/// store of 16 bytes does.
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

/// C, of Out: nothing but alpha between the sums and C.
template <class Out, class P>
bool map_c(const P& p, TensorMap& map) {
  const bool plain = p.beta == 0 && p.bias.data == nullptr && p.residual.data == nullptr &&
                     p.activation == Activation::none;
  return plain && map_boxes<Out>(p.c, map);
}

/// Lets the copy engine write partial sums or an f32 C. Slices are contiguous, as a longer batch;
/// what stands behind their rows is unowned.
template <class T>
void map_sums(TensorJob<T>& job, bool sliced) {
  Product<T, float> longer = job.finish.p;
  longer.c.shape[0] *= job.raster.slices;
  if (sliced) longer.c.shape[2] = partial_pitch(longer.n());
  job.boxes_of_c = map_c<float>(longer, job.c);
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
