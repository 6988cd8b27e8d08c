// SPDX-License-Identifier: Apache-2.0
// gemm / skinny unaligned
//
// Idea     a product with at most 64 rows or columns whose long operand W has rows along k that
//          begin at any address. Rows 8 apart are equally misaligned: 8 pitches are a multiple of
//          16 bytes. A warp computes such rows, so it loads the aligned 16-byte chunks that contain
//          them straight into mma fragments, and shifts the short operand X by their common offset.
// Changes  against skinny_stream: no TMA, whose addresses and strides are multiples of 16 bytes,
//          and no shared memory for W; k is split over blocks if W has few rows. Against packed: W
//          is not copied first.
// Cost     W once; X once per tile of 128 or 256 rows, from L2; a partial sum written and read per
//          element of C and slice of k.
// Limits   memory bandwidth; with 32 columns or more, L2. f16 and bf16, W contiguous along k. Tiles
//          are filled up with rows of zeros.
// Source   PTX ISA, "Matrix fragments for mma.m16n8k16": the order of k within a fragment is free.
#include <cmath>

#include "rung/device/last_block.hpp"
#include "rung/device/load_anywhere.hpp"
#include "rung/device/ptx/matrix.hpp"
#include "rung/ops/gemm/cuda/detail/rung.hpp"
#include "rung/ops/gemm/cuda/shapes/dots.cuh"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr int line_threads = 256;
constexpr int line_warps = line_threads / warp_size;  // rows 8 apart belong to one warp
constexpr int line_chunk = 8;                         // elements in 16 bytes
constexpr int line_step = 32;                         // of k: a chunk of each of four lanes
constexpr std::int64_t most_line_columns = 64;
constexpr std::int64_t longest_side = std::int64_t{1} << 30;  // indices of k have 32 bits

constexpr std::int64_t most_partial_bytes = std::int64_t{32} << 20;

/// Tile of a block, with Columns columns of X.
template <int Columns>
struct LineShape {
  static constexpr int fragments = Columns <= 16 ? 1 : 2;  // of 16 rows, per warp
  static constexpr int lines = 2 * fragments;              // per lane
  static constexpr int rows = 16 * fragments * line_warps;
  static constexpr int slots = 8 / lines;                    // steps in flight: 8 loads per thread
  static constexpr int stage_steps = Columns <= 32 ? 8 : 4;  // steps for which X is staged
  static constexpr int stage_k = stage_steps * line_step;
  // A stage of X begins a chunk before the stage of W, since W's chunks begin before the rows.
  static constexpr int units = stage_k / line_chunk + 1;    // chunks of a column
  static constexpr int pitch = units * line_chunk / 2 + 1;  // words; odd: at most 2-way conflicts
  static constexpr int sums = fragments * Columns / 2;      // per thread
  static constexpr int resident = Columns <= 8 ? 3 : 2;     // blocks per SM
};

template <int Columns>
struct LineLayout {
  using Shape = LineShape<Columns>;
  // Two stages of X, each as it is and from the second element on: at any offset, one of the two
  // has its pairs in aligned words.
  std::uint32_t x[2][2][Columns][Shape::pitch];
  int scratch;
};

/// Kernel arguments of C = W X: W is finish.p.a, X finish.p.b.
template <class T>
struct LineCall {
  Finish<T> finish;
  std::int64_t tiles;  // per matrix
  int steps;           // of all of k
  int slice_steps;     // per slice of k
  int slices;
  int group, groups;  // slices that one block combines first; groups of slices
  float* partial;     // sums of the slices, then those of the groups
  unsigned* tickets;  // per tile: one of the tile, one per group
};

/// A chunk of W: the words of two k16 fragments.
struct LineWords {
  std::uint32_t word[4];
};

/// Loads the aligned chunk at `at`; elements outside [begin, end) are zero.
template <class T>
__device__ __forceinline__ LineWords load_line_words(const T* at, const T* begin, const T* end) {
  LineWords words{};
  if (at >= begin && at + line_chunk <= end) {
    const RawPack<T, line_chunk> raw = load_raw_constant<line_chunk>(at);
    __builtin_memcpy(&words, &raw, sizeof(words));
    return words;
  }
#pragma unroll
  for (int i = 0; i < line_chunk; ++i) {
    if (at + i >= begin && at + i < end) {
      words.word[i / 2] |= std::uint32_t{at[i].bits} << (i % 2 * 16);
    }
  }
  return words;
}

