// SPDX-License-Identifier: Apache-2.0
// gemm / ldmatrix pipeline: the kernel, compiled once per operand type.
//
// Supports any layout: an operand's tile in shared memory keeps its layout in global memory, k or
// rows contiguous, and ldmatrix transposes it where needed while loading registers.
//
// Part of the rung whose Idea, Changes, Cost and Limits are in 220_ldmatrix_pipeline.cu.
#pragma once

#include <type_traits>

#include "rung/device/load_anywhere.hpp"
#include "rung/device/ptx/async_copy.hpp"
#include "rung/device/ptx/matrix.hpp"
#include "rung/device/tile/raster.hpp"
#include "rung/ops/gemm/shared/cuda/slices.hpp"
#include "rung/device/tile/strip.hpp"
#include "rung/ops/gemm/shared/cuda/tensor_cost.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

/// Extents of a block's tile and of each warp's part.
struct LdmatrixShape {
  int rows, columns;
  int warp_rows, warp_columns;
  int stages;
  int blocks;  // per SM
  [[nodiscard]] constexpr int warps_along() const { return columns / warp_columns; }
  [[nodiscard]] constexpr int threads() const { return 32 * (rows / warp_rows) * warps_along(); }
};
// Two blocks of 96 KiB per SM, or three of 64.
constexpr LdmatrixShape ldmatrix_shapes[] = {
    {.rows = 128, .columns = 128, .warp_rows = 64, .warp_columns = 64, .stages = 3, .blocks = 2},
    {.rows = 64, .columns = 64, .warp_rows = 32, .warp_columns = 32, .stages = 4, .blocks = 3}};

/// Operand of one matrix: `outer` is the axis shared with C.
template <class T>
struct StridedOperand {
  const T* data;
  std::int64_t outer_stride, outer_extent;
  std::int64_t depth_stride;
};

/// Kernel parameters.
template <class T>
struct LdmatrixCall {
  Finish<T> finish;
  Raster raster;
  std::int64_t slice_depth;  // steps of k per slice
  bool wide_a, wide_b;       // lines begin at multiples of 16 bytes
};

/// Copier of an operand's tiles along k, 16-byte chunk by chunk.
template <class T, int Rows, bool KMajor, int Threads>
class ChunkCopy {
  using Tile = SwizzledTile<T, Rows, KMajor>;
  static constexpr int chunk = vector_width<T>;
  static constexpr int per_line = KMajor ? Tile::depth / chunk : Rows / chunk;
  static constexpr int count = Tile::bytes / 16 / Threads;
  static constexpr int lines_apart = Threads / per_line;
  static_assert(count * Threads * 16 == Tile::bytes && lines_apart * per_line == Threads);
  static constexpr int many = 1 << 20;  // clamp of counts: above any chunk's elements

  const T* from_;  // this thread's first chunk of the next tile
  std::int64_t line_stride_;
  std::int64_t along_stride_;
  int outer_left_;    // elements along outer from that chunk's first on
  int outer_before_;  // elements before it in its line, if lines are along outer
  bool wide_;

  static __device__ int line_number() { return static_cast<int>(threadIdx.x) / per_line; }
  static __device__ int along() { return static_cast<int>(threadIdx.x) % per_line * chunk; }

 public:
  __device__ ChunkCopy(const StridedOperand<T>& operand, std::int64_t first_outer,
                       std::int64_t first_k, bool wide)
      : wide_(wide) {
    const std::int64_t outer = first_outer + (KMajor ? line_number() : along());
    const std::int64_t k = first_k + (KMajor ? along() : line_number());
    line_stride_ = KMajor ? operand.outer_stride : operand.depth_stride;
    along_stride_ = KMajor ? operand.depth_stride : operand.outer_stride;
    outer_left_ =
        static_cast<int>(clamped<std::int64_t>(operand.outer_extent - outer, -many, many));
    outer_before_ = static_cast<int>(smaller<std::int64_t>(outer, many));
    from_ = operand.data + outer * operand.outer_stride + k * operand.depth_stride;
  }

