// SPDX-License-Identifier: Apache-2.0
// What every CUDA kernel of norm_backward is given, and the last step that they share: adding up
// the sums of the shares of rows.
#pragma once

#include <cstdint>

#include "rung/device/dependent.hpp"
#include "rung/ops/norm/cuda/detail/norm.hpp"
#include "rung/ops/norm_backward/norm_backward.hpp"

namespace rung::norm_backward_cuda::inline RUNG_TARGET {

using norm_cuda::AddMoments;
using norm_cuda::Moments;
using norm_cuda::rstd_of;
using norm_cuda::Scale;

/// One call, typed. Absent tensors are null.
template <class T_>
struct Call {
  using T = T_;
  using Wide = Accumulator<T>;

  NormBackward::Lines lines;
  std::int64_t rows;
  std::int64_t n;  // elements per row
  const T* x;
  const T* dy;
  T* dx;
  const void* gamma;
  const Wide* mean;
  const Wide* rstd;
  void* dgamma;
  void* dbeta;
  Wide epsilon;
  Wide part;            // 1 / n
  bool layer;           // or RMS norm
  bool wide_gamma;      // of Wide, not T
  bool wide_gradient;   // dgamma and dbeta are of Wide, not T
  std::int64_t chunks;  // shares of rows with sums of their own
  Wide* sums;           // [chunks][2][n]: of dy z, of dy; null when nobody asks for them
  Scale<Wide>* scales;  // a row, where a kernel of its own computes them
};

template <class T>
Call<T> call_of(const NormBackward::Args& args) {
  using Wide = Accumulator<T>;
  Call<T> call{};
  call.lines = NormBackward::lines_of(args);
  call.rows = call.lines.rows.size();
  call.n = call.lines.columns.size();
  call.x = static_cast<const T*>(args.x.data);
  call.dy = static_cast<const T*>(args.dy.data);
  call.dx = static_cast<T*>(args.dx.data);
  call.gamma = args.gamma.data;
  call.mean = static_cast<const Wide*>(args.mean.data);
  call.rstd = static_cast<const Wide*>(args.rstd.data);
  call.dgamma = args.dgamma.data;
  call.dbeta = args.dbeta.data;
  call.epsilon = static_cast<Wide>(args.epsilon);
  call.part = Wide{1} / static_cast<Wide>(call.n);
  call.layer = args.kind == NormKind::layer;
  call.wide_gamma = args.gamma.dtype != args.x.dtype;
  const DType gradient = args.dgamma.data != nullptr ? args.dgamma.dtype : args.dbeta.dtype;
  call.wide_gradient = gradient != args.x.dtype;
  return call;
}

inline bool wants_sums(const NormBackward::Args& args) {
  return args.dgamma.data != nullptr || args.dbeta.data != nullptr;
}

template <class T, class W = Accumulator<T>>
__device__ __forceinline__ W gamma_at(const Call<T>& call, std::int64_t at) {
  if (call.gamma == nullptr) return W{1};
  if (call.wide_gamma) return static_cast<const W*>(call.gamma)[at];
  return convert<W>(static_cast<const T*>(call.gamma)[at]);
}

/// The scale of a row whose mean and rstd are given.
template <class T, class W = Accumulator<T>>
__device__ __forceinline__ Scale<W> given_scale(const Call<T>& call, const std::int64_t (&at)[5]) {
  const W mean = call.mean != nullptr ? call.mean[at[NormBackward::row_mean]] : W{0};
  return {mean, call.rstd[at[NormBackward::row_rstd]], W{0}};
}
/// And of one whose moments about `center` have been computed.
template <class T, class W = Accumulator<T>>
__device__ __forceinline__ Scale<W> computed_scale(const Call<T>& call, W center,
                                                   Moments<W> moments) {
  const W rest = call.layer ? moments.rest * call.part : W{0};
  const W rstd = rstd_of(moments.squares * call.part - rest * rest, call.epsilon);
  return {center, rstd, -rest * rstd};
}

/// Sums of g and g z: Moments' two numbers under other names.
template <class W>
struct Means {
  W g;
  W gz;
};
struct AddMeans {
  template <class W>
  __device__ __forceinline__ Means<W> operator()(Means<W> a, Means<W> b) const {
    return {a.g + b.g, a.gz + b.gz};
  }
};

inline constexpr int finish_columns = 32;  // a block
inline constexpr int finish_lanes = 32;    // threads that share a column's sums

template <class W>
struct FinishShared {
  W dgamma[finish_lanes][finish_columns];
  W dbeta[finish_lanes][finish_columns];
};

/// dgamma and dbeta from the sums of all shares: thread y of a column adds up every 32nd of them,
/// and then one the results of all, in their order.
template <class T>
__global__ void __launch_bounds__(finish_columns* finish_lanes) norm_backward_finish(Call<T> call) {
  start_dependent();
  using W = Accumulator<T>;
  auto& scratch = shared<FinishShared<W>>();
  const int column = static_cast<int>(threadIdx.x);
  const int lane = static_cast<int>(threadIdx.y);
  const std::int64_t i = std::int64_t{blockIdx.x} * finish_columns + column;
  W dgamma = 0;
  W dbeta = 0;
#pragma unroll 4
  for (std::int64_t chunk = lane; i < call.n && chunk < call.chunks; chunk += finish_lanes) {
    dgamma += call.sums[chunk * 2 * call.n + i];
    dbeta += call.sums[(chunk * 2 + 1) * call.n + i];
  }
  scratch.dgamma[lane][column] = dgamma;
  scratch.dbeta[lane][column] = dbeta;
  __syncthreads();
  if (lane >= 2 || i >= call.n) return;
  void* const tensor = lane == 0 ? call.dgamma : call.dbeta;
  if (tensor == nullptr) return;
  const auto& of_lane = lane == 0 ? scratch.dgamma : scratch.dbeta;
  W sum = 0;
#pragma unroll 8
  for (int from = 0; from < finish_lanes; ++from) sum += of_lane[from][column];
  std::int64_t at[6];
  call.lines.columns.offsets(i, at);
  const std::int64_t place =
      lane == 0 ? at[NormBackward::column_dgamma] : at[NormBackward::column_dbeta];
  if (call.wide_gradient) {
    static_cast<W*>(tensor)[place] = sum;
  } else {
    static_cast<T*>(tensor)[place] = convert<T>(sum);
  }
}

/// `dependent`: the kernel in front began with start_dependent().
template <class T>
void launch_finish(Context& context, const Call<T>& call, bool dependent = false) {
  launch(context,
         {.grid = ceil_div(call.n, std::int64_t{finish_columns}),
          .block = {finish_columns, finish_lanes},
          .shared_bytes = sizeof(FinishShared<Accumulator<T>>),
          .dependent = dependent},
         norm_backward_finish<T>, call);
}

/// Contiguous rows of whole, aligned packs of 16 bytes, and contiguous weights.
inline Support require_whole_packs(const NormBackward::Args& args) {
  const NormBackward::Lines lines = NormBackward::lines_of(args);
  if (!lines.contiguous_columns()) return unsupported("rows and weights must be contiguous");
  const auto width = static_cast<std::int64_t>(16 / size_of(args.x.dtype));
  bool whole = lines.columns.size() % width == 0;
  for (int axis = 0; axis < lines.rows.rank; ++axis) {
    for (const int tensor : {NormBackward::row_x, NormBackward::row_dy, NormBackward::row_dx}) {
      whole = whole && lines.rows.strides[tensor][axis] % width == 0;
    }
  }
  for (const ConstTensorRef& tensor : {args.x, args.dy, ConstTensorRef(args.dx)}) {
    whole = whole && reinterpret_cast<std::uintptr_t>(tensor.data) % 16 == 0;
  }
  return whole ? supported : unsupported("rows of whole, aligned packs of 16 bytes");
}

}  // namespace rung::norm_backward_cuda::inline RUNG_TARGET