/// Clears the elements outside [first, end) of a chunk: they belong to other rows and may be NaN.
__device__ __forceinline__ void clear_outside(LineWords& words, int first, int end) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const bool low = 2 * i >= first && 2 * i < end;
    const bool high = 2 * i + 1 >= first && 2 * i + 1 < end;
    words.word[i] &= (low ? 0xffffU : 0U) | (high ? 0xffff0000U : 0U);
  }
}

/// Stages X from step k - line_chunk on for LineShape::stage_steps steps of W; elements outside X
/// are zero.
template <int Columns, class X>
__device__ __forceinline__ void stage_x(std::uint32_t (&to)[2][Columns][LineShape<Columns>::pitch],
                                        const X& x, int k) {
  using T = typename X::Element;
  using Shape = LineShape<Columns>;
  for (int at = static_cast<int>(threadIdx.x); at < Columns * Shape::units; at += line_threads) {
    const int column = at % 8 + at / (8 * Shape::units) * 8;
    const int unit = at / 8 % Shape::units;
    const std::int64_t first = k - line_chunk + unit * line_chunk;
    std::uint32_t words[2][4] = {};
    if (column < x.columns) {
      const T* const line = x.data + column * x.column_stride;
      if (x.k_stride == 1) {
#pragma unroll
        for (int later = 0; later < 2; ++later) {
          const auto raw = load_anywhere<line_chunk>(line, first + later, x.k);
          __builtin_memcpy(words[later], &raw, sizeof(raw));
        }
      } else {
        std::uint32_t bits[line_chunk + 1];
#pragma unroll
        for (int i = 0; i <= line_chunk; ++i) {
          const std::int64_t each = first + i;
          bits[i] = each >= 0 && each < x.k ? line[each * x.k_stride].bits : 0U;
        }
#pragma unroll
        for (int i = 0; i < line_chunk; ++i) {
          words[i % 2][i / 2] = bits[i] | bits[i + 1] << 16;
        }
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      to[0][column][unit * 4 + i] = words[0][i];
      to[1][column][unit * 4 + i] = words[1][i];
    }
  }
}

/// The short operand of one matrix.
template <class T>
struct ShortOperand {
  using Element = T;
  const T* data;
  std::int64_t column_stride, k_stride;
  std::int64_t columns, k;
};

/// Partial sums of a block: threads' packs of four are adjacent.
template <int Count>
__device__ __forceinline__ void store_partial(float* to, const float (&sums)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; i += 4) {
    store_wide(to + (i * line_threads + static_cast<int>(threadIdx.x) * 4),
               Pack<float, 4>{{sums[i], sums[i + 1], sums[i + 2], sums[i + 3]}});
  }
}
/// Adds `count` consecutive partial sums in order.
template <int Count>
__device__ __forceinline__ void add_partials(float (&sums)[Count], const float* from, int count) {
#pragma unroll
  for (int i = 0; i < Count; ++i) sums[i] = 0;
#pragma unroll(Count <= 16 ? 4 : 1)
  for (int part = 0; part < count; ++part, from += Count * line_threads) {
#pragma unroll
    for (int i = 0; i < Count; i += 4) {
      const Pack<float, 4> more =
          load_wide<4>(from + (i * line_threads + static_cast<int>(threadIdx.x) * 4));
#pragma unroll
      for (int j = 0; j < 4; ++j) sums[i + j] += more[j];
    }
  }
}

