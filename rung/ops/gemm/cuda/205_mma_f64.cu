// SPDX-License-Identifier: Apache-2.0
// gemm / mma f64
//
// Idea     tensor cores multiply doubles, too: twice the rate of the other units, and exactly as
//          fused multiply-adds round. Tiles come by cp.async an element at a time, which takes any
//          strides, alignment and size: a double is 8 bytes and its multiplication slow, so that
//          copies and loads from shared memory are few beside it.
// Changes  against register_tile_2d, the fastest of f64 before: 128 multiply-adds per cycle and SM
//          instead of 64, copies in flight while tiles are multiplied, small C in slices of k.
// Cost     A and B once for 128 (or 64) columns or rows of C. A warp's 64 x 32 of C reads 6 KiB of
//          shared memory for each 8 steps of k, a third of what it may in the time of its
//          multiplications.
// Limits   the tensor cores.
// Tried    -
// Source   PTX ISA, "Matrix fragments for mma.m16n8k4, m16n8k8 and m16n8k16 with .f64".
#include <cmath>

#include "rung/device/ptx_async_copy.hpp"
#include "rung/device/ptx_double_multiply.hpp"
#include "rung/ops/gemm/cuda/detail/epilogue.hpp"
#include "rung/ops/gemm/cuda/detail/raster.hpp"
#include "rung/ops/gemm/cuda/detail/rung.hpp"
#include "rung/ops/gemm/cuda/detail/slices.hpp"
#include "rung/ops/gemm/cuda/detail/tensor_cost.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr int steps = 16;  // of k in a tile
constexpr int stages = 4;  // tiles in shared memory: one in use, the others in flight

struct F64Shape {
  int rows, columns;
  int warp_rows, warp_columns;
  int blocks;    // per SM
  double share;  // of the tensor cores' rate, where all SMs have work
  [[nodiscard]] constexpr int warps_along() const { return columns / warp_columns; }
  [[nodiscard]] constexpr int threads() const { return 32 * (rows / warp_rows) * warps_along(); }
};
// 128 KiB of shared memory per block, or 64.
constexpr F64Shape f64_shapes[] = {{128, 128, 64, 32, 1, 0.88}, {64, 64, 32, 32, 2, 0.8}};

/// Place of an element of an operand's tile, [outer][k]. The k of a row are exchanged such that
/// half a warp, which shared memory serves at a time, meets 16 different pairs of banks: when it
/// reads 4 rows of 4 k, and when it writes 16 k of a row, or 16 rows of a k.
__device__ constexpr int f64_place(int outer, int k) {
  return outer * steps + (k ^ (outer % 4 * 4 + outer / 4 % 4));
}

template <int Shape>
struct F64Stages {
  alignas(16) double a[stages][f64_shapes[Shape].rows * steps];
  alignas(16) double b[stages][f64_shapes[Shape].columns * steps];
};

/// Copies the tiles of an operand along k, one after another and an element per call, so that the
/// copies stand between multiplications. KMajor: k is contiguous, or nearer to being so than the
/// other axis. `Outer` rows or columns of C.
template <int Outer, bool KMajor, int Threads>
class F64Copy {
  static_assert(KMajor ? Threads % (8 * steps) == 0 : Threads / Outer == 2);
  static constexpr int outer_apart = KMajor ? Threads / steps : 0;  // from one of its to the next
  static constexpr int k_apart = KMajor ? 0 : Threads / Outer;

  const double* from_;  // this thread's next element
  std::int64_t apart_;
  std::int64_t tile_apart_;  // from the last of a tile to the first of the next
  int place_;                // of its first
  unsigned exists_;          // a bit for each of its elements of a tile

  static __device__ int outer() {
    return static_cast<int>(threadIdx.x) / (KMajor ? steps : 1) % Outer;
  }
  static __device__ int first_k() {
    return KMajor ? static_cast<int>(threadIdx.x) % steps : static_cast<int>(threadIdx.x) / Outer;
  }
  __device__ __forceinline__ int place(int i) const {
    // As f64_place(), of which this is what changes with i.
    return KMajor ? (place_ ^ (i * outer_apart / 4 % 4)) + i * outer_apart * steps
                  : place_ ^ (i * k_apart);
  }