  /// Starts copying the next tile, of which k_left steps exist; the rest is zero-filled. k_before
  /// steps precede the tile. `somewhere`: any valid address in global memory.
  __device__ __forceinline__ void copy(unsigned char* tile, int k_left, std::int64_t k_before,
                                       const T* somewhere) {
    const auto place = [&](int i) {
      const int line = line_number() + i * lines_apart;
      return tile + (KMajor ? Tile::place(line, along()) : Tile::place(along(), line));
    };
    const auto left = [&](int i) {
      const bool exists =
          KMajor ? i * lines_apart < outer_left_ : line_number() + i * lines_apart < k_left;
      return exists ? (KMajor ? k_left - along() : outer_left_) : 0;
    };
    if (wide_) {
#pragma unroll
      for (int i = 0; i < count; ++i) {
        const int valid = clamped(left(i), 0, chunk);
        ptx::async_copy<16>(place(i),
                            valid > 0 ? from_ + i * lines_apart * line_stride_ : somewhere,
                            valid * static_cast<int>(sizeof(T)));
      }
    } else {
      const int before = KMajor ? static_cast<int>(smaller<std::int64_t>(k_before, many)) + along()
                                : outer_before_;
#pragma unroll 1
      for (int i = 0; i < count; ++i) {
        const T* const from = from_ + i * lines_apart * line_stride_;
        T* const to = reinterpret_cast<T*>(place(i));
        if (along_stride_ == 1) {
          store_raw(to, load_anywhere<chunk>(from - before, before, before + larger(left(i), 0)));
          continue;
        }
        Pack<T, chunk> values;
#pragma unroll
        for (int j = 0; j < chunk; ++j) {
          values[j] = j < left(i) ? from[j * along_stride_] : zero<T>();
        }
        store_raw(to, raw(values));
      }
    }
    from_ += Tile::depth * (KMajor ? along_stride_ : line_stride_);
  }
};

/// Fragment of 32 bytes of k: the four registers of A's 16 rows, or of B's 2 x 8 columns. `Second`:
/// the axis along which the second of the four matrices follows the first.
enum class Second { rows, depth };
template <class T, int Rows, bool KMajor, Second second>
__device__ __forceinline__ void load_fragment4(std::uint32_t (&to)[4], const unsigned char* tile,
                                               int first_row, int step) {
  using Tile = SwizzledTile<T, Rows, KMajor>;
  constexpr int half = vector_width<T>;  // of the fragment's depth
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int first_k = step * 2 * half;
  if constexpr (KMajor || sizeof(T) == 2) {
    // Lane 8 i + r passes the address of line r of matrix i.
    const int matrix = lane / 8;
    const int below = second == Second::rows ? matrix % 2 : matrix / 2;
    const int behind = second == Second::rows ? matrix / 2 : matrix % 2;
    const int row = first_row + 8 * below + (KMajor ? lane % 8 : 0);
    const int k = first_k + half * behind + (KMajor ? 0 : lane % 8);
    ptx::load_matrix<4, !KMajor>(to, tile + Tile::place(row, k));
  } else {
    // ldmatrix transposes only 16-bit elements: 32-bit elements are loaded lane by lane.
    typedef std::uint32_t Word __attribute__((may_alias));
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int below = second == Second::rows ? i % 2 : i / 2;
      const int behind = second == Second::rows ? i / 2 : i % 2;
      to[i] = *reinterpret_cast<const Word*>(
          tile + Tile::place(first_row + 8 * below + lane / 4, first_k + half * behind + lane % 4));
    }
  }
  if constexpr (sizeof(T) == 4) {
#pragma unroll
    for (auto& each : to) each = ptx::to_tf32(__uint_as_float(each));
  }
}

template <class T, int Shape, bool KMajorA, bool KMajorB>
struct LdmatrixLayout {
  struct alignas(1024) Stage {
    unsigned char a[SwizzledTile<T, ldmatrix_shapes[Shape].rows, KMajorA>::bytes];
    unsigned char b[SwizzledTile<T, ldmatrix_shapes[Shape].columns, KMajorB>::bytes];
  };
  union {
    Stage stages[ldmatrix_shapes[Shape].stages];
    StripStage strips[ldmatrix_shapes[Shape].threads() / 32];
  };
};

