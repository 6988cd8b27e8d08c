// SPDX-License-Identifier: Apache-2.0
// gemm / shifted tiles: the kernel, compiled once per operand type.
//
// A tile of either operand consists of lines of 128 bytes in the layout of SwizzledTile: one row
// along k, or 64 rows at one k. Shared memory has a ninth word per line, since eight words of an
// unaligned line are in nine aligned ones. cp.async copies only a line's own bytes and fills the
// rest with zeros, so that a shifted line ends in zeros.
//
// Part of the rung whose Idea, Changes, Cost and Limits are in shifted_tiles.cu.
#pragma once

#include "rung/device/last_block.hpp"
#include "rung/ops/gemm/cuda/220_ldmatrix_pipeline.cuh"

namespace rung::gemm_cuda::inline RUNG_TARGET {

/// Extents of a block's tile and of each warp's part.
struct ShiftedShape {
  int rows, columns;
  int warp_rows, warp_columns;
  int stages;
  int blocks;  // per SM
  [[nodiscard]] constexpr int warps_along() const { return columns / warp_columns; }
  [[nodiscard]] constexpr int warps() const { return rows / warp_rows * warps_along(); }
  [[nodiscard]] constexpr int threads() const { return 32 * warps(); }
  [[nodiscard]] constexpr int sums() const { return warp_rows * warp_columns / 32; }  // per thread
  [[nodiscard]] constexpr std::size_t shared_bytes() const {
    return std::size_t{1} * stages * (rows + columns) * (128 + 16);
  }
};
// Four blocks of 54 KiB per SM, or two of 108: two of three stages are in flight, 128 KiB.
constexpr ShiftedShape shifted_shapes[] = {
    {.rows = 64, .columns = 64, .warp_rows = 32, .warp_columns = 32, .stages = 3, .blocks = 4},
    {.rows = 128, .columns = 128, .warp_rows = 64, .warp_columns = 64, .stages = 3, .blocks = 2}};
constexpr int shifted_shapes_count = 2;

constexpr int shifted_depth = 64;  // elements in a line of 128 bytes
constexpr int word_elements = 8;   // in 16 bytes

/// Shape of a block's tile; slices of k, and the groups in which they are combined.
struct ShiftedPlan {
  int shape;
  std::int64_t slice_steps;  // tiles of k per slice
  int slices;
  int group, groups;
};

/// Kernel parameters.
template <class T>
struct ShiftedCall {
  Finish<T> finish;
  Raster raster;
  std::int64_t slice_depth;  // steps of k per slice
  int group, groups;         // as in ShiftedPlan
  float* partial;            // sums of the slices, then those of the groups
  unsigned* tickets;         // per tile: one of the tile, one per group
};

/// Lines of an operand's tiles that one warp copies. Eight lanes copy a line, a word each, and four
/// lines at a time. Lines 8 apart are equally misaligned, as 8 pitches are a multiple of 16 bytes,
/// and so is a line in all tiles: a lane has the aligned words of two lines, and adds to them.
template <class T, int Rows, bool KMajor, int Warps>
class ShiftedLines {
  static constexpr int panel = KMajor ? 0 : shifted_depth;  // lines per 64 rows

  const T* words_[2];  // this lane's words of lines lane / 8 and lane / 8 + 4 in the next tile
  const T* ninth_;     // ninth word of line lane % lines
  const T* from_;      // the warp's first line in the first tile
  const T* begin_;
  int behind_[2], ninth_behind_;  // elements between the begins of a line's first word and the line
  std::int64_t line_stride_;
  std::int64_t tile_stride_;
  int outer_left_;  // lines along k: of these, the warp's that exist; else elements of a line

 public:
  static constexpr int lines = Rows / Warps;
  static_assert(lines % 8 == 0 && (KMajor || panel % lines == 0));

  /// Returns the warp's first line in the tile.
  static __device__ int first_line() { return static_cast<int>(threadIdx.x) / 32 * lines; }