/// Computes a tile of C = W X over a slice of k; the last block of a tile combines the slices.
template <class T, int Columns>
__global__ void __launch_bounds__(line_threads, LineShape<Columns>::resident)
    gemm_skinny_unaligned(LineCall<T> call) {
  using Shape = LineShape<Columns>;
  constexpr int slots = Shape::slots;
  auto& layout = shared<LineLayout<Columns>>();
  const auto& p = call.finish.p;
  const int slice = static_cast<int>(blockIdx.x % call.slices);
  const std::int64_t tile = blockIdx.x / call.slices;  // of all matrices
  const int matrix = static_cast<int>(tile / call.tiles);
  const int lane = lane_of_thread();
  const int line = lane / 4;
  const int quarter = lane % 4;
  const int k = static_cast<int>(p.k());
  const ShortOperand<T> x{p.b.data + matrix * p.b.strides[0], p.b.strides[2], p.b.strides[1], p.n(),
                          p.k()};

  // A lane's rows are 64 apart, a warp's 8: all have the same `shift`, the elements between the
  // first chunk's begin and the row's.
  const std::int64_t first_row = tile % call.tiles * Shape::rows +
                                 static_cast<int>(threadIdx.x) / warp_size + line * line_warps;
  const T* const begin = p.a.data + matrix * p.a.strides[0];
  const T* const end = begin + (p.m() - 1) * p.a.strides[1] + k;
  const T* const row_begin = begin + first_row * p.a.strides[1];
  const int shift = static_cast<int>(reinterpret_cast<std::uintptr_t>(row_begin) % 16 / sizeof(T));
  const T* const from = row_begin - shift + quarter * line_chunk;
  const std::int64_t apart = 64 * p.a.strides[1];
  const int rows_left = static_cast<int>(clamped<std::int64_t>(p.m() - first_row, 0, Shape::rows));

  LineWords words[slots][Shape::lines];
  const auto load = [&](LineWords(&to)[Shape::lines], int step) {
    const bool exists = step * line_step + quarter * line_chunk - shift < k;
    const T* at = from + std::int64_t{step} * line_step;
#pragma unroll
    for (int i = 0; i < Shape::lines; ++i, at += apart) {
      to[i] = LineWords{};
      if (exists && 64 * i < rows_left) to[i] = load_line_words(at, begin, end);
    }
  };
  float sums[Shape::sums] = {};
  const auto multiply = [&](LineWords(&of)[Shape::lines], int step, int step_of_stage,
                            const auto& staged) {
    const int first_k = step * line_step - shift;
    if (first_k < 0 || first_k + line_step > k) {
      const int own_k = first_k + quarter * line_chunk;
#pragma unroll
      for (auto& each : of) clear_outside(each, -own_k, k - own_k);
    }
    const int odd = shift % 2;
    const int at =
        (step_of_stage * line_step + quarter * line_chunk + line_chunk - shift - odd) / 2;
#pragma unroll
    for (int j = 0; j < Columns / 8; ++j) {
      const std::uint32_t* const pair = &staged[odd][8 * j + line][at];
      const std::uint32_t b[4] = {pair[0], pair[1], pair[2], pair[3]};
#pragma unroll
      for (int i = 0; i < Shape::fragments; ++i) {
        const auto& upper = of[2 * i].word;
        const auto& lower = of[2 * i + 1].word;
        float* const sum = sums + (i * (Columns / 8) + j) * 4;
        ptx::mma<T>(sum, {upper[0], lower[0], upper[1], lower[1]}, {b[0], b[1]});
        ptx::mma<T>(sum, {upper[2], lower[2], upper[3], lower[3]}, {b[2], b[3]});
      }
    }
  };

  const int first = slice * call.slice_steps;
  const int last = smaller(first + call.slice_steps, call.steps);
#pragma unroll
  for (int slot = 0; slot < slots; ++slot) {
    if (first + slot < last) load(words[slot], first + slot);
  }
  stage_x<Columns>(layout.x[0], x, first * line_step);
  int buffer = 0;
  for (int stage = first; stage < last; stage += Shape::stage_steps, buffer ^= 1) {
    __syncthreads();  // the stage has been written, and all have read the other one
    if (stage + Shape::stage_steps < last) {
      stage_x<Columns>(layout.x[buffer ^ 1], x, (stage + Shape::stage_steps) * line_step);
    }
#pragma unroll 1
    for (int i = 0; i < Shape::stage_steps; i += slots) {
#pragma unroll
      for (int slot = 0; slot < slots; ++slot) {
        const int step = stage + i + slot;
        if (step >= last) break;
        multiply(words[slot], step, i + slot, layout.x[buffer]);
        if (step + slots < last) load(words[slot], step + slots);
      }
    }
  }

  if (call.slices > 1) {
    constexpr int size = Shape::sums * line_threads;
    const std::int64_t tiles = call.tiles * p.c.shape[0];
    float* const slices = call.partial + tile * call.slices * size;
    float* const groups = call.partial + (tiles * call.slices + tile * call.groups) * size;
    unsigned* const tickets = call.tickets + tile * (call.groups + 1);
    const int group = slice / call.group;
    const int members = smaller(call.group, call.slices - group * call.group);
    store_partial(slices + std::int64_t{slice} * size, sums);
    __syncthreads();
    if (!is_last_block(tickets + 1 + group, members, layout.scratch)) return;
    add_partials(sums, slices + std::int64_t{group} * call.group * size, members);
    if (call.groups > 1) {
      store_partial(groups + std::int64_t{group} * size, sums);
      __syncthreads();
      if (!is_last_block(tickets, call.groups, layout.scratch)) return;
      add_partials(sums, groups, call.groups);
    }
  }
  with_output_type<T>(p, call.finish.narrow, [&](const auto& target) {
  // Not unrolled: each copy of finish() contains every activation.
#pragma unroll 1
    for (int tile_of_sums = 0; tile_of_sums < Shape::sums / 4; ++tile_of_sums) {
      float picked[4] = {};
#pragma unroll
      for (int i = 0; i < Shape::sums; ++i) {
        picked[i % 4] = i / 4 == tile_of_sums ? sums[i] : picked[i % 4];
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int below = (tile_of_sums / (Columns / 8) * 2 + i / 2) * 64;
        const int column = tile_of_sums % (Columns / 8) * 8 + quarter * 2 + i % 2;
        if (below < rows_left && column < p.n()) {
          finish(target, matrix, first_row + below, column, picked[i]);
        }
      }
    }
  });
}

