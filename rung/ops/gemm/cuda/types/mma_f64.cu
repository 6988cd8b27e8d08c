// SPDX-License-Identifier: Apache-2.0
// gemm / mma f64
//
// Idea     tensor cores multiply doubles at twice the rate of the FMA units, with the rounding of
//          fused multiply-adds. cp.async fills a ring of tiles of 16 steps of k, 16 bytes at a time
//          if lines are aligned, else an element at a time: any strides, alignment and size.
// Changes  against any_strides, the fastest f64 rung before: 128 multiply-adds per cycle and SM
//          instead of 64, copies that overlap with products, split-K for a small C. A tile keeps
//          its operand's layout, k or the other axis contiguous. The assignment of rows to an
//          instruction's registers is free as long as operand and C agree: a lane holds two
//          adjacent rows of A, or columns of B, which one load fetches if they are contiguous; four
//          of its sums are then adjacent in C.
// Cost     A once per 64 or 32 columns of C, B once per 128 or 64 rows. A warp's 64 x 32 tile of C
//          reads 3 KiB of shared memory per four steps of k, in a quarter of the time of its 16
//          instructions. A 128 x 64 tile loads 24 bytes per cycle of its products from L2.
// Limits   the tensor cores' f64 throughput.
#include <cmath>

#include "rung/device/ptx/async_copy.hpp"
#include "rung/device/ptx/double_multiply.hpp"
#include "rung/device/tile/epilogue.hpp"
#include "rung/device/tile/raster.hpp"
#include "rung/ops/gemm/cuda/detail/rung.hpp"
#include "rung/ops/gemm/shared/cuda/slices.hpp"
#include "rung/ops/gemm/shared/cuda/tensor_cost.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr int steps = 16;        // steps of k per tile
constexpr int depth_of_mma = 4;  // steps of k per instruction
constexpr int stages = 4;        // tiles in shared memory: one in use, the others in flight

struct F64Shape {
  int rows, columns;
  int warp_rows, warp_columns;
  int blocks;    // per SM
  double share;  // of the tensor cores' rate, if all SMs are busy
  [[nodiscard]] constexpr int warps_along() const { return columns / warp_columns; }
  [[nodiscard]] constexpr int threads() const { return 32 * (rows / warp_rows) * warps_along(); }
};
// Shared memory per block: 96, 64, 48 or 96 KiB. The last shape is for one tile per SM: eight warps
// where the first has four, which would leave a scheduler with one warp.
constexpr F64Shape f64_shapes[] = {{128, 64, 64, 32, 2, 0.85},
                                   {64, 64, 32, 32, 3, 0.75},
                                   {64, 32, 32, 16, 4, 0.6},
                                   {128, 64, 32, 32, 1, 0.85}};

/// Tile of an operand: lines of 16 steps of k, or of `Outer` elements along the axis shared with C.
/// Groups of four are swizzled such that the lanes of a shared-memory phase hit all banks: with
/// lines along k, 16 lanes read four k of each of four lines; else eight lanes read two pairs at
/// each of four k.
template <int Outer, bool KMajor>
struct F64Tile {
  static constexpr int line = KMajor ? steps : Outer;
  static constexpr int lines = KMajor ? Outer : steps;
  static __device__ constexpr int place(int outer, int k) {
    return KMajor ? outer * steps + (k ^ outer / 2 % 4 * 4) : k * Outer + (outer ^ k % 4 * 4);
  }
};

template <int Shape>
struct F64Stages {
  alignas(16) double a[stages][f64_shapes[Shape].rows * steps];
  alignas(16) double b[stages][f64_shapes[Shape].columns * steps];
};

/// Copier of an operand's tiles along k, in order, Size elements of a line at a time. KMajor: k has
/// the smaller stride.
template <int Outer, bool KMajor, int Size, int Threads>
class F64Copy {
  using Tile = F64Tile<Outer, KMajor>;
  static constexpr int per_line = Tile::line / Size;
  static constexpr int lines_apart = Threads / per_line;
  static constexpr int count = Tile::lines / lines_apart;
  static_assert(lines_apart * per_line == Threads && count * lines_apart == Tile::lines);
  static_assert(!KMajor || lines_apart % 8 == 0, "all of a thread's lines are exchanged alike");