  __device__ ShiftedLines(const StridedOperand<T>& operand, const T* begin,
                          std::int64_t first_outer, std::int64_t first_k)
      : begin_(begin) {
    const std::int64_t outer =
        first_outer + (KMajor ? first_line() : first_line() / panel * shifted_depth);
    const std::int64_t k = first_k + (KMajor ? 0 : first_line() % panel);
    from_ = operand.data + outer * operand.outer_stride + k * operand.depth_stride;
    line_stride_ = KMajor ? operand.outer_stride : operand.depth_stride;
    tile_stride_ = shifted_depth * (KMajor ? std::int64_t{1} : operand.depth_stride);
    outer_left_ = static_cast<int>(
        clamped<std::int64_t>(operand.outer_extent - outer, 0, KMajor ? lines : shifted_depth));
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (int odd = 0; odd < 2; ++odd) {
      const T* const line = from_ + (lane / 8 + 4 * odd) * line_stride_;
      behind_[odd] = behind(line);
      words_[odd] = line - behind_[odd] + lane % 8 * word_elements;
    }
    const T* const own = from_ + lane % lines * line_stride_;
    ninth_behind_ = behind(own);
    ninth_ = own - ninth_behind_ + 8 * word_elements;
  }

  /// Returns the elements by which line lane % lines of a tile has to be shifted.
  [[nodiscard]] __device__ int own_shift() const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const bool exists = KMajor ? lane % lines < outer_left_ : outer_left_ > 0;
    return exists ? ninth_behind_ : 0;
  }

  /// Starts copying the warp's lines of the next tile, of which k_left steps exist. `First`: it is
  /// the block's first tile; only there may a word begin before the operand.
  template <bool First>
  __device__ __forceinline__ void copy(unsigned char* tile, unsigned char* ninth, int k_left) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int existing = KMajor ? outer_left_ : k_left - first_line() % panel;
    const int length = KMajor ? k_left : outer_left_;
    if (First && from_ - word_elements < begin_) {
      copy_first(tile, ninth, existing, length);
    } else {
      const int word = lane % 8;
      unsigned char* const to = tile + (first_line() + lane / 8) * 128;
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        const int valid = clamped(length + behind_[odd] - word * word_elements, 0, word_elements);
        unsigned char* const to_word = to + odd * 512 + (word ^ (lane / 8 + 4 * odd)) * 16;
        const T* from = words_[odd];
#pragma unroll
        for (int i = 0; i < lines; i += 8) {
          copy_word(to_word + i * 128, from, i + 4 * odd + lane / 8 < existing ? valid : 0);
          from += 8 * line_stride_;
        }
      }
      if (lane < lines && ninth_behind_ != 0) {
        copy_word(ninth + (first_line() + lane) * 16, ninth_,
                  lane < existing ? larger(length + ninth_behind_ - shifted_depth, 0) : 0);
      }
    }
    words_[0] += tile_stride_;
    words_[1] += tile_stride_;
    ninth_ += tile_stride_;
  }

 private:
  static __device__ int behind(const T* line) {
    return static_cast<int>(reinterpret_cast<std::uintptr_t>(line) % 16 / sizeof(T));
  }

  /// Starts copying `valid` elements of an aligned word, and zeros after them.
  __device__ __forceinline__ void copy_word(unsigned char* to, const T* from, int valid) const {
    ptx::async_copy<16>(to, valid > 0 ? from : begin_, valid * static_cast<int>(sizeof(T)));
  }

  /// Implements copy() for lines near the begin of the operand: a word that begins before the
  /// operand is loaded element by element.
  __device__ void copy_first(unsigned char* tile, unsigned char* ninth, int existing,
                             int length) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll 1
    for (int at = lane; at < 9 * lines; at += 32) {
      const int line = at / 9;
      const int word = at % 9;
      const T* const begin = from_ + line * line_stride_;
      const int skipped = behind(begin);
      const T* const from = begin - skipped + word * word_elements;
      const int valid =
          line < existing ? clamped(length + skipped - word * word_elements, 0, word_elements) : 0;
      const int number = first_line() + line;
      unsigned char* const to =
          word < 8 ? tile + number * 128 + ((word ^ (number % 8)) * 16) : ninth + number * 16;
      if (valid == 0 || from >= begin_) {
        copy_word(to, from, valid);
        continue;
      }
      std::uint32_t words[4] = {};
#pragma unroll 1
      for (int i = word_elements - 1; i >= 0; --i) {
        words[3] = words[3] << 16 | words[2] >> 16;
        words[2] = words[2] << 16 | words[1] >> 16;
        words[1] = words[1] << 16 | words[0] >> 16;
        words[0] = words[0] << 16 | (i >= skipped && i < valid ? from[i].bits : 0U);
      }
      store_wide(reinterpret_cast<std::uint32_t*>(to),
                 Pack<std::uint32_t, 4>{{words[0], words[1], words[2], words[3]}});
    }
  }
};