template <class T, int Shape, bool KMajorA, bool KMajorB>
__global__ void __launch_bounds__(ldmatrix_shapes[Shape].threads(), ldmatrix_shapes[Shape].blocks)
    gemm_ldmatrix_pipeline(LdmatrixCall<T> call) {
  constexpr LdmatrixShape shape = ldmatrix_shapes[Shape];
  using TileA = SwizzledTile<T, shape.rows, KMajorA>;
  constexpr int depth = TileA::depth;
  auto& layout = shared<LdmatrixLayout<T, Shape, KMajorA, KMajorB>>();
  const auto& p = call.finish.p;
  const TileWork work = call.raster.at(static_cast<int>(blockIdx.x));
  const std::int64_t first_row = std::int64_t{work.row} * shape.rows;
  const std::int64_t first_column = std::int64_t{work.column} * shape.columns;
  const std::int64_t first_k = work.slice * call.slice_depth;
  const std::int64_t end_k = smaller(p.k(), first_k + call.slice_depth);
  const auto a = p.a.at(work.batch);
  const auto b = p.b.at(work.batch);
  ChunkCopy<T, shape.rows, KMajorA, shape.threads()> copy_a(
      {a.data, a.strides[0], p.m(), a.strides[1]}, first_row, first_k, call.wide_a);
  ChunkCopy<T, shape.columns, KMajorB, shape.threads()> copy_b(
      {b.data, b.strides[1], p.n(), b.strides[0]}, first_column, first_k, call.wide_b);

  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_row = warp / shape.warps_along() * shape.warp_rows;
  const int warp_column = warp % shape.warps_along() * shape.warp_columns;
  constexpr int down = shape.warp_rows / 16;
  constexpr int along = shape.warp_columns / 8;
  float sums[down][along][4] = {};
  // Rounding to tf32 needs registers that prefetched loads of later steps would occupy.
  [[maybe_unused]] constexpr int unrolled_steps = sizeof(T) == 4 ? 1 : 4;

  const std::int64_t tiles = end_k > first_k ? (end_k - first_k + depth - 1) / depth : 0;
  const auto copy = [&](std::int64_t tile, auto& stage) {
    const std::int64_t before = tile * depth;
    const auto left = static_cast<int>(smaller<std::int64_t>(end_k - first_k - before, depth));
    copy_a.copy(stage.a, left, before, p.a.data);
    copy_b.copy(stage.b, left, before, p.b.data);
  };
#pragma unroll
  for (int stage = 0; stage < shape.stages - 1; ++stage) {
    if (stage < tiles) copy(stage, layout.stages[stage]);
    ptx::async_commit();
  }
  int reading = 0;
  int writing = shape.stages - 1;
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    ptx::async_wait<shape.stages - 2>();
    __syncthreads();  // the tile has arrived for all, and all have read the stage written next
    if (tile + shape.stages - 1 < tiles) copy(tile + shape.stages - 1, layout.stages[writing]);
    ptx::async_commit();
    const auto& stage = layout.stages[reading];
#pragma unroll(unrolled_steps)
    for (int step = 0; step < 4; ++step) {
      std::uint32_t b_words[along / 2][4];
#pragma unroll
      for (int j = 0; j < along / 2; ++j) {
        load_fragment4<T, shape.columns, KMajorB, Second::depth>(b_words[j], stage.b,
                                                                 warp_column + 16 * j, step);
      }
#pragma unroll
      for (int i = 0; i < down; ++i) {
        std::uint32_t a_words[4];
        load_fragment4<T, shape.rows, KMajorA, Second::rows>(a_words, stage.a, warp_row + 16 * i,
                                                             step);
#pragma unroll
        for (int j = 0; j < along; ++j) {
          ptx::mma<T>(sums[i][j], a_words,
                                {b_words[j / 2][j % 2 * 2], b_words[j / 2][j % 2 * 2 + 1]});
        }
      }
    }
    reading = reading == shape.stages - 1 ? 0 : reading + 1;
    writing = writing == shape.stages - 1 ? 0 : writing + 1;
  }

  ptx::async_wait_all();
  __syncthreads();
  const int matrix = work.slice * call.raster.batch + work.batch;
  const auto finish = [&](const auto& target) {
#pragma unroll
    for (int i = 0; i < down; ++i) {
      finish_strip<shape.warp_columns>(target, layout.strips[warp], matrix,
                                       first_row + warp_row + 16 * i, first_column + warp_column,
                                       [&](int at) { return sums[i][at / 4][at % 4]; });
    }
  };
  with_output_type<T>(p, call.finish.narrow, finish);
}