 public:
  static constexpr int count = Outer * steps / Threads;  // elements of a tile

  __device__ F64Copy(const double* data, std::int64_t outer_stride, std::int64_t outer_extent,
                     std::int64_t k_stride, std::int64_t first_outer, std::int64_t from_k) {
    place_ = f64_place(outer(), first_k());
    apart_ = outer_apart * outer_stride + k_apart * k_stride;
    tile_apart_ = steps * k_stride - (count - 1) * apart_;
    from_ = data + (first_outer + outer()) * outer_stride + (from_k + first_k()) * k_stride;
    exists_ = 0;
    const auto left = static_cast<int>(smaller<std::int64_t>(outer_extent - first_outer, Outer));
#pragma unroll
    for (int i = 0; i < count; ++i) exists_ |= outer() + i * outer_apart < left ? 1U << i : 0U;
  }

  /// Starts copying element i of the next whole tile; all i, in order. What does not exist becomes
  /// zero. `somewhere`: any address in global memory.
  __device__ __forceinline__ void copy(int i, double* tile, const double* somewhere) {
    const bool exists = (exists_ >> i & 1) != 0;
    ptx::async_copy<8>(tile + place(i), exists ? from_ : somewhere, exists ? 8 : 0);
    from_ += i == count - 1 ? tile_apart_ : apart_;
  }

  /// The first tile, of which only so many steps exist. It comes first, so that all others are
  /// whole.
  __device__ __forceinline__ void copy_first(int left, double* tile, const double* somewhere,
                                             std::int64_t k_stride) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const bool exists = (exists_ >> i & 1) != 0 && first_k() + i * k_apart < left;
      ptx::async_copy<8>(tile + place(i), exists ? from_ : somewhere, exists ? 8 : 0);
      from_ += i == count - 1 ? tile_apart_ : apart_;
    }
    from_ -= (steps - left) * k_stride;
  }
};

struct F64Call {
  Product<double, double> p;
  Raster raster;
  std::int64_t slice_depth;  // of k, a multiple of `steps`
};

template <int Shape, bool KMajorA, bool KMajorB>
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
  using CopyA = F64Copy<shape.rows, KMajorA, shape.threads()>;
  using CopyB = F64Copy<shape.columns, KMajorB, shape.threads()>;
  CopyA copy_a(a.data, a.strides[0], p.m(), a.strides[1], first_row, first_k);
  CopyB copy_b(b.data, b.strides[1], p.n(), b.strides[0], first_column, first_k);
  const int tiles = depth > 0 ? static_cast<int>((depth + steps - 1) / steps) : 0;

  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_row = warp / shape.warps_along() * shape.warp_rows;
  const int warp_column = warp % shape.warps_along() * shape.warp_columns;
  constexpr int down = shape.warp_rows / 16;
  constexpr int along = shape.warp_columns / 8;
  constexpr int depth_of_mma = 8;
  constexpr int parts = steps / depth_of_mma;
  double sums[down][along][4] = {};
  // A fragment of the next part of a tile is read as soon as this part's is used up. Where a lane's
  // elements are within a tile's 16 rows: those of other k and rows differ in the last four bits.
  const int place = f64_place(lane / 4, lane % 4);
  double a_values[down][4];
  double b_values[along][2];
  const auto load_a = [&](int i, int stage, int part) {
    const double* const from = memory.a[stage] + (warp_row + 16 * i) * steps;
#pragma unroll
    for (int at = 0; at < 4; ++at) {
      const int k = part * depth_of_mma + at / 2 * 4;
      a_values[i][at] = from[at % 2 * 8 * steps + (place ^ f64_place(at % 2 * 8, k) % steps)];
    }
  };
  const auto load_b = [&](int j, int stage, int part) {
    const double* const from = memory.b[stage] + (warp_column + 8 * j) * steps;
#pragma unroll
    for (int at = 0; at < 2; ++at) {
      const int k = part * depth_of_mma + at * 4;
      b_values[j][at] = from[place ^ f64_place(j % 2 * 8, k) % steps];
    }
  };

  if (tiles > 0) {
    const auto first_steps = static_cast<int>(depth - std::int64_t{steps} * (tiles - 1));
    copy_a.copy_first(first_steps, memory.a[0], p.a.data, a.strides[1]);
    copy_b.copy_first(first_steps, memory.b[0], p.a.data, b.strides[0]);
  }
  ptx::async_commit();