/// Moves line `line` of adjacent tiles from `shift` elements behind to its begin.
__device__ __forceinline__ void shift_line(unsigned char* tiles, const unsigned char* ninth,
                                           int line, int shift) {
  if (shift == 0) return;
  const auto place = [&](int word) {
    return reinterpret_cast<std::uint32_t*>(tiles + line * 128 + ((word ^ (line % 8)) * 16));
  };
  // In two halves, which take fewer registers: the fifth word is part of both.
  Pack<std::uint32_t, 4> next = load_wide<4>(place(0));
#pragma unroll
  for (int first = 0; first < 8; first += 4) {
    std::uint32_t words[20];
#pragma unroll
    for (int word = 0; word < 5; ++word) {
      if (word > 0) {
        next = load_wide<4>(first + word < 8
                                ? place(first + word)
                                : reinterpret_cast<const std::uint32_t*>(ninth + line * 16));
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) words[4 * word + i] = next[i];
    }
#pragma unroll
    for (int i = 0; i < 18; ++i) words[i] = (shift & 4) != 0 ? words[i + 2] : words[i];
#pragma unroll
    for (int i = 0; i < 17; ++i) words[i] = (shift & 2) != 0 ? words[i + 1] : words[i];
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      words[i] = (shift & 1) != 0 ? words[i] >> 16 | words[i + 1] << 16 : words[i];
    }
#pragma unroll
    for (int word = 0; word < 4; ++word) {
      store_wide(place(first + word),
                 Pack<std::uint32_t, 4>{{words[4 * word], words[4 * word + 1], words[4 * word + 2],
                                         words[4 * word + 3]}});
    }
  }
}

template <int Shape>
struct ShiftedLayout {
  static constexpr int lines = shifted_shapes[Shape].rows + shifted_shapes[Shape].columns;
  struct alignas(1024) Stage {
    unsigned char tiles[lines][128];  // of A, then of B
    unsigned char ninth[lines][16];
  };
  union {
    Stage stages[shifted_shapes[Shape].stages];
    StripStage strips[shifted_shapes[Shape].warps()];
    int scratch;
  };
};
static_assert(sizeof(ShiftedLayout<0>) == shifted_shapes[0].shared_bytes() &&
              sizeof(ShiftedLayout<1>) == shifted_shapes[1].shared_bytes());

/// Stores the partial sums of a block: the packs of four of adjacent threads are adjacent.
template <int Threads, int Down, int Along>
__device__ __forceinline__ void store_shifted(float* to, const float (&sums)[Down][Along][4]) {
#pragma unroll
  for (int i = 0; i < Down; ++i) {
#pragma unroll
    for (int j = 0; j < Along; ++j) {
      const auto& four = sums[i][j];
      store_wide(to + ((i * Along + j) * Threads + static_cast<int>(threadIdx.x)) * 4,
                 Pack<float, 4>{{four[0], four[1], four[2], four[3]}});
    }
  }
}
/// Adds `count` consecutive partial sums in order.
template <int Threads, int Down, int Along>
__device__ __forceinline__ void add_shifted(float (&sums)[Down][Along][4], const float* from,
                                            int count) {
#pragma unroll
  for (auto& row : sums) {
#pragma unroll
    for (auto& four : row) {
#pragma unroll
      for (float& sum : four) sum = 0;
    }
  }
#pragma unroll(Down* Along <= 8 ? 4 : 1)
  for (int part = 0; part < count; ++part, from += Down * Along * 4 * Threads) {
#pragma unroll
    for (int i = 0; i < Down; ++i) {
#pragma unroll
      for (int j = 0; j < Along; ++j) {
        const Pack<float, 4> more =
            load_wide<4>(from + ((i * Along + j) * Threads + static_cast<int>(threadIdx.x)) * 4);
#pragma unroll
        for (int each = 0; each < 4; ++each) sums[i][j][each] += more[each];
      }
    }
  }
}

