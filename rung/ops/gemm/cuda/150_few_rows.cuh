// SPDX-License-Identifier: Apache-2.0
// gemm / few rows: the kernel, compiled for a type of operands per file.
//
// Idea, Changes, Cost and Limits stand in 150_few_rows.cu, whose rung this is a part of.
#pragma once

#include "rung/device/collectives.hpp"
#include "rung/device/load_anywhere.hpp"
#include "rung/device/ptx_async_copy.hpp"
#include "rung/ops/gemm/cuda/detail/epilogue.hpp"
#include "rung/ops/gemm/cuda/detail/slices.hpp"
#include "rung/ops/gemm/cuda/detail/strip.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

constexpr int few_threads = 256;
constexpr int few_chunks = 4;  // of 16 bytes, that a thread has in flight

/// How a block's threads share a step of B. A thread takes four chunks of 16 bytes: of four
/// columns where k is contiguous, else of four k. Eight lanes read 128 contiguous bytes.
template <class T, bool KMajor>
struct FewShape {
  static constexpr int chunk = 16 / static_cast<int>(sizeof(T));  // elements
  static constexpr int ks = KMajor ? chunk : few_chunks;          // per thread
  static constexpr int columns = KMajor ? few_chunks : chunk;
  static constexpr int k_lanes = KMajor ? 8 : 4;  // of a warp's lanes
  static constexpr int column_lanes = warp_size / k_lanes;
  static constexpr int k_warps = KMajor ? 4 : 8;
  static constexpr int column_warps = few_threads / warp_size / k_warps;
  static constexpr int step = k_warps * k_lanes * ks;                  // k per block
  static constexpr int width = column_warps * column_lanes * columns;  // columns per block
};

/// The most rows of C that a block makes in its threads' registers.
template <class T>
constexpr int few_max_rows = sizeof(T) == 4 ? 16 : 4;

/// How B's lines lie: at multiples of 16 bytes, anywhere, or not contiguous.
enum class Lines { aligned, contiguous, strided };

template <class T>
struct FewRowsCall {
  Finish<T> finish;
  std::int64_t slice_depth;  // of k, a multiple of a step
  int groups;                // of Rows rows
  bool contiguous;           // along B's lines
};

template <class T, int Rows, bool KMajor>
union FewLayout {
  using Shape = FewShape<T, KMajor>;
  // Four words between rows: threads that store a column of A then reach different banks.
  alignas(16) float a[2][Rows][Shape::step + 4];
  float sums[Shape::k_warps][Rows][Shape::width];
};

// Per SM, as registers allow.
template <class T, int Rows, bool Aligned>
constexpr int few_blocks = Rows == 1 || (sizeof(T) == 4 && Rows == 4) ? 3 : (Aligned ? 2 : 1);

/// The place of a thread in its block's part of B.
template <class T, bool KMajor>
struct FewPlace {
  using Shape = FewShape<T, KMajor>;
  int k, column;
  int k_warp;
  bool first_k_lane;

  __device__ FewPlace() {
    const int lane = lane_of_thread();
    const int warp = static_cast<int>(threadIdx.x) / warp_size;
    const int k_lane = KMajor ? lane % Shape::k_lanes : lane / Shape::column_lanes;
    const int column_lane = KMajor ? lane / Shape::k_lanes : lane % Shape::column_lanes;
    k_warp = warp % Shape::k_warps;
    k = (k_warp * Shape::k_lanes + k_lane) * Shape::ks;
    column = (warp / Shape::k_warps * Shape::column_lanes + column_lane) * Shape::columns;
    first_k_lane = k_lane == 0;
  }
};

/// A thread's chunks of a step of B, of lines that follow each other: along k where KMajor, else
/// along the columns. What does not exist is zero.
template <class T, bool KMajor>
struct FewChunks {
  static constexpr int size = FewShape<T, KMajor>::chunk;
  RawPack<T, size> raw[few_chunks];

  /// From `from` on, `left` elements of each of `lines` lines exist; `before` stand in front.
  template <bool Aligned>
  __device__ __forceinline__ void load(const T* from, std::int64_t line_stride,
                                       std::int64_t along_stride, int lines, int left, int before) {
    if (Aligned && lines >= few_chunks && left >= size) {
#pragma unroll
      for (int i = 0; i < few_chunks; ++i) raw[i] = load_raw_constant<size>(from + i * line_stride);
      return;
    }
#pragma unroll
    for (int i = 0; i < few_chunks; ++i) {
      const T* const line = from + i * line_stride;
      const int exist = i < lines ? larger(left, 0) : 0;
      if constexpr (Aligned) {
        raw[i] = rung::raw(rung::load<size>(line, exist));
      } else if (along_stride == 1) {
        raw[i] = load_anywhere<size>(line - before, before, before + exist);
      } else {
        Pack<T, size> values;
#pragma unroll
        for (int j = 0; j < size; ++j) values[j] = j < exist ? line[j * along_stride] : zero<T>();
        raw[i] = rung::raw(values);
      }
    }
  }
};

