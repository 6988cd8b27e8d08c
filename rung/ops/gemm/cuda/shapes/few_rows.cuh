// SPDX-License-Identifier: Apache-2.0
// gemm / few rows: the kernel, compiled once per operand type.
//
// Part of the rung whose Idea, Changes, Cost and Limits are in few_rows.cu.
#pragma once

#include "rung/device/collectives.hpp"
#include "rung/device/load.hpp"
#include "rung/device/load_if.hpp"
#include "rung/device/ptx/async_copy.hpp"
#include "rung/device/ptx/hopper.hpp"
#include "rung/device/tile/epilogue.hpp"
#include "rung/device/tile/strip.hpp"
#include "rung/ops/gemm/cuda/detail/lane_sums.hpp"
#include "rung/ops/gemm/shared/cuda/slices.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

constexpr int few_threads = 256;

/// Distribution of a step of B over a block's threads. Each thread has `chunks` times 16 bytes in
/// flight, 32 to 64 KiB per SM: at 3.35 TB/s and 0.8 us, 132 SMs need 20 KiB each.
///
/// Wide    for lines aligned to 16 bytes. A thread loads chunks of 16 bytes: of four columns if k
/// is contiguous, else of several k. Eight lanes read 128 contiguous bytes.
/// single  for unaligned lines. The 32 lanes of a warp load adjacent elements, one per load: a
/// request touches five sectors of 32 bytes instead of four, without shifts.
template <class T, int Rows, bool KMajor, bool Wide>
struct FewShape {
  static constexpr int chunk = vector_width<T>;  // elements
  static constexpr int chunks = 4;
  static constexpr int elements = chunk * chunks;  // per thread
  static constexpr int columns = KMajor ? 4 : Wide ? chunk : sizeof(T) == 2 || Rows >= 8 ? 2 : 1;
  static constexpr int ks = elements / columns;
  static constexpr int k_lanes = Wide ? (KMajor ? 8 : 4) : KMajor ? 32 : 1;  // lanes along k
  static constexpr int column_lanes = warp_size / k_lanes;
  // Along k, fewer columns per block with more lanes per line read B as fast. With more rows, fewer
  // columns per block would read A too often.
  static constexpr int k_warps = !KMajor ? 8 : Wide ? 4 : Rows <= 4 ? 2 : 1;
  static constexpr int column_warps = few_threads / warp_size / k_warps;
  static constexpr int step = k_warps * k_lanes * ks;                  // k per block
  static constexpr int width = column_warps * column_lanes * columns;  // columns per block
  // Adjacent steps of k that a thread multiplies together.
  static constexpr int span = KMajor ? (Wide ? (chunk < 4 ? chunk : 4) : 1) : 4;

  /// Returns a thread's i-th step of k, or j-th column, relative to its first.
  static constexpr __device__ int k(int i) {
    if (!KMajor) return i;
    return Wide ? i / chunk * k_lanes * chunk + i % chunk : i * k_lanes;
  }
  static constexpr __device__ int column(int j) { return Wide || KMajor ? j : j * column_lanes; }

  // Blocks per SM, as registers allow.
  static constexpr int blocks = sizeof(T) == 4 && Rows == 4 && (Wide || KMajor) ? 3 : 2;
};

/// Maximum rows of C that a block accumulates in registers.
template <class T>
constexpr int few_max_rows = sizeof(T) == 4   ? 16
                             : sizeof(T) == 8 ? 8
                                              : 4;

/// Layout of B's lines: aligned to 16 bytes, contiguous but unaligned, or not contiguous.
enum class Lines { aligned, contiguous, strided };

template <class T>
struct FewRowsCall {
  Finish<T> finish;
  std::int64_t slice_depth;  // of k, a multiple of a step
  int groups;                // groups of Rows rows
};

template <class T, int Rows, bool KMajor, bool Wide>
union FewLayout {
  using Shape = FewShape<T, Rows, KMajor, Wide>;
  using Sum = Accumulator<T>;
  // Four padding elements per row: threads that store a column of A hit different banks.
  alignas(16) Sum a[2][Rows][Shape::step + 4];
  Sum sums[Shape::k_warps][Rows][Shape::width];
};

/// Position of a thread in its block's part of B.
template <class Shape, bool KMajor, bool Wide>
struct FewPlace {
  int k, column;
  int k_warp;

  __device__ FewPlace() {
    const int lane = lane_of_thread();
    const int warp = static_cast<int>(threadIdx.x) / warp_size;
    const int k_lane = KMajor ? lane % Shape::k_lanes : lane / Shape::column_lanes;
    const int column_lane = KMajor ? lane / Shape::k_lanes : lane % Shape::column_lanes;
    k_warp = warp % Shape::k_warps;
    k = k_warp * Shape::k_lanes * Shape::ks + k_lane * (!KMajor ? Shape::ks
                                                        : Wide  ? Shape::chunk
                                                                : 1);
    column = warp / Shape::k_warps * Shape::column_lanes * Shape::columns +
             column_lane * (Wide || KMajor ? Shape::columns : 1);
  }
};