/// Computes a tile of C over a slice of k; the last block of a tile combines the slices.
template <class T, int Shape, bool KMajorA, bool KMajorB>
__global__ void __launch_bounds__(shifted_shapes[Shape].threads(), shifted_shapes[Shape].blocks)
    gemm_shifted_tiles(ShiftedCall<T> call) {
  constexpr ShiftedShape shape = shifted_shapes[Shape];
  constexpr int threads = shape.threads();
  using LinesA = ShiftedLines<T, shape.rows, KMajorA, shape.warps()>;
  using LinesB = ShiftedLines<T, shape.columns, KMajorB, shape.warps()>;
  auto& layout = shared<ShiftedLayout<Shape>>();
  const auto& p = call.finish.p;
  const TileWork work = call.raster.at(static_cast<int>(blockIdx.x));
  const int first_row = work.row * shape.rows;
  const int first_column = work.column * shape.columns;
  const std::int64_t first_k = work.slice * call.slice_depth;
  const std::int64_t end_k = smaller(p.k(), first_k + call.slice_depth);
  const auto a = p.a.at(work.batch);
  const auto b = p.b.at(work.batch);
  LinesA lines_a({a.data, a.strides[0], p.m(), a.strides[1]}, p.a.data, first_row, first_k);
  LinesB lines_b({b.data, b.strides[1], p.n(), b.strides[0]}, p.b.data, first_column, first_k);

  // Each thread shifts one line of each of the small tiles' warps' 16 lines of A and 16 of B, or a
  // line of A and a line of B.
  const int lane = static_cast<int>(threadIdx.x) % 32;
  constexpr int own_lines = ShiftedLayout<Shape>::lines / threads;
  int own_line[own_lines];
  int own_shift[own_lines];
  if constexpr (own_lines == 1) {
    const bool of_a = lane < LinesA::lines;
    own_line[0] = of_a ? LinesA::first_line() + lane
                       : shape.rows + LinesB::first_line() + lane - LinesA::lines;
    own_shift[0] = of_a ? lines_a.own_shift() : lines_b.own_shift();
  } else {
    static_assert(LinesA::lines == 32 && LinesB::lines == 32 && own_lines == 2);
    own_line[0] = LinesA::first_line() + lane;
    own_line[1] = shape.rows + LinesB::first_line() + lane;
    own_shift[0] = lines_a.own_shift();
    own_shift[1] = lines_b.own_shift();
  }

  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_row = warp / shape.warps_along() * shape.warp_rows;
  const int warp_column = warp % shape.warps_along() * shape.warp_columns;
  const bool multiplies = first_row + warp_row < p.m() && first_column + warp_column < p.n();
  constexpr int down = shape.warp_rows / 16;
  constexpr int along = shape.warp_columns / 8;
  float sums[down][along][4] = {};

  const auto tiles = static_cast<int>((end_k - first_k + shifted_depth - 1) / shifted_depth);
  const auto copy = [&]<bool First>(int tile, auto& stage) {
    const auto left = static_cast<int>(
        smaller<std::int64_t>(end_k - first_k - std::int64_t{tile} * shifted_depth, shifted_depth));
    lines_a.template copy<First>(stage.tiles[0], stage.ninth[0], left);
    lines_b.template copy<First>(stage.tiles[shape.rows], stage.ninth[shape.rows], left);
  };
  copy.template operator()<true>(0, layout.stages[0]);
  ptx::async_commit();
#pragma unroll 1
  for (int stage = 1; stage < shape.stages - 1; ++stage) {
    if (stage < tiles) copy.template operator()<false>(stage, layout.stages[stage]);
    ptx::async_commit();
  }
  int reading = 0;
  int writing = shape.stages - 1;
#pragma unroll 1
  for (int tile = 0; tile < tiles; ++tile) {
    auto& stage = layout.stages[reading];
    ptx::async_wait<shape.stages - 2>();
    __syncwarp();  // the warp's lines have arrived
#pragma unroll
    for (int i = 0; i < own_lines; ++i) {
      shift_line(stage.tiles[0], stage.ninth[0], own_line[i], own_shift[i]);
    }
    __syncthreads();  // all lines are in place, and all have read the stage written next
    if (tile + shape.stages - 1 < tiles) {
      copy.template operator()<false>(tile + shape.stages - 1, layout.stages[writing]);
    }
    ptx::async_commit();
    if (multiplies) {
#pragma unroll
      for (int step = 0; step < 4; ++step) {
        std::uint32_t b_words[along / 2][4];
#pragma unroll
        for (int j = 0; j < along / 2; ++j) {
          load_fragment4<T, shape.columns, KMajorB, Second::depth>(
              b_words[j], stage.tiles[shape.rows], warp_column + 16 * j, step);
        }
#pragma unroll
        for (int i = 0; i < down; ++i) {
          std::uint32_t a_words[4];
          load_fragment4<T, shape.rows, KMajorA, Second::rows>(a_words, stage.tiles[0],
                                                               warp_row + 16 * i, step);
#pragma unroll
          for (int j = 0; j < along; ++j) {
            ptx::mma<T>(sums[i][j], a_words,
                        {b_words[j / 2][j % 2 * 2], b_words[j / 2][j % 2 * 2 + 1]});
          }
        }
      }
    }
    reading = reading == shape.stages - 1 ? 0 : reading + 1;
    writing = writing == shape.stages - 1 ? 0 : writing + 1;
  }
  ptx::async_wait_all();
  __syncthreads();

  if (call.raster.slices > 1) {
    constexpr int size = shape.sums() * threads;
    const int tile = static_cast<int>(blockIdx.x) % call.raster.tiles();
    const std::int64_t all = call.raster.tiles();
    float* const slices = call.partial + std::int64_t{tile} * call.raster.slices * size;
    float* const groups =
        call.partial + (all * call.raster.slices + std::int64_t{tile} * call.groups) * size;
    unsigned* const tickets = call.tickets + tile * (call.groups + 1);
    const int group = work.slice / call.group;
    const int members = smaller(call.group, call.raster.slices - group * call.group);
    if (multiplies) store_shifted<threads>(slices + std::int64_t{work.slice} * size, sums);
    __syncthreads();
    if (!is_last_block(tickets + 1 + group, members, layout.scratch)) return;
    if (multiplies) {
      add_shifted<threads>(sums, slices + std::int64_t{group} * call.group * size, members);
    }
    if (call.groups > 1) {
      if (multiplies) store_shifted<threads>(groups + std::int64_t{group} * size, sums);
      __syncthreads();
      if (!is_last_block(tickets, call.groups, layout.scratch)) return;
      if (multiplies) add_shifted<threads>(sums, groups, call.groups);
    }
    __syncthreads();  // all have read `scratch`
  }
  if (!multiplies) return;
  with_output_type<T>(p, call.finish.narrow, [&](const auto& target) {
  // Not unrolled: each copy of finish_strip() contains every activation.
#pragma unroll 1
    for (int i = 0; i < down && first_row + warp_row + 16 * i < p.m(); ++i) {
      finish_strip<shape.warp_columns>(target, layout.strips[warp], work.batch,
                                       first_row + warp_row + 16 * i, first_column + warp_column,
                                       [&](int at) {
                                         float picked = 0;
#pragma unroll
                                         for (int candidate = 0; candidate < down; ++candidate) {
                                           if (candidate == i)
                                             picked = sums[candidate][at / 4][at % 4];
                                         }
                                         return picked;
                                       });
    }
  });
}