// --- on the host ---------------------------------------------------------------------------------

/// Calls f.template operator()<Columns>() with the number of columns to which X is padded.
template <class F>
auto with_line_columns(std::int64_t columns, F&& f) {
  if (columns <= 8) return f.template operator()<8>();
  if (columns <= 16) return f.template operator()<16>();
  if (columns <= 32) return f.template operator()<32>();
  return f.template operator()<64>();
}

/// Returns whether W is contiguous along k, with rows in the order of their addresses.
template <class P>
bool has_lines(const P& p) {
  return (p.a.strides[2] == 1 || p.k() == 1) && p.a.strides[1] >= 0;
}

/// Calls f with the product, transposed if needed so that C has no more columns than rows; if C has
/// few of both, W is the operand that is contiguous along k.
template <class F>
auto with_lines(const Gemm::Args& args, F&& f) {
  return visit<f16, bf16>(args.a.dtype, [&]<class T>() {
    Finish<T> finish = finish_of<T>(args);
    if (finish.p.m() <= finish.p.n()) finish.p = transpose(finish.p);
    if (finish.p.m() <= most_line_columns && !has_lines(finish.p)) {
      finish.p = transpose(finish.p);
    }
    return f(finish);
  });
}

/// Slices of k, and the groups in which they are combined.
struct LinePlan {
  int steps;
  int slice_steps, slices;
  int group, groups;
};

/// Returns the slices of least time, in steps of a block while every SM is full: waves of blocks,
/// then the exchange of partial sums.
template <int Columns, class P>
LinePlan plan_lines(const P& p, const Context& context) {
  using Shape = LineShape<Columns>;
  constexpr double start = 3;  // latency of the first loads, or of a ticket
  // A step of W has 64 bytes per row, a partial sum 4 per column of X.
  constexpr double exchange = Columns * 4.0 / 64;
  constexpr double full_rate = 4;  // of the few blocks that combine sums, against a full SM's
  const std::int64_t most_shift =
      p.a.strides[1] % line_chunk == 0 && (p.c.shape[0] <= 1 || p.a.strides[0] % line_chunk == 0)
          ? static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(p.a.data) % 16 / 2)
          : line_chunk - 1;
  const std::int64_t steps = tiles_of(p.k() + most_shift, line_step);
  const std::int64_t tiles = tiles_of(p.m(), Shape::rows) * p.c.shape[0];
  const double at_once = static_cast<double>(Shape::resident) * context.info().sms;
  LinePlan best{};
  double least = 0;
  for (std::int64_t wanted = 1; wanted <= larger<std::int64_t>(steps / 2, 1); ++wanted) {
    const std::int64_t slice_steps = tiles_of(steps, wanted);
    const std::int64_t slices = tiles_of(steps, slice_steps);
    if (slices != wanted) continue;
    std::int64_t group = slices;
    if (slices > 16) {
      group = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(slices))));
    }
    const std::int64_t groups = tiles_of(slices, group);
    const std::int64_t floats = tiles * (slices + groups) * Shape::sums * line_threads;
    if (slices > 1 && (tiles * (groups + 1) > sums_tickets || floats * 4 > most_partial_bytes ||
                       static_cast<double>(tiles * slices) > 4 * at_once)) {
      break;
    }
    double time = std::ceil(static_cast<double>(tiles * slices) / at_once) *
                  (static_cast<double>(slice_steps) + start);
    if (slices > 1) {
      const int levels = groups > 1 ? 2 : 1;
      time += exchange + levels * start +
              exchange / full_rate * static_cast<double>(group + (groups > 1 ? groups : 0));
    }
    if (least == 0 || time < least) {
      least = time;
      best = {.steps = static_cast<int>(steps),
              .slice_steps = static_cast<int>(slice_steps),
              .slices = static_cast<int>(slices),
              .group = static_cast<int>(group),
              .groups = static_cast<int>(groups)};
    }
  }
  return best;
}