/// A thread's elements of a step of B, unconverted. Elements beyond the matrix are zero.
template <class T, class Shape, bool KMajor, bool Wide>
struct FewElements {
  static constexpr int size = Wide ? Shape::chunk : 1;
  static constexpr int count = Shape::elements / size;
  RawPack<T, size> raw[count];

  /// Loads a step from `from` on; only `k_left` steps of k and `columns_left` columns exist.
  __device__ __forceinline__ void load(const T* from, std::int64_t k_stride,
                                       std::int64_t column_stride, int k_left, int columns_left) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const int k_needed = Shape::k(k_of(i)) + (KMajor ? size : 1);
      const int columns_needed = Shape::column(column_of(i)) + (KMajor ? 1 : size);
      const T* const at =
          from + Shape::k(k_of(i)) * k_stride + Shape::column(column_of(i)) * column_stride;
      raw[i] = load_raw_if<size>(at, k_needed <= k_left && columns_needed <= columns_left);
    }
    if constexpr (Wide) {
      // At most one pack per line, or each of the packs of the last columns, is cut by the end.
      if (KMajor ? k_left % size == 0 || k_left > Shape::k(Shape::ks - 1)
                 : columns_left <= 0 || columns_left >= Shape::columns) {
        return;
      }
#pragma unroll
      for (int i = 0; i < count; ++i) {
        const int k = Shape::k(k_of(i));
        const int column = Shape::column(column_of(i));
        const int left = KMajor ? (column < columns_left ? k_left - k : 0)
                                : (k < k_left ? columns_left - column : 0);
        if (left <= 0 || left >= size) continue;
        raw[i] = rung::raw(rung::load<size>(from + k * k_stride + column * column_stride, left));
      }
    }
  }
  /// Returns this thread's element at k index `i` and column `j` of its part of B.
  __device__ __forceinline__ Accumulator<T> get(int i, int j) const {
    constexpr int along = KMajor ? Shape::ks : Shape::columns;
    const int at = KMajor ? j * along + i : i * along + j;
    return convert<Accumulator<T>>(unpack(raw[at / size])[at % size]);
  }

 private:
  // raw holds the packs line after line; these return the step of k and the column of the first
  // element of raw[i].
  static constexpr int per_line = (KMajor ? Shape::ks : Shape::columns) / size;
  static constexpr __device__ int k_of(int i) {
    return KMajor ? i % per_line * size : i / per_line;
  }
  static constexpr __device__ int column_of(int i) {
    return KMajor ? i / per_line : i % per_line * size;
  }
};

/// Converts a count to int, clamped to 2^30, which exceeds any step.
__device__ inline int clamped_int(std::int64_t count) {
  return static_cast<int>(smaller<std::int64_t>(count, 1 << 30));
}