// --- on the host ---------------------------------------------------------------------------------

/// Returns whether an operand is contiguous along k; the axes are those of its view.
template <class V>
bool is_shifted_k_major(const V& operand, int outer, int depth) {
  const bool along_k = operand.strides[depth] == 1 || operand.shape[depth] <= 1;
  const bool along_outer = operand.strides[outer] == 1 || operand.shape[outer] <= 1;
  return along_k && !(along_outer && operand.shape[depth] <= operand.shape[outer]);
}
/// Returns whether an operand is contiguous along one axis, with different lines in the order of
/// their addresses.
template <class V>
bool is_shiftable(const V& operand, int outer, int depth) {
  const int along = is_shifted_k_major(operand, outer, depth) ? depth : outer;
  const int line = along == outer ? depth : outer;
  return (operand.strides[along] == 1 || operand.shape[along] <= 1) &&
         (operand.strides[line] > 0 || operand.shape[line] <= 1) && operand.strides[0] >= 0;
}
/// Returns whether some lines of an operand do not begin at multiples of 16 bytes.
template <class V>
bool has_shifted_lines(const V& operand, int outer, int depth) {
  const int line = is_shifted_k_major(operand, outer, depth) ? outer : depth;
  return reinterpret_cast<std::uintptr_t>(operand.data) % 16 != 0 ||
         (operand.shape[line] > 1 && operand.strides[line] % word_elements != 0) ||
         (operand.shape[0] > 1 && operand.strides[0] % word_elements != 0);
}
/// Returns the bytes of the partial sums of all tiles' slices and groups.
inline std::int64_t shifted_partial_bytes(const ShiftedShape& shape, std::int64_t tiles,
                                          std::int64_t slices, std::int64_t groups) {
  const std::int64_t of_tile = (slices + (groups > 1 ? groups : 0)) * shape.rows * shape.columns;
  return tiles * of_tile * static_cast<std::int64_t>(sizeof(float));
}