  const double* from_;  // next source address of this thread
  std::int64_t apart_;
  std::int64_t tile_apart_;  // from the last element of a tile to the first of the next
  int outer_left_;           // elements along outer from from_ on, within the tile

  static __device__ int line() { return static_cast<int>(threadIdx.x) / per_line; }
  static __device__ int along() { return static_cast<int>(threadIdx.x) % per_line * Size; }
  /// Returns the position of this thread's i-th copy.
  static __device__ __forceinline__ int place(int i) {
    const int first = KMajor ? Tile::place(line(), along()) : Tile::place(along(), line());
    const int exchanged = KMajor ? 0 : i * lines_apart % 4 * 4;
    return (first ^ exchanged) + i * lines_apart * Tile::line;
  }

 public:
  __device__ F64Copy(const double* data, std::int64_t outer_stride, std::int64_t outer_extent,
                     std::int64_t k_stride, std::int64_t first_outer, std::int64_t from_k) {
    const std::int64_t line_stride = KMajor ? outer_stride : k_stride;
    const std::int64_t along_stride = KMajor ? k_stride : outer_stride;
    from_ = data + first_outer * outer_stride + from_k * k_stride + line() * line_stride +
            along() * along_stride;
    apart_ = lines_apart * line_stride;
    tile_apart_ = steps * k_stride - (count - 1) * apart_;
    outer_left_ = static_cast<int>(smaller<std::int64_t>(outer_extent - first_outer, Outer)) -
                  (KMajor ? line() : along());
  }

  /// Starts copying one of `parts` parts of the next tile, of which k_left steps exist; the rest is
  /// zero-filled. `somewhere`: any valid address in global memory.
  __device__ __forceinline__ void copy_part(int part, int parts, double* tile, int k_left,
                                            const double* somewhere) {
    const int left = KMajor ? k_left - along() : outer_left_;
    const int lines_left = KMajor ? outer_left_ : k_left - line();
#pragma unroll
    for (int i = part * count / parts; i < (part + 1) * count / parts; ++i) {
      const bool exists = i * lines_apart < lines_left && left > 0;
      ptx::async_copy<8 * Size>(tile + place(i), exists ? from_ : somewhere,
                                exists ? 8 * smaller(left, Size) : 0);
      from_ += i == count - 1 ? tile_apart_ : apart_;
    }
  }
};

struct F64Call {
  Product<double, double> p;
  Raster raster;
  std::int64_t slice_depth;  // of k, a multiple of `steps`
};

/// Loads this lane's fragments of 16 rows of A (or columns of B) from first_outer on, for one
/// instruction, which covers k in [first_k, first_k + 4): rows 2 (lane / 4) and 2 (lane / 4) + 1 at
/// k = first_k + lane % 4. For A, the two become rows lane / 4 and lane / 4 + 8 of one instruction;
/// for B, they go to two instructions.
template <int Outer, bool KMajor>
__device__ __forceinline__ void load_f64(double (&to)[2], const double* tile, int first_outer,
                                         int first_k) {
  using Tile = F64Tile<Outer, KMajor>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int outer = lane / 4 * 2;
  const int k = lane % 4;
  if constexpr (KMajor) {
    const double* const from = tile + first_outer * steps + Tile::place(outer, first_k + k);
    to[0] = from[0];
    to[1] = from[steps];
  } else {
    const Pack<double, 2> pair =
        load_wide<2>(tile + first_outer + first_k * Outer + Tile::place(outer, k));
    to[0] = pair[0];
    to[1] = pair[1];
  }
}