/// Multiplies rows of A by a strip of B over a slice of k. Loads of the next step are in flight
/// during the products of the current one.
template <class T, int Rows, bool KMajor, bool Wide>
__global__ void __launch_bounds__(few_threads, (FewShape<T, Rows, KMajor, Wide>::blocks))
    gemm_few_rows(FewRowsCall<T> call) {
  using Shape = FewShape<T, Rows, KMajor, Wide>;
  using Sum = Accumulator<T>;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  ptx::let_next_grid_start();  // the kernel that combines the slices
#endif
  auto& layout = shared<FewLayout<T, Rows, KMajor, Wide>>();
  const auto& p = call.finish.p;
  const FewPlace<Shape, KMajor, Wide> place;
  const int thread = static_cast<int>(threadIdx.x);
  const int batch = static_cast<int>(blockIdx.z);
  const std::int64_t first_row = std::int64_t{static_cast<int>(blockIdx.x) % call.groups} * Rows;
  const std::int64_t first_column =
      std::int64_t{static_cast<int>(blockIdx.x) / call.groups} * Shape::width;
  const std::int64_t first_k = blockIdx.y * call.slice_depth;
  const std::int64_t end_k = smaller(p.k(), first_k + call.slice_depth);
  const auto a = p.a.at(batch);
  const auto b = p.b.at(batch);

  // Elements of A in memory order. Types without conversion are copied by cp.async during the
  // previous step; others wait in registers.
  constexpr bool copies = sizeof(T) >= 4;
  constexpr int step = Shape::step;
  constexpr int a_elements = Rows * step;
  constexpr int stage_elements = sizeof(layout.a[0]) / sizeof(Sum);
  static_assert((few_threads % step == 0 || step % few_threads == 0) && few_threads % Rows == 0);
  constexpr int a_count = (a_elements + few_threads - 1) / few_threads;
  const bool along_k = a.strides[1] <= a.strides[0];
  const int a_row = along_k ? thread / step : thread % Rows;
  const int a_step = along_k ? thread % step : thread / Rows;
  const T* a_from = &a(first_row + a_row, first_k + a_step);
  const int rows_left = clamped_int(p.m() - first_row) - a_row;
  /// Calls visit_one(i, row, step), relative to the thread's first element.
  const auto for_each_of_a = [&](const auto& visit_one) {
    if (thread >= a_elements) return;
#pragma unroll
    for (int i = 0; i < a_count; ++i) {
      visit_one(i, along_k ? i * few_threads / step : 0,
                along_k ? i * few_threads % step : i * (few_threads / Rows));
    }
  };
  [[maybe_unused]] RawPack<T, 1> a_next[a_count];  // converted when stored: no earlier wait
  FewElements<T, Shape, KMajor, Wide> b_next;
  const T* b_from = &b(first_k + place.k, first_column + place.column);
  // The stride of contiguous lines is a compile-time 1, which saves address arithmetic.
  const std::int64_t k_stride = KMajor && Wide ? 1 : b.strides[0];
  const std::int64_t column_stride = !KMajor && Wide ? 1 : b.strides[1];
  const int columns_left = clamped_int(p.n() - first_column) - place.column;
  const auto fetch = [&](std::int64_t k, int stage) {
    b_next.load(b_from, k_stride, column_stride, clamped_int(end_k - k) - place.k, columns_left);
    b_from += step * b.strides[0];
    const int steps_left = clamped_int(end_k - k) - a_step;
    for_each_of_a([&](int i, int row, int at_step) {
      const bool exists = row < rows_left && at_step < steps_left;
      const T* const from = a_from + row * a.strides[0] + at_step * a.strides[1];
      if constexpr (copies) {
        constexpr int size = sizeof(T);
        ptx::async_copy<size>(&layout.a[0][a_row + row][a_step + at_step] + stage * stage_elements,
                              exists ? from : p.a.data, exists ? size : 0);
      } else {
        a_next[i] = load_raw_if<1>(from, exists);
      }
    });
    a_from += step * a.strides[1];
  };

  Sum sums[Rows][Shape::columns] = {};
  int stage = 0;
  if (first_k < end_k) fetch(first_k, stage);
  for (std::int64_t k = first_k; k < end_k; k += step) {
    const FewElements<T, Shape, KMajor, Wide> elements = b_next;
    if constexpr (copies) {
      ptx::async_wait_all();
    } else {
      for_each_of_a([&](int i, int row, int at_step) {
        layout.a[stage][a_row + row][a_step + at_step] = convert<Sum>(unpack(a_next[i])[0]);
      });
    }
    __syncthreads();  // the stage has arrived for all, and all have read the other one
    if (k + step < end_k) fetch(k + step, stage ^ 1);
    constexpr int span = Shape::span;
#pragma unroll
    for (int first = 0; first < Shape::ks; first += span) {
      Sum values[span][Shape::columns];
#pragma unroll
      for (int i = 0; i < span; ++i) {
#pragma unroll
        for (int j = 0; j < Shape::columns; ++j) values[i][j] = elements.get(first + i, j);
      }
#pragma unroll
      for (int row = 0; row < Rows; ++row) {
        const Pack<Sum, span> factor =
            load_wide<span>(&layout.a[stage][row][place.k + Shape::k(first)]);
#pragma unroll
        for (int i = 0; i < span; ++i) {
#pragma unroll
          for (int j = 0; j < Shape::columns; ++j) sums[row][j] += factor[i] * values[i][j];
        }
      }
    }
    stage ^= 1;
  }

  // Reduces across lanes, then across the warps that shared k, in a fixed order.
  __syncthreads();
  constexpr int count = Rows * Shape::columns;
  Sum flat[count];
#pragma unroll
  for (int i = 0; i < count; ++i) flat[i] = sums[i / Shape::columns][i % Shape::columns];
  const int first = add_over_lanes<Shape::k_lanes>(flat, KMajor ? 1 : Shape::column_lanes);
  if (first >= 0) {
#pragma unroll
    for (int i = 0; i < larger(count / Shape::k_lanes, 1); ++i) {
      const int row = (first + i) / Shape::columns;
      const int column = Shape::column((first + i) % Shape::columns);
      layout.sums[place.k_warp][row][place.column + column] = flat[i];
    }
  }
  __syncthreads();
  const bool down = p.c.strides[1] < p.c.strides[2];
  const int matrix = static_cast<int>(blockIdx.y) * static_cast<int>(gridDim.z) + batch;
  with_output_type<T>(p, call.finish.narrow, [&](const auto& target) {
#pragma unroll 1
    for (int at = thread; at < Rows * Shape::width; at += few_threads) {
      const int row = down ? at % Rows : at / Shape::width;
      const int column = down ? at / Rows : at % Shape::width;
      if (first_row + row >= p.m() || first_column + column >= p.n()) continue;
      Sum sum = 0;
#pragma unroll
      for (int warp = 0; warp < Shape::k_warps; ++warp) sum += layout.sums[warp][row][column];
      finish(target, matrix, first_row + row, first_column + column, sum);
    }
  });
}