#pragma unroll
  for (int stage = 1; stage < stages - 1; ++stage) {
    if (stage < tiles) {
#pragma unroll
      for (int i = 0; i < CopyA::count; ++i) copy_a.copy(i, memory.a[stage], p.a.data);
#pragma unroll
      for (int i = 0; i < CopyB::count; ++i) copy_b.copy(i, memory.b[stage], p.a.data);
    }
    ptx::async_commit();
  }
  int reading = 0;
  int writing = stages - 1;
  ptx::async_wait<stages - 2>();
  __syncthreads();
  if (tiles > 0) {
#pragma unroll
    for (int i = 0; i < down; ++i) load_a(i, reading, 0);
#pragma unroll
    for (int j = 0; j < along; ++j) load_b(j, reading, 0);
  }
  for (int tile = 0; tile < tiles; ++tile) {
#pragma unroll
    for (int part = 0; part < parts; ++part) {
      if (part == parts - 1) {
        // The next tile has arrived for everybody; and everybody has read this one to its end, so
        // that its place may be filled again.
        ptx::async_wait<stages - 2>();
        __syncthreads();
        // After the last tile nothing new is read, only this tile once more, to no effect.
        const int next = reading == stages - 1 ? 0 : reading + 1;
        reading = tile + 1 < tiles ? next : reading;
      }
#pragma unroll
      for (int i = 0; i < down; ++i) {
#pragma unroll
        for (int j = 0; j < along; ++j) {
          ptx::mma_m16n8k8_f64(sums[i][j], a_values[i], b_values[j]);
          if (i == down - 1) load_b(j, reading, (part + 1) % parts);
        }
        load_a(i, reading, (part + 1) % parts);
        if (part < parts - 1 && tile + stages - 1 < tiles) {
          // A share of the tile that is copied meanwhile.
          constexpr int rounds = (parts - 1) * down;
          const int round = part * down + i;
#pragma unroll
          for (int at = round * CopyA::count / rounds; at < (round + 1) * CopyA::count / rounds;
               ++at) {
            copy_a.copy(at, memory.a[writing], p.a.data);
          }
#pragma unroll
          for (int at = round * CopyB::count / rounds; at < (round + 1) * CopyB::count / rounds;
               ++at) {
            copy_b.copy(at, memory.b[writing], p.a.data);
          }
        }
      }
      if (part == parts - 2) {
        ptx::async_commit();
        writing = writing == stages - 1 ? 0 : writing + 1;
      }
    }
  }

  double rows_of_sums[2 * down][2 * along];
#pragma unroll
  for (int i = 0; i < 2 * down; ++i) {
#pragma unroll
    for (int j = 0; j < 2 * along; ++j) {
      rows_of_sums[i][j] = sums[i / 2][j / 2][i % 2 * 2 + j % 2];
    }
  }
  finish_tile<2>(
      p, work.slice * call.raster.batch + work.batch, rows_of_sums,
      [&](int i) { return first_row + warp_row + 8 * i + lane / 4; },
      [&](int j) { return first_column + warp_column + j / 2 * 8 + lane % 4 * 2 + j % 2; });
}

struct F64Plan {
  int shape = 0;
  std::int64_t slices = 1;
  double seconds = 0;
};