/// Returns whether lines along the contiguous axis begin at multiples of 16 bytes.
template <class T>
bool has_wide_lines(const View<const T, 3>& operand, bool k_major, int outer, int depth) {
  constexpr std::int64_t width = 16 / static_cast<std::int64_t>(sizeof(T));
  const int along = k_major ? depth : outer;
  const int line = k_major ? outer : depth;
  return (operand.strides[along] == 1 || operand.shape[along] <= 1) &&
         (operand.strides[line] % width == 0 || operand.shape[line] <= 1) &&
         (operand.strides[0] % width == 0 || operand.shape[0] <= 1) &&
         reinterpret_cast<std::uintptr_t>(operand.data) % 16 == 0;
}
/// Returns the axis along which lines run: the one with the smaller stride.
inline bool is_k_major(std::int64_t outer_stride, std::int64_t depth_stride) {
  return std::abs(depth_stride) <= std::abs(outer_stride);
}

/// Launches the kernel. Defined in the rung's file, which is compiled once per type; float operands
/// are rounded to tf32.
void run_ldmatrix_pipeline(Context& context, const Finish<f16>& finish, const TensorPlan& plan);
void run_ldmatrix_pipeline(Context& context, const Finish<bf16>& finish, const TensorPlan& plan);
void run_ldmatrix_pipeline(Context& context, const Finish<float>& finish, const TensorPlan& plan);

/// Implements run_ldmatrix_pipeline(), in the file that compiles T's kernels.
template <class T>
void launch_ldmatrix_pipeline(Context& context, const Finish<T>& given, const TensorPlan& plan) {
  Finish<T> finish = given;
  finish.p = with_contiguous_c(given.p);
  const auto& p = finish.p;
  const bool k_major_a = is_k_major(p.a.strides[1], p.a.strides[2]);
  const bool k_major_b = is_k_major(p.b.strides[2], p.b.strides[1]);
  const LdmatrixShape& shape = ldmatrix_shapes[plan.tile];
  constexpr std::int64_t depth = 128 / static_cast<std::int64_t>(sizeof(T));
  const std::int64_t k_tiles = tiles_of(p.k(), depth);
  const std::int64_t slice_depth = larger<std::int64_t>(tiles_of(k_tiles, plan.slices), 1) * depth;
  const auto slices = static_cast<int>(larger<std::int64_t>(tiles_of(p.k(), slice_depth), 1));
  const std::int64_t down = tiles_of(p.m(), shape.rows);
  const std::int64_t along = tiles_of(p.n(), shape.columns);

  const auto choose = [&]<int Shape, bool KMajorA, bool KMajorB>(const LdmatrixCall<T>& call) {
    launch(context,
           {.grid = call.raster.total(),
            .block = ldmatrix_shapes[Shape].threads(),
            .shared_bytes = sizeof(LdmatrixLayout<T, Shape, KMajorA, KMajorB>)},
           gemm_ldmatrix_pipeline<T, Shape, KMajorA, KMajorB>, call);
  };
  const auto by_layout = [&]<int Shape>(const LdmatrixCall<T>& call) {
    if (k_major_a) {
      return k_major_b ? choose.template operator()<Shape, true, true>(call)
                       : choose.template operator()<Shape, true, false>(call);
    }
    k_major_b ? choose.template operator()<Shape, false, true>(call)
              : choose.template operator()<Shape, false, false>(call);
  };
  // A grid has fewer than 2^31 blocks: larger batches take several launches.
  const std::int64_t at_once = larger<std::int64_t>(0x7fffffff / (down * along * slices), 1);
  for (std::int64_t first = 0; first < p.c.shape[0]; first += at_once) {
    const Finish<T> part = batches(finish, first, smaller(at_once, p.c.shape[0] - first));
    float* partial = nullptr;
    Finish<T> target = part;
    if (slices > 1) {
      partial = static_cast<float*>(context.workspace(partial_bytes(part, slices)));
      target = into_partial_sums(part, partial);
    }
    const LdmatrixCall<T> call{
        .finish = target,
        .raster = {.down = static_cast<int>(down),
                   .along = static_cast<int>(along),
                   .batch = static_cast<int>(part.p.c.shape[0]),
                   .slices = slices,
                   .band = raster_band(std::int64_t{shape.blocks} * context.info().sms, shape.rows,
                                       shape.columns)},
        .slice_depth = slice_depth,
        .wide_a = has_wide_lines(p.a, k_major_a, 1, 2),
        .wide_b = has_wide_lines(p.b, k_major_b, 2, 1)};
    plan.tile == 0 ? by_layout.template operator()<0>(call)
                   : by_layout.template operator()<1>(call);
    if (slices > 1) add_slices(context, part, partial, slices);
  }
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