/// Computes C or partial sums. Size: 2 if all lines are contiguous and begin at multiples of 16
/// bytes, else 1.
template <int Shape, bool KMajorA, bool KMajorB, int Size>
__global__ void __launch_bounds__(f64_shapes[Shape].threads(), f64_shapes[Shape].blocks)
    gemm_mma_f64(F64Call call) {
  constexpr F64Shape shape = f64_shapes[Shape];
  auto& memory = shared<F64Stages<Shape>>();
  const auto& p = call.p;
  const TileWork work = call.raster.at(static_cast<int>(blockIdx.x));
  const std::int64_t first_row = std::int64_t{work.row} * shape.rows;
  const std::int64_t first_column = std::int64_t{work.column} * shape.columns;
  const std::int64_t first_k = work.slice * call.slice_depth;
  const std::int64_t depth = smaller(p.k() - first_k, call.slice_depth);
  const auto a = p.a.at(work.batch);
  const auto b = p.b.at(work.batch);
  F64Copy<shape.rows, KMajorA, Size, shape.threads()> copy_a(a.data, a.strides[0], p.m(),
                                                             a.strides[1], first_row, first_k);
  F64Copy<shape.columns, KMajorB, Size, shape.threads()> copy_b(
      b.data, b.strides[1], p.n(), b.strides[0], first_column, first_k);
  const int tiles = depth > 0 ? static_cast<int>((depth + steps - 1) / steps) : 0;
  const auto last_steps = static_cast<int>(depth - std::int64_t{steps} * (tiles - 1));
  const auto copy = [&](int tile, int part, int parts, int stage) {
    const int left = tile == tiles - 1 ? last_steps : steps;
    copy_a.copy_part(part, parts, memory.a[stage], left, p.a.data);
    copy_b.copy_part(part, parts, memory.b[stage], left, p.a.data);
  };

  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_row = warp / shape.warps_along() * shape.warp_rows;
  const int warp_column = warp % shape.warps_along() * shape.warp_columns;
  constexpr int down = shape.warp_rows / 16;
  constexpr int along = shape.warp_columns / 16;
  double sums[down][2 * along][4] = {};
  constexpr int parts = steps / depth_of_mma;
  static_assert(parts % 2 == 0, "a tile begins in the first of two buffers");
  double a_values[2][down][2];  // of the current part of a tile, and of the next, in flight
  double b_values[2][along][2];
  const auto load = [&](int part, int stage) {
#pragma unroll
    for (int i = 0; i < down; ++i) {
      load_f64<shape.rows, KMajorA>(a_values[part % 2][i], memory.a[stage], warp_row + 16 * i,
                                    part * depth_of_mma);
    }
#pragma unroll
    for (int j = 0; j < along; ++j) {
      load_f64<shape.columns, KMajorB>(b_values[part % 2][j], memory.b[stage], warp_column + 16 * j,
                                       part * depth_of_mma);
    }
  };

#pragma unroll
  for (int stage = 0; stage < stages - 1; ++stage) {
    if (stage < tiles) copy(stage, 0, 1, stage);
    ptx::async_commit();
  }
  ptx::async_wait<stages - 2>();
  __syncthreads();
  if (tiles > 0) load(0, 0);
  for (int tile = 0; tile < tiles; ++tile) {
    const int ahead = tile + stages - 1;
    // After the last tile, that tile is read again and not used.
    const int next_stage = smaller(tile + 1, tiles - 1) % stages;
#pragma unroll
    for (int part = 0; part < parts; ++part) {
      if (part < parts - 1) {
        load(part + 1, tile % stages);
        // A part of the tile that is in flight.
        if (ahead < tiles) copy(ahead, part, parts - 1, ahead % stages);
      } else {
        ptx::async_commit();
        // The next tile has arrived for all threads, and all have finished reading the current one,
        // whose buffer can be refilled.
        ptx::async_wait<stages - 2>();
        __syncthreads();
        load(0, next_stage);
      }
#pragma unroll
      for (int i = 0; i < down; ++i) {
#pragma unroll
        for (int j = 0; j < 2 * along; ++j) {
          ptx::mma_m16n8k4_f64(sums[i][j], a_values[part % 2][i], b_values[part % 2][j / 2][j % 2]);
        }
      }
    }
  }

  // A row's sums in the order of C's columns, four per 16 columns.
  double rows_of_sums[2 * down][4 * along];
#pragma unroll
  for (int i = 0; i < 2 * down; ++i) {
#pragma unroll
    for (int j = 0; j < 4 * along; ++j) {
      rows_of_sums[i][j] = sums[i / 2][j / 4 * 2 + j % 2][i % 2 * 2 + j % 4 / 2];
    }
  }
  finish_tile<2>(
      p, work.slice * call.raster.batch + work.batch, rows_of_sums,
      [&](int i) { return first_row + warp_row + i / 2 * 16 + lane / 4 * 2 + i % 2; },
      [&](int j) { return first_column + warp_column + j / 4 * 16 + lane % 4 * 4 + j % 4; });
}