/// As an int; beyond 2^30 more elements make no difference to a step.
__device__ inline int clamped_int(std::int64_t count) {
  return static_cast<int>(smaller<std::int64_t>(count, 1 << 30));
}

/// Rows of A times a strip of B, over a slice of k. The next step's loads are in flight while one
/// is multiplied.
template <class T, int Rows, bool KMajor, bool Aligned>
__global__ void __launch_bounds__(few_threads, (few_blocks<T, Rows, Aligned>))
    gemm_few_rows(FewRowsCall<T> call) {
  using Shape = FewShape<T, KMajor>;
  auto& layout = shared<FewLayout<T, Rows, KMajor>>();
  const auto& p = call.finish.p;
  const FewPlace<T, KMajor> place;
  const int thread = static_cast<int>(threadIdx.x);
  const int batch = static_cast<int>(blockIdx.z);
  const std::int64_t first_row = std::int64_t{static_cast<int>(blockIdx.x) % call.groups} * Rows;
  const std::int64_t first_column =
      std::int64_t{static_cast<int>(blockIdx.x) / call.groups} * Shape::width;
  const std::int64_t first_k = blockIdx.y * call.slice_depth;
  const std::int64_t end_k = smaller(p.k(), first_k + call.slice_depth);
  const auto a = p.a.at(batch);
  const auto b = p.b.at(batch);

  // A's elements in the order in which they are in memory; f32 is copied while the step before is
  // multiplied, other types wait in registers for their conversion.
  constexpr bool copies = sizeof(T) == 4;
  constexpr int a_elements = Rows * Shape::step;
  constexpr int stage_elements = sizeof(layout.a[0]) / sizeof(float);
  static_assert(few_threads % Shape::step == 0 && few_threads % Rows == 0);
  constexpr int a_count = (a_elements + few_threads - 1) / few_threads;
  const bool along_k = Rows == 1 || a.strides[1] <= a.strides[0];
  const int a_row = along_k ? thread / Shape::step : thread % Rows;
  const int a_step = along_k ? thread % Shape::step : thread / Rows;
  const int rows_apart = along_k ? few_threads / Shape::step : 0;
  const int steps_apart = along_k ? 0 : few_threads / Rows;
  const std::int64_t a_apart = rows_apart * a.strides[0] + steps_apart * a.strides[1];
  const T* a_from = &a(first_row + a_row, first_k + a_step);
  const int rows_left = clamped_int(p.m() - first_row) - a_row;
  const auto for_each_of_a = [&](const auto& visit_one) {
    if (thread >= a_elements) return;
#pragma unroll
    for (int i = 0; i < a_count; ++i) {
      visit_one(i, &layout.a[0][a_row + i * rows_apart][a_step + i * steps_apart]);
    }
  };
  [[maybe_unused]] float a_next[a_count];
  FewChunks<T, KMajor> b_next;
  const T* b_from = &b(first_k + place.k, first_column + place.column);
  const std::int64_t along_stride = call.contiguous ? 1 : b.strides[KMajor ? 0 : 1];
  const int columns_left = clamped_int(p.n() - first_column) - place.column;
  const auto fetch = [&](std::int64_t k, int stage) {
    const int k_left = clamped_int(end_k - k) - place.k;
    if constexpr (KMajor) {
      b_next.template load<Aligned>(b_from, b.strides[1], along_stride, columns_left, k_left,
                                    clamped_int(k) + place.k);
    } else {
      b_next.template load<Aligned>(b_from, b.strides[0], along_stride, k_left, columns_left,
                                    clamped_int(first_column) + place.column);
    }
    b_from += Shape::step * b.strides[0];
    const int steps_left = clamped_int(end_k - k) - a_step;
    for_each_of_a([&](int i, float* to) {
      const bool exists = i * rows_apart < rows_left && i * steps_apart < steps_left;
      if constexpr (copies) {
        ptx::async_copy<4>(to + stage * stage_elements, exists ? a_from + i * a_apart : p.a.data,
                           exists ? 4 : 0);
      } else {
        a_next[i] = exists ? convert<float>(a_from[i * a_apart]) : 0.0f;
      }
    });
    a_from += Shape::step * a.strides[1];
  };

  float sums[Rows][Shape::columns] = {};
  int stage = 0;
  if (first_k < end_k) fetch(first_k, stage);
  for (std::int64_t k = first_k; k < end_k; k += Shape::step) {
    const FewChunks<T, KMajor> chunks = b_next;
    if constexpr (copies) {
      ptx::async_wait_all();
    } else {
      for_each_of_a([&](int i, float* to) { to[stage * stage_elements] = a_next[i]; });
    }
    __syncthreads();  // the stage is there for all, and all have read the other one
    if (k + Shape::step < end_k) fetch(k + Shape::step, stage ^ 1);
#pragma unroll
    for (int first = 0; first < Shape::ks; first += 4) {
      float values[4][Shape::columns];
#pragma unroll
      for (int i = 0; i < few_chunks; ++i) {
        const Pack<T, Shape::chunk> chunk = unpack(chunks.raw[i]);
        if constexpr (KMajor) {
#pragma unroll
          for (int j = 0; j < 4; ++j) values[j][i] = convert<float>(chunk[first + j]);
        } else {
#pragma unroll
          for (int j = 0; j < Shape::chunk; ++j) values[i][j] = convert<float>(chunk[j]);
        }
      }
#pragma unroll
      for (int row = 0; row < Rows; ++row) {
        const Pack<float, 4> factor = load_wide<4>(&layout.a[stage][row][place.k + first]);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
#pragma unroll
          for (int j = 0; j < Shape::columns; ++j) sums[row][j] += factor[i] * values[i][j];
        }
      }
    }
    stage ^= 1;
  }

  // Over the lanes, then over the warps that shared k: always in the same order.
  __syncthreads();