/// launch + max(memory, multiplications of the SM with the most blocks + start) [+ slices]
double f64_seconds(const Gemm::Args& args, const Context& context, const F64Shape& shape,
                   std::int64_t slices) {
  constexpr double start = 2.5e-6;         // the first tile's latency, and the epilogue
  constexpr double start_steps = 80;       // of k, likewise, for each block
  constexpr double alone = 0.75;           // of the share, with one small block per SM
  constexpr double memory_share = 0.85;    // of the nominal rate
  constexpr double slice_launch = 2.5e-6;  // the second kernel, behind the first
  const NominalRates rates = nominal_rates(context);
  const double sms = context.info().sms;
  const double chip = context.info().compute_capability >= 90 ? 1 : 0.5;
  const double blocks = std::ceil(static_cast<double>(args.m()) / shape.rows) *
                        std::ceil(static_cast<double>(args.n()) / shape.columns) *
                        static_cast<double>(args.batch() * slices);
  const double each = std::ceil(blocks / sms);
  const double share = shape.share * (each < shape.blocks ? alone : 1.0);
  const double k = args.alpha == 0 ? 0.0 : std::ceil(static_cast<double>(args.k()) / slices);
  const double multiply = each * 2 * shape.rows * shape.columns * (k + start_steps) /
                          (rates.operations_per_second / sms * chip * share);
  const double memory = Gemm::cost(args).bytes / rates.bytes_per_second / memory_share;
  double seconds = launch_seconds + std::max(memory, multiply + start);
  if (slices > 1) {
    const double sums = static_cast<double>(args.m()) * static_cast<double>(args.n()) *
                        static_cast<double>(args.batch());
    seconds += slice_launch + 16 * static_cast<double>(slices) * sums / rates.bytes_per_second;
  }
  return seconds;
}

F64Plan plan_f64(const Gemm::Args& args, const Context& context) {
  constexpr std::int64_t shortest_slice = 64;
  const double elements = static_cast<double>(args.m()) * static_cast<double>(args.n()) *
                          static_cast<double>(args.batch());
  F64Plan best;
  for (int shape = 0; shape < 2; ++shape) {
    for (const std::int64_t slices : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128}) {
      if (slices > 1 &&
          (args.alpha == 0 || args.k() < shortest_slice * slices ||
           elements * 8 * static_cast<double>(slices) > static_cast<double>(slice_workspace))) {
        break;
      }
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
  const double tiles =
      std::ceil(static_cast<double>(args.m()) / 64) * std::ceil(static_cast<double>(args.n()) / 64);
  return tiles <= 0x1p31 / 128 ? supported : unsupported("more than 2^24 tiles of C");
}

double estimate(const Gemm::Args& args, const Context& context) {
  return plan_f64(args, context).seconds;
}

template <int Shape>
void multiply(Context& context, const F64Call& call) {
  const LaunchShape launch_shape{.grid = call.raster.total(),
                                 .block = f64_shapes[Shape].threads(),
                                 .shared_bytes = sizeof(F64Stages<Shape>)};
  const auto& p = call.p;
  const bool k_major_a = std::abs(p.a.strides[2]) <= std::abs(p.a.strides[1]);
  const bool k_major_b = std::abs(p.b.strides[1]) <= std::abs(p.b.strides[2]);
  if (k_major_a) {
    k_major_b ? launch(context, launch_shape, gemm_mma_f64<Shape, true, true>, call)
              : launch(context, launch_shape, gemm_mma_f64<Shape, true, false>, call);
  } else {
    k_major_b ? launch(context, launch_shape, gemm_mma_f64<Shape, false, true>, call)
              : launch(context, launch_shape, gemm_mma_f64<Shape, false, false>, call);
  }
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
  // A grid has fewer than 2^31 blocks: batches beyond that in several launches.
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
    plan.shape == 0 ? multiply<0>(context, call) : multiply<1>(context, call);
    if (slices > 1) add_slices(context, part, partial, static_cast<int>(slices));
  }
}

const Rung<Gemm> self{{.name = "mma_f64",
                       .step = 205,
                       .after = "register_tile_2d",
                       .backend = device_backend,
                       .supports = supports,
                       .speed = {.rows = f64_shapes[0].rows, .columns = f64_shapes[0].columns},
                       .estimate = estimate,
                       .run = run}};

}  // namespace
}  // namespace rung