/// Launches the kernel. Defined in the rung's file, which is compiled once per type.
void run_shifted_tiles(Context& context, const Finish<f16>& finish, const ShiftedPlan& plan,
                       unsigned* tickets);
void run_shifted_tiles(Context& context, const Finish<bf16>& finish, const ShiftedPlan& plan,
                       unsigned* tickets);

/// Implements run_shifted_tiles(), in the file that compiles T's kernels.
template <class T>
void launch_shifted_tiles(Context& context, const Finish<T>& finish, const ShiftedPlan& plan,
                          unsigned* tickets) {
  const auto& p = finish.p;
  const bool k_major_a = is_shifted_k_major(p.a, 1, 2);
  const bool k_major_b = is_shifted_k_major(p.b, 2, 1);
  const ShiftedShape& shape = shifted_shapes[plan.shape];
  ShiftedCall<T> call{
      .finish = finish,
      .raster = {.down = static_cast<int>(tiles_of(p.m(), shape.rows)),
                 .along = static_cast<int>(tiles_of(p.n(), shape.columns)),
                 .batch = static_cast<int>(p.c.shape[0]),
                 .slices = plan.slices,
                 .band = raster_band(std::int64_t{shape.blocks} * context.info().sms, shape.rows,
                                     shape.columns)},
      .slice_depth = plan.slice_steps * shifted_depth,
      .group = plan.group,
      .groups = plan.groups,
      .partial = nullptr,
      .tickets = tickets};
  if (plan.slices > 1) {
    call.partial = static_cast<float*>(context.workspace(static_cast<std::size_t>(
        shifted_partial_bytes(shape, call.raster.tiles(), plan.slices, plan.groups))));
  }
  const auto choose = [&]<int Shape, bool KMajorA, bool KMajorB>() {
    launch(context,
           {.grid = call.raster.total(),
            .block = shifted_shapes[Shape].threads(),
            .shared_bytes = sizeof(ShiftedLayout<Shape>)},
           gemm_shifted_tiles<T, Shape, KMajorA, KMajorB>, call);
  };
  const auto by_layout = [&]<int Shape>() {
    if (k_major_a) {
      return k_major_b ? choose.template operator()<Shape, true, true>()
                       : choose.template operator()<Shape, true, false>();
    }
    k_major_b ? choose.template operator()<Shape, false, true>()
              : choose.template operator()<Shape, false, false>();
  };
  plan.shape == 0 ? by_layout.template operator()<0>() : by_layout.template operator()<1>();
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