struct F64Plan {
  int shape = 0;
  std::int64_t slices = 1;
  double seconds = 0;
};
double elements_of_c(const Gemm::Args& args) {
  return static_cast<double>(args.m()) * static_cast<double>(args.n()) *
         static_cast<double>(args.batch());
}

/// Returns the seconds: launch + max(memory, products of the SM with the most blocks + start) [+
/// slices].
double f64_seconds(const Gemm::Args& args, const Context& context, const F64Shape& shape,
                   std::int64_t slices) {
  constexpr double start = 2.5e-6;         // the first tile's latency, and the epilogue
  constexpr double start_steps = 80;       // the same, per block, in steps of k
  constexpr double alone = 0.75;           // factor of the share with one warp per scheduler
  constexpr double two_warps_each = 256;   // threads per SM: two warps for each of four schedulers
  constexpr double memory_share = 0.85;    // of the nominal bandwidth
  constexpr double slice_launch = 2.5e-6;  // the second kernel, launched behind the first
  const NominalRates rates = nominal_rates(context);
  const double sms = context.info().sms;
  const double chip = context.info().compute_capability >= 90 ? 1 : 0.5;
  const double blocks = static_cast<double>(tiles_of(args.m(), shape.rows)) *
                        static_cast<double>(tiles_of(args.n(), shape.columns)) *
                        static_cast<double>(args.batch() * slices);
  const double each = std::ceil(blocks / sms);
  const double share = shape.share * (each * shape.threads() < two_warps_each ? alone : 1.0);
  const double k = args.alpha == 0 ? 0.0 : std::ceil(static_cast<double>(args.k()) / slices);
  const double multiply = each * 2 * shape.rows * shape.columns * (k + start_steps) /
                          (rates.operations_per_second / sms * chip * share);
  const double memory = Gemm::cost(args).bytes / rates.bytes_per_second / memory_share;
  const double seconds = launch_seconds + std::max(memory, multiply + start);
  if (slices == 1) return seconds;
  const double sums = elements_of_c(args) * static_cast<double>(slices);
  return seconds + slice_launch + 16 * sums / rates.bytes_per_second;
}

F64Plan plan_f64(const Gemm::Args& args, const Context& context) {
  constexpr std::int64_t shortest_slice = 64;
  constexpr int shapes = sizeof(f64_shapes) / sizeof(f64_shapes[0]);
  const double bytes = elements_of_c(args) * 8;
  F64Plan best;
  for (int shape = 0; shape < shapes; ++shape) {
    for (const std::int64_t slices : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128}) {
      const bool fits = bytes * static_cast<double>(slices) <= double{slice_workspace};
      if (slices > 1 && (args.alpha == 0 || args.k() < shortest_slice * slices || !fits)) break;
      const double seconds = f64_seconds(args, context, f64_shapes[shape], slices);
      if (best.seconds == 0 || seconds < best.seconds) best = {shape, slices, seconds};
    }
  }
  return best;
}

Support supports(const Gemm::Args& args, const Context& context) {
  if (args.a.dtype != DType::f64) return unsupported("only f64 operands");
  if (context.info().compute_capability < 80) {
    return unsupported("mma.sync of f64 needs compute capability 8.0");
  }
  if (args.k() > std::int64_t{1} << 34) return unsupported("more than 2^34 steps of k");
  const double tiles =
      static_cast<double>(tiles_of(args.m(), 64)) * static_cast<double>(tiles_of(args.n(), 32));
  return tiles <= 0x1p31 / 128 ? supported : unsupported("more than 2^24 tiles of C");
}

Work work(const Gemm::Args& args, const Context& context) {
  const F64Plan plan = plan_f64(args, context);
  const F64Shape& shape = f64_shapes[plan.shape];
  const std::int64_t k = larger<std::int64_t>(args.k(), 1);
  return tile_work(args, context,
                   {.rows = shape.rows,
                    .columns = shape.columns,
                    .depth = steps,
                    .resident = shape.blocks,
                    .slices = tiles_of(k, tiles_of(tiles_of(k, plan.slices), steps) * steps)});
}