#pragma unroll
  for (int row = 0; row < Rows; ++row) {
#pragma unroll
    for (int j = 0; j < Shape::columns; ++j) {
      float sum = sums[row][j];
#pragma unroll
      for (int i = 1; i < Shape::k_lanes; i *= 2) {
        sum += shuffle_xor(sum, KMajor ? i : i * Shape::column_lanes);
      }
      if (place.first_k_lane) layout.sums[place.k_warp][row][place.column + j] = sum;
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
      float sum = 0;
#pragma unroll
      for (int warp = 0; warp < Shape::k_warps; ++warp) sum += layout.sums[warp][row][column];
      finish(target, matrix, first_row + row, first_column + column, sum);
    }
  });
}

/// What the host decides of a call whose C has few rows.
struct FewPlan {
  int rows = 1;  // per block: 1, 4 or few_max_rows
  int slices = 1;
  double seconds = 0;
};

/// In detail/few_rows_*.cu, and for f32 in the rung's file. C has few rows.
void run_few_rows(Context& context, const Finish<float>& finish, const FewPlan& plan);
void run_few_rows(Context& context, const Finish<f16>& finish, const FewPlan& plan);
void run_few_rows(Context& context, const Finish<bf16>& finish, const FewPlan& plan);

/// B's k is contiguous, or nearer to being so than its columns.
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

/// Its definition, for the file that compiles T's kernels.
template <class T>
void launch_few_rows(Context& context, const Finish<T>& finish, const FewPlan& plan) {
  constexpr std::int64_t max_batch = 65535;
  const Product<T, float>& p = finish.p;
  const Lines lines = few_lines(p.b);
  const auto launch_one = [&]<int Rows, bool KMajor>(const Finish<T>& part, float* partial,
                                                     std::int64_t depth, std::int64_t slices) {
    using Shape = FewShape<T, KMajor>;
    const std::int64_t groups = tiles_of(p.m(), Rows);
    const FewRowsCall<T> call{.finish = slices > 1 ? into_partial_sums(part, partial) : part,
                              .slice_depth = depth,
                              .groups = static_cast<int>(groups),
                              .contiguous = lines != Lines::strided};
    launch(context,
           {.grid = {groups * tiles_of(p.n(), Shape::width), slices, part.p.c.shape[0]},
            .block = few_threads,
            .shared_bytes = sizeof(FewLayout<T, Rows, KMajor>)},
           lines == Lines::aligned ? gemm_few_rows<T, Rows, KMajor, true>
                                   : gemm_few_rows<T, Rows, KMajor, false>,
           call);
  };
  const auto with_layout = [&]<bool KMajor>() {
    const std::int64_t step = FewShape<T, KMajor>::step;
    const std::int64_t depth =
        larger<std::int64_t>(tiles_of(tiles_of(p.k(), step), plan.slices), 1) * step;
    const std::int64_t slices = larger<std::int64_t>(tiles_of(p.k(), depth), 1);
    for (std::int64_t first = 0; first < p.c.shape[0]; first += max_batch) {
      Finish<T> part = finish;
      part.p = slice(p, 0, first, smaller(max_batch, p.c.shape[0] - first));
      float* partial = nullptr;
      if (slices > 1) {
        partial = static_cast<float*>(context.workspace(partial_bytes(part, slices)));
      }
      if (plan.rows == 1) {
        launch_one.template operator()<1, KMajor>(part, partial, depth, slices);
      } else if (few_max_rows<T> == 4 || plan.rows == 4) {
        launch_one.template operator()<4, KMajor>(part, partial, depth, slices);
      } else {
        launch_one.template operator()<few_max_rows<T>, KMajor>(part, partial, depth, slices);
      }
      if (slices > 1) add_slices(context, part, partial, static_cast<int>(slices));
    }
  };
  few_k_major(p.b) ? with_layout.template operator()<true>()
                   : with_layout.template operator()<false>();
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