Support supports(const Gemm::Args& args, const Context& context) {
  if (args.a.dtype != DType::f16 && args.a.dtype != DType::bf16) {
    return unsupported("only f16 and bf16 operands");
  }
  if (context.info().compute_capability < 80) {
    return unsupported("mma of bf16 needs compute capability 8.0");
  }
  if (smaller(args.m(), args.n()) > most_line_columns) {
    return unsupported("C has more than 64 rows and more than 64 columns");
  }
  if (args.k() == 0 || args.alpha == 0) return unsupported("there is nothing to multiply");
  if (args.m() > longest_side || args.n() > longest_side || args.k() > longest_side) {
    return unsupported("more than 2^30 rows, columns or steps of k");
  }
  const double tiles = static_cast<double>(tiles_of(larger(args.m(), args.n()), 128)) *
                       static_cast<double>(args.batch());
  if (tiles > 0x1p24) return unsupported("more than 2^24 tiles of C");
  return with_lines(args, [](const auto& finish) {
    return has_lines(finish.p) ? supported
                               : unsupported("the long operand must be contiguous along k");
  });
}

Work work(const Gemm::Args& args, const Context& context) {
  return with_lines(args, [&](const auto& finish) {
    return with_line_columns(finish.p.n(), [&]<int Columns>() -> Work {
      using Shape = LineShape<Columns>;
      const LinePlan plan = plan_lines<Columns>(finish.p, context);
      const std::int64_t tiles = tiles_of(finish.p.m(), Shape::rows) * args.batch();
      const double blocks = static_cast<double>(tiles * plan.slices);
      // Slices that one block combines, in one or two levels.
      const int combined = plan.slices == 1 ? 0 : plan.group + (plan.groups > 1 ? plan.groups : 0);
      const int partials = plan.slices == 1 ? 0 : plan.slices + (plan.groups > 1 ? plan.groups : 0);
      const double partial =
          2.0 * sizeof(float) * Shape::sums * line_threads * static_cast<double>(tiles * partials);
      return {.bytes = Gemm::cost(args).bytes + partial,
              .blocks = blocks,
              .resident = Shape::resident,
              .rounds = tiles_of(plan.slice_steps, Shape::slots) +
                        tiles_of(plan.slice_steps, Shape::stage_steps) + combined,
              .steps = unevenness(blocks, context) * plan.slice_steps * (Shape::rows + Columns)};
    });
  });
}

void run(const Gemm::Args& args, Context& context) {
  with_lines(args, [&]<class T>(const Finish<T>& finish) {
    with_line_columns(finish.p.n(), [&]<int Columns>() {
      using Shape = LineShape<Columns>;
      const LinePlan plan = plan_lines<Columns>(finish.p, context);
      const std::int64_t tiles = tiles_of(finish.p.m(), Shape::rows);
      LineCall<T> call{.finish = finish,
                       .tiles = tiles,
                       .steps = plan.steps,
                       .slice_steps = plan.slice_steps,
                       .slices = plan.slices,
                       .group = plan.group,
                       .groups = plan.groups,
                       .partial = nullptr,
                       .tickets = nullptr};
      const std::int64_t all = tiles * finish.p.c.shape[0];
      if (plan.slices > 1) {
        const std::int64_t floats = all * (plan.slices + plan.groups) * Shape::sums * line_threads;
        call.tickets = sums_tickets_of(context);
        call.partial = static_cast<float*>(
            context.workspace(static_cast<std::size_t>(floats) * sizeof(float)));
      }
      launch(context,
             {.grid = all * plan.slices,
              .block = line_threads,
              .shared_bytes = sizeof(LineLayout<Columns>)},
             gemm_skinny_unaligned<T, Columns>, call);
    });
  });
}

const Rung<Gemm> self{{.name = "skinny_unaligned",
                       .after = "skinny_stream",
                       .backend = device_backend,
                       .supports = supports,
                       .tile = {.rows = most_line_columns, .columns = 128},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