/// Returns the axis along which lines run: the one with the smaller stride.
bool is_k_major(const View<const double, 3>& operand, int outer, int depth) {
  return std::abs(operand.strides[depth]) <= std::abs(operand.strides[outer]);
}
bool has_wide_lines(const View<const double, 3>& operand, int outer, int depth) {
  const bool k_major = is_k_major(operand, outer, depth);
  const int along = k_major ? depth : outer;
  const int line = k_major ? outer : depth;
  return (operand.strides[along] == 1 || operand.shape[along] <= 1) &&
         (operand.strides[line] % 2 == 0 || operand.shape[line] <= 1) &&
         (operand.strides[0] % 2 == 0 || operand.shape[0] <= 1) &&
         reinterpret_cast<std::uintptr_t>(operand.data) % 16 == 0;
}

template <int Shape, int Size>
void multiply(Context& context, const F64Call& call) {
  const LaunchShape launch_shape{.grid = call.raster.total(),
                                 .block = f64_shapes[Shape].threads(),
                                 .shared_bytes = sizeof(F64Stages<Shape>)};
  const bool k_major_b = is_k_major(call.p.b, 2, 1);
  if (is_k_major(call.p.a, 1, 2)) {
    k_major_b ? launch(context, launch_shape, gemm_mma_f64<Shape, true, true, Size>, call)
              : launch(context, launch_shape, gemm_mma_f64<Shape, true, false, Size>, call);
  } else {
    k_major_b ? launch(context, launch_shape, gemm_mma_f64<Shape, false, true, Size>, call)
              : launch(context, launch_shape, gemm_mma_f64<Shape, false, false, Size>, call);
  }
}

template <int Shape>
void multiply(Context& context, const F64Call& call) {
  has_wide_lines(call.p.a, 1, 2) && has_wide_lines(call.p.b, 2, 1)
      ? multiply<Shape, 2>(context, call)
      : multiply<Shape, 1>(context, call);
}

void run(const Gemm::Args& args, Context& context) {
  const F64Plan plan = plan_f64(args, context);
  const F64Shape& shape = f64_shapes[plan.shape];
  Finish<double> finish = finish_of<double>(args);
  finish.p = with_contiguous_c(finish.p);
  const auto& p = finish.p;
  const std::int64_t slice_depth =
      larger<std::int64_t>(tiles_of(tiles_of(p.k(), steps), plan.slices), 1) * steps;
  const std::int64_t slices = larger<std::int64_t>(tiles_of(p.k(), slice_depth), 1);
  const std::int64_t down = tiles_of(p.m(), shape.rows);
  const std::int64_t along = tiles_of(p.n(), shape.columns);
  // A grid has fewer than 2^31 blocks: larger batches take several launches.
  const std::int64_t at_once =
      larger<std::int64_t>(0x7fffffff / larger<std::int64_t>(down * along * slices, 1), 1);
  for (std::int64_t first = 0; first < p.c.shape[0]; first += at_once) {
    const Finish<double> part = batches(finish, first, smaller(at_once, p.c.shape[0] - first));
    double* partial = nullptr;
    if (slices > 1) {
      partial = static_cast<double*>(context.workspace(partial_bytes(part, slices)));
    }
    const F64Call call{
        .p = slices > 1 ? into_partial_sums(part, partial).p : part.p,
        .raster = {.down = static_cast<int>(down),
                   .along = static_cast<int>(along),
                   .batch = static_cast<int>(part.p.c.shape[0]),
                   .slices = static_cast<int>(slices),
                   .band = raster_band(std::int64_t{shape.blocks} * context.info().sms, shape.rows,
                                       shape.columns)},
        .slice_depth = slice_depth};
    if (plan.shape == 0) multiply<0>(context, call);
    if (plan.shape == 1) multiply<1>(context, call);
    if (plan.shape == 2) multiply<2>(context, call);
    if (plan.shape == 3) multiply<3>(context, call);
    if (slices > 1) add_slices(context, part, partial, static_cast<int>(slices));
  }
}

const Rung<Gemm> self{{.name = "mma_f64",
                       .after = "any_strides",
                       .backend = device_backend,
                       .supports = supports,
                       .tile = {.rows = f64_shapes[0].rows, .columns = f64_shapes[0].columns},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