/// Launch plan of a call whose C has few rows, made on the host.
struct FewPlan {
  int rows = 4;  // per block: 4 or few_max_rows
  int slices = 1;
  double seconds = 0;
};

/// Launches the kernel; C has few rows. Defined in the rung's file, which is compiled once per
/// type.
void run_few_rows(Context& context, const Finish<float>& finish, const FewPlan& plan);
void run_few_rows(Context& context, const Finish<f16>& finish, const FewPlan& plan);
void run_few_rows(Context& context, const Finish<bf16>& finish, const FewPlan& plan);
void run_few_rows(Context& context, const Finish<double>& finish, const FewPlan& plan);

/// Returns whether k is B's contiguous axis, or has the smaller stride.
template <class T>
bool few_k_major(const View<const T, 3>& b) {
  return b.shape[2] <= 1 || (b.shape[1] > 1 && std::abs(b.strides[1]) <= std::abs(b.strides[2]));
}
template <class T>
Lines few_lines(const View<const T, 3>& b) {
  const bool k_major = few_k_major(b);
  const int along = k_major ? 1 : 2;
  const int line = k_major ? 2 : 1;
  constexpr std::int64_t width = 16 / static_cast<std::int64_t>(sizeof(T));
  if (b.strides[along] != 1 && b.shape[along] > 1) return Lines::strided;
  const bool aligned = (b.strides[line] % width == 0 || b.shape[line] <= 1) &&
                       (b.strides[0] % width == 0 || b.shape[0] <= 1) &&
                       reinterpret_cast<std::uintptr_t>(b.data) % 16 == 0;
  return aligned ? Lines::aligned : Lines::contiguous;
}

/// Calls f.template operator()<Rows, KMajor, Wide>() for the plan's rows and B's layout.
template <class T, class F>
void with_few_shape(const View<const T, 3>& b, int rows, F&& f) {
  const auto with_rows = [&]<int Rows>() {
    const bool wide = few_lines(b) == Lines::aligned;
    if (few_k_major(b)) {
      wide ? f.template operator()<Rows, true, true>() : f.template operator()<Rows, true, false>();
    } else {
      wide ? f.template operator()<Rows, false, true>()
           : f.template operator()<Rows, false, false>();
    }
  };
  if (few_max_rows<T> == 4 || rows == 4) {
    with_rows.template operator()<4>();
  } else {
    with_rows.template operator()<few_max_rows<T>>();
  }
}

/// Implements run_few_rows(), in the file that compiles T's kernels.
template <class T>
void launch_few_rows(Context& context, const Finish<T>& finish, const FewPlan& plan) {
  constexpr std::int64_t max_batch = 65535;
  const auto& p = finish.p;
  with_few_shape<T>(p.b, plan.rows, [&]<int Rows, bool KMajor, bool Wide>() {
    using Shape = FewShape<T, Rows, KMajor, Wide>;
    constexpr std::int64_t step = Shape::step;
    const std::int64_t depth =
        larger<std::int64_t>(tiles_of(tiles_of(p.k(), step), plan.slices), 1) * step;
    const std::int64_t slices = larger<std::int64_t>(tiles_of(p.k(), depth), 1);
    const std::int64_t groups = tiles_of(p.m(), Rows);
    for (std::int64_t first = 0; first < p.c.shape[0]; first += max_batch) {
      const Finish<T> part = batches(finish, first, smaller(max_batch, p.c.shape[0] - first));
      Accumulator<T>* partial = nullptr;
      if (slices > 1) {
        partial = static_cast<Accumulator<T>*>(context.workspace(partial_bytes(part, slices)));
      }
      const FewRowsCall<T> call{.finish = slices > 1 ? into_partial_sums(part, partial) : part,
                                .slice_depth = depth,
                                .groups = static_cast<int>(groups)};
      launch(context,
             {.grid = {groups * tiles_of(p.n(), Shape::width), slices, part.p.c.shape[0]},
              .block = few_threads,
              .shared_bytes = sizeof(FewLayout<T, Rows, KMajor, Wide>)},
             gemm_few_rows<T, Rows, KMajor, Wide>, call);
      if (slices > 1) add_slices(context, part, partial, static_cast<int>(slices));
    }
  });
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
