// SPDX-License-Identifier: Apache-2.0
// Shared by norm_backward's CUDA kernels: arguments, and the final kernel that adds up the sums of
// all chunks of rows.
#pragma once

#include <cmath>
#include <cstdint>

#include "rung/device/dependent.hpp"
#include "rung/device/row/register_row.hpp"
#include "rung/ops/norm/shared/cuda/norm.hpp"
#include "rung/ops/norm_backward/op/norm_backward.hpp"

namespace rung::norm_backward_cuda::inline RUNG_TARGET {

using norm_cuda::AddMoments;
using norm_cuda::center_near;
using norm_cuda::Moments;
using norm_cuda::moved_by;
using norm_cuda::Scale;
using norm_cuda::scale_about;
using norm_cuda::sum_factors;
using norm_cuda::SumFactors;

/// Kernel arguments. Absent tensors are null.
template <class T_>
struct NormGradientArguments {
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
  SumFactors<Wide> factors;
  bool layer;           // else RMS norm
  bool wide_gamma;      // gamma has type Wide, not T
  bool wide_gradient;   // dgamma and dbeta have type Wide, not T
  std::int64_t chunks;  // chunks of rows with separate sums
  Wide* sums;           // [chunks][2][n]: sums of dy z and of dy; null: not requested
  Scale<Wide>* scales;  // one per row, if a separate kernel computes them
};

template <class T>
NormGradientArguments<T> call_of(const NormBackward::Args& args) {
  using Wide = Accumulator<T>;
  NormGradientArguments<T> call{};
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
  call.factors = sum_factors<Wide>(call.n);
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
__device__ __forceinline__ W gamma_at(const NormGradientArguments<T>& call, std::int64_t at) {
  if (call.gamma == nullptr) return W{1};
  if (call.wide_gamma) return static_cast<const W*>(call.gamma)[at];
  return convert<W>(static_cast<const T*>(call.gamma)[at]);
}

/// Returns the scale of a row from the given mean and rstd at these offsets. rstd is 0 if the
/// squares of the row overflow; x - mean may then overflow, too, so the mean is replaced by 0.
template <class T, class W = Accumulator<T>>
__device__ __forceinline__ Scale<W> given_scale(const NormGradientArguments<T>& call,
                                                std::int64_t mean_at, std::int64_t rstd_at) {
  const W rstd = call.rstd[rstd_at];
  const W mean = call.mean != nullptr && rstd != 0 ? call.mean[mean_at] : W{0};
  return {mean, rstd, W{0}};
}
template <class T, class W = Accumulator<T>>
__device__ __forceinline__ Scale<W> given_scale(const NormGradientArguments<T>& call,
                                                const std::int64_t (&at)[5]) {
  return given_scale(call, at[NormBackward::row_mean], at[NormBackward::row_rstd]);
}

/// Sums, or means, of g and of g z.
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

inline constexpr int finish_threads = 1024;

template <class W>
struct FinishShared {
  W dgamma[finish_threads / warp_size][warp_size];  // [warp][column]
  W dbeta[finish_threads / warp_size][warp_size];
};

/// Computes dgamma and dbeta from the sums of all chunks. A block has `columns` columns, 8 or 32,
/// and finish_threads_of() threads. The threads of a column sum chunks with a stride, lanes of a
/// warp combine by shuffles, and one thread adds up the warps' results in order.
template <class T>
__global__ void __launch_bounds__(finish_threads)
    norm_backward_finish(const __grid_constant__ NormGradientArguments<T> call, int columns) {
  start_dependent();
  using W = Accumulator<T>;
  auto& scratch = shared<FinishShared<W>>();
  const int thread = static_cast<int>(threadIdx.x);
  const int column = thread % columns;
  const std::int64_t i = std::int64_t{blockIdx.x} * columns + column;
  W dgamma = 0;
  W dbeta = 0;
#pragma unroll 4
  for (std::int64_t chunk = thread / columns; i < call.n && chunk < call.chunks;
       chunk += static_cast<int>(blockDim.x) / columns) {
    dgamma += call.sums[chunk * 2 * call.n + i];
    dbeta += call.sums[(chunk * 2 + 1) * call.n + i];
  }
  for (int distance = columns; distance < warp_size; distance *= 2) {
    dgamma += shuffle_xor(dgamma, distance);
    dbeta += shuffle_xor(dbeta, distance);
  }
  if (lane_of_thread() < columns) {
    scratch.dgamma[thread / warp_size][column] = dgamma;
    scratch.dbeta[thread / warp_size][column] = dbeta;
  }
  __syncthreads();
  const int which = thread / columns;  // 0: column of dgamma, 1: of dbeta
  if (which >= 2 || i >= call.n) return;
  void* const tensor = which == 0 ? call.dgamma : call.dbeta;
  if (tensor == nullptr) return;
  const auto& of_warp = which == 0 ? scratch.dgamma : scratch.dbeta;
  const int warps = static_cast<int>(blockDim.x) / warp_size;
  W sum = 0;
#pragma unroll 8
  for (int from = 0; from < warps; ++from) sum += of_warp[from][column];
  std::int64_t at[6];
  call.lines.columns.offsets(i, at);
  const std::int64_t place =
      which == 0 ? at[NormBackward::column_dgamma] : at[NormBackward::column_dbeta];
  if (call.wide_gradient) {
    static_cast<W*>(tensor)[place] = sum;
  } else {
    static_cast<T*>(tensor)[place] = convert<T>(sum);
  }
}

/// Returns the columns per block of the final kernel: fewer, thus more threads per column, if
/// chunks are many and columns few.
inline int finish_columns(double chunks, std::int64_t n) {
  return chunks > 2 * warp_size && n < 8192 ? 8 : 32;
}

/// Returns the threads per block of the final kernel: a power of two that leaves each thread at
/// least four chunks, whose loads are in flight together.
inline int finish_threads_of(double chunks, std::int64_t n) {
  int threads = 128;
  while (threads < finish_threads && 8.0 * threads <= chunks * finish_columns(chunks, n)) {
    threads *= 2;
  }
  return threads;
}

/// Launches the final kernel. `dependent`: the preceding kernel begins with start_dependent().
template <class T>
void launch_finish(Context& context, const NormGradientArguments<T>& call, bool dependent = false) {
  const auto chunks = static_cast<double>(call.chunks);
  const int columns = finish_columns(chunks, call.n);
  launch(context,
         {.grid = ceil_div(call.n, std::int64_t{columns}),
          .block = finish_threads_of(chunks, call.n),
          .shared_bytes = sizeof(FinishShared<Accumulator<T>>),
          .dependent = dependent},
         norm_backward_finish<T>, call, columns);
}

/// Adds the final kernel to the work for the time model: its threads have one dependent load per
/// four chunks of a column, and 2 n elements per chunk are written and read.
inline Work with_finish(const NormBackward::Args& args, Work work, Amount chunks) {
  if (!wants_sums(args)) return work;
  const std::int64_t n = NormBackward::lines_of(args).columns.size();
  const std::size_t wide = larger<std::size_t>(size_of(args.x.dtype), 4);
  work.bytes = NormBackward::cost(args).bytes + 4 * chunks * n * wide;
  work.rounds = work.rounds + std::ceil(chunks * finish_columns(chunks, n) /
                                        (4.0 * finish_threads_of(chunks, n)));
  return in_launches(work.launches + 1, work);
}
inline Work with_finish(const NormBackward::Args& args, const Work& work) {
  return with_finish(args, work, work.blocks);
}

/// Requires contiguous rows of full, aligned 16-byte packs, and contiguous weights.
inline Support require_whole_packs(const NormBackward::Args& args) {
  const NormBackward::Lines lines = NormBackward::lines_of(args);
  if (!lines.contiguous_columns()) return unsupported("rows and weights must be contiguous");
  const auto width = static_cast<std::int64_t>(16 / size_of(args.x.dtype));
  const auto regular = [&](int tensor, const ConstTensorRef& of) {
    return rows_are_regular(lines.rows, lines.columns.size(), tensor, of.data, width);
  };
  const bool whole = regular(NormBackward::row_x, args.x) &&
                     regular(NormBackward::row_dy, args.dy) &&
                     regular(NormBackward::row_dx, args.dx);
  return whole ? supported : unsupported("rows of whole, aligned packs of 16 bytes");
}

/// Returns whether every row begins at the same offset from 16 bytes in x, dy and dx.
inline bool rows_agree(const NormBackward::Args& args) {
  const NormBackward::Lines lines = NormBackward::lines_of(args);
  const std::size_t element = size_of(args.x.dtype);
  const auto width = static_cast<std::int64_t>(16 / element);
  const auto agree = [&](NormBackward::RowTensor tensor, const ConstTensorRef& of) {
    return offsets_agree(lines.rows, tensor, of.data, element, args.x.data, element, width);
  };
  return agree(NormBackward::row_dy, args.dy) && agree(NormBackward::row_dx, args.dx);
}

}  // namespace rung::norm_backward_cuda::inline RUNG_TARGET
