// SPDX-License-Identifier: Apache-2.0
// gemm / simt registers
//
// Idea     rows that begin at any address can only be read 4 bytes at a time. A tile's elements are
//          loaded into registers a whole tile ahead, and stored to shared memory from there.
// Changes  against simt_top: a load and a store per element instead of a 4-byte cp.async, with
//          which 4095 x 4097 x 4099 runs at 40 TFLOP/s on an H200; 4096 cubed, with 16-byte copies,
//          at 51. Two tiles in shared memory instead of four or five.
// Cost     12 or 24 registers per thread for the tile that is being loaded.
// Limits   two blocks of 64 x 128 per SM, where simt_top has three.
// Source   MAGMA's and CUTLASS's SIMT kernels before cp.async.
#include <array>

#include "rung/device/tile/raster.hpp"
#include "rung/ops/gemm/cuda/detail/async.hpp"
#include "rung/ops/gemm/cuda/detail/warp_epilogue.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr std::array<TileShape, 2> shapes{{{.rows = 128,
                                            .columns = 256,
                                            .steps = 8,
                                            .warp_rows = 64,
                                            .warp_columns = 64,
                                            .thread_rows = 16,
                                            .thread_columns = 8,
                                            .stages = 2,
                                            .blocks = 1},
                                           {.rows = 64,
                                            .columns = 128,
                                            .steps = 16,
                                            .warp_rows = 32,
                                            .warp_columns = 64,
                                            .thread_rows = 8,
                                            .thread_columns = 8,
                                            .stages = 2,
                                            .blocks = 2}}};

/// Loads tiles [step][outer] of an operand into registers, and stores them to shared memory. Rows
/// or columns beyond the matrix are clamped to its last one; the first tile holds the remainder of
/// the depth, zero padded.
template <int Extent, int Steps, int Threads, TileAccess access>
class RegisterCopy {
  static constexpr bool along_depth = access == TileAccess::along_depth;
  static constexpr int count = Extent * Steps / Threads;
  // From one element of a thread to its next.
  static constexpr int outer_apart = along_depth ? Threads / Steps : 0;
  static constexpr int steps_apart = along_depth ? 0 : Threads / Extent;
  static_assert(count * Threads == Extent * Steps);

  const float* from_;  // this thread's step of the next tile; its outer position unless along_depth
  std::int64_t depth_stride_;
  int outer_stride_;
  int outer_, last_outer_, step_;
  float values_[count];

 public:
  // Elements copied along k, one step per lane: padding puts the lanes in different banks.
  static constexpr int pitch = Extent + (along_depth ? 4 : 0);
  static constexpr int elements = Steps * pitch;

  __device__ __forceinline__ RegisterCopy(const TileOperand& operand, int first)
      : depth_stride_(along_depth ? 1 : operand.depth_stride),
        outer_stride_(static_cast<int>(operand.outer_stride)) {
    const int thread = thread_index();
    outer_ = along_depth ? thread / Steps : thread % Extent;
    step_ = along_depth ? thread % Steps : thread / Extent;
    last_outer_ = static_cast<int>(smaller<std::int64_t>(operand.outer_extent - first, Extent)) - 1;
    from_ = operand.data + first * operand.outer_stride + step_ * depth_stride_;
    if constexpr (!along_depth) from_ += smaller(outer_, last_outer_);
  }

  /// Loads the first tile, of which `steps` steps exist.
  __device__ __forceinline__ void load_first(int steps) {
    for_each_address(
        [&](int i, const float* at) { values_[i] = step_ + i * steps_apart < steps ? *at : 0.0F; });
    from_ += steps * depth_stride_;
  }

  /// Loads the next tile, whole.
  __device__ __forceinline__ void load() {
    for_each_address([&](int i, const float* at) { values_[i] = *at; });
    from_ += Steps * depth_stride_;
  }

  __device__ __forceinline__ void store(float* tile) const {
    float* const to = tile + step_ * pitch + outer_;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      to[i * (steps_apart * pitch + outer_apart)] = values_[i];
    }
  }

 private:
  template <class F>
  __device__ __forceinline__ void for_each_address(const F& f) const {
    const float* at = from_;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      if constexpr (along_depth) {
        f(i, from_ + smaller(outer_ + i * outer_apart, last_outer_) * outer_stride_);
      } else {
        f(i, at);
        at += steps_apart * depth_stride_;
      }
    }
  }
};

template <int Shape, TileAccess access_a, TileAccess access_b>
struct RegisterStages {
  static constexpr TileShape shape = shapes[Shape];
  using TileA = RegisterCopy<shape.rows, shape.steps, shape.threads(), access_a>;
  using TileB = RegisterCopy<shape.columns, shape.steps, shape.threads(), access_b>;
  alignas(16) float a[shape.stages][TileA::elements];
  alignas(16) float b[shape.stages][TileB::elements];
};

template <int Shape, TileAccess access_a, TileAccess access_b>
__global__ void __launch_bounds__(shapes[Shape].threads(), shapes[Shape].blocks)
    gemm_simt_registers(Product32 p, int band) {
  constexpr TileShape shape = shapes[Shape];
  using Tile = RegisterTile<shape>;
  using Stages = RegisterStages<Shape, access_a, access_b>;
  using TileA = typename Stages::TileA;
  using TileB = typename Stages::TileB;
  auto& stages = shared<Stages>();
  const int batch = static_cast<int>(blockIdx.z);
  const TileWork work =
      Raster{static_cast<int>(gridDim.y), static_cast<int>(gridDim.x), 1, 1, band}.at(
          static_cast<int>(blockIdx.y * gridDim.x + blockIdx.x));
  const int first_row = work.row * shape.rows;
  const int first_column = work.column * shape.columns;
  typename Tile::Sums sums = {};
  if (p.k() > 0) {
    TileA a(operand_a(p, batch), first_row);
    TileB b(operand_b(p, batch), first_column);
    const auto tiles = static_cast<int>(tiles_of(p.k(), shape.steps));
    const auto first_steps = static_cast<int>(p.k() - (tiles - 1) * std::int64_t{shape.steps});
    a.load_first(first_steps);
    b.load_first(first_steps);
    a.store(stages.a[0]);
    b.store(stages.b[0]);
    if (tiles > 1) {
      a.load();
      b.load();
    }
    // Fragments of the next step are loaded while the current ones are multiplied.
    float a_values[2][shape.thread_rows];
    float b_values[2][shape.thread_columns];
    const auto load_step = [&](int stage, int step) {
      load_fragment<shape.thread_rows, shape.lanes_down() * Tile::group>(
          a_values[step % 2], &stages.a[stage][step * TileA::pitch + Tile::row(0)]);
      load_fragment<shape.thread_columns, shape.lanes_along() * Tile::group>(
          b_values[step % 2], &stages.b[stage][step * TileB::pitch + Tile::column(0)]);
    };
    __syncthreads();
    load_step(0, 0);
    for (int tile = 0; tile < tiles; ++tile) {
      int stage = tile % shape.stages;
      const int next = (tile + 1) % shape.stages;
#pragma unroll
      for (int step = 0; step < shape.steps; ++step) {
        if (step == shape.steps - 1) {
          __syncthreads();
          // After the last tile, that tile is read again and not used.
          stage = tile + 1 < tiles ? next : stage;
        }
        load_step(stage, (step + 1) % shape.steps);
        // All threads have read the other stage before the last barrier.
        if (step == shape.steps - 3 && tile + 1 < tiles) {
          b.store(stages.b[next]);
          if (tile + 2 < tiles) b.load();
        }
        if (step == shape.steps - 2 && tile + 1 < tiles) {
          a.store(stages.a[next]);
          if (tile + 2 < tiles) a.load();
        }
        multiply_add<true>(sums, a_values[step % 2], b_values[step % 2]);
      }
    }
  }
  __syncthreads();  // the epilogue overwrites the tiles
  finish_warp_tile<shape>(p, batch, sums, first_row, first_column);
}

// Steps of k below which a block's first loads and its epilogue need a second block to hide them.
constexpr std::int64_t short_depth = 256;

/// Returns the tile whose SM with the most tiles has less work; the larger one if they are equal
/// and k is not short.
int tile_for(const Gemm::Args& args, const Context& context) {
  const auto area = [&](const TileShape& tile) {
    const std::int64_t tiles =
        tiles_of(args.m(), tile.rows) * tiles_of(args.n(), tile.columns) * args.batch();
    return turns_of(tiles, context) * tile.rows * tile.columns;
  };
  return args.k() >= short_depth && area(shapes[0]) <= area(shapes[1]) ? 0 : 1;
}

Support supports(const Gemm::Args& args, const Context& context) {
  if (const Support short_strides = require_short_strides(args, context); !short_strides) {
    return short_strides;
  }
  const Product32 p = with_contiguous_c(product<float, float>(args));
  const TileAccess a = access_of(p.a, 1, 2);
  const TileAccess b = access_of(p.b, 2, 1);
  if (a == TileAccess::any || b == TileAccess::any) {
    return unsupported("A and B must be contiguous along an axis");
  }
  if ((a == TileAccess::wide && b != TileAccess::along_outer) ||
      (b == TileAccess::wide && a != TileAccess::along_outer)) {
    return unsupported("simt_top copies 16 bytes of A or B at a time");
  }
  const double tiles =
      static_cast<double>(tiles_of(args.m(), 64)) * static_cast<double>(tiles_of(args.n(), 128));
  return tiles <= 0x1p24 ? supported : unsupported("more than 2^24 tiles of C");
}

Work work(const Gemm::Args& args, const Context& context) {
  Work work = tile_work(args, context, facts_of(shapes[tile_for(args, context)]));
  work.path = copies_path(args);
  return work;
}

template <int Shape>
void multiply(Context& context, const Product32& p) {
  const int band = raster_band(std::int64_t{shapes[Shape].blocks} * context.info().sms,
                               shapes[Shape].rows, shapes[Shape].columns);
  with_access(p, [&]<TileAccess access_a, TileAccess access_b>() {
    constexpr bool by_elements =
        access_a != TileAccess::any && access_a != TileAccess::wide && access_b != TileAccess::wide;
    if constexpr (by_elements) {
      launch_tiles(context,
                   {.rows = shapes[Shape].rows,
                    .columns = shapes[Shape].columns,
                    .block = shapes[Shape].threads(),
                    .shared_bytes = larger(sizeof(RegisterStages<Shape, access_a, access_b>),
                                           sizeof(WarpRows<shapes[Shape]>))},
                   gemm_simt_registers<Shape, access_a, access_b>, p, band);
    }
  });
}

void run(const Gemm::Args& args, Context& context) {
  const Product32 p = with_contiguous_c(product<float, float>(args));
  tile_for(args, context) == 0 ? multiply<0>(context, p) : multiply<1>(context, p);
}

const Rung<Gemm> self{{.name = "simt_registers",
                       .after = "simt_top",
                       .backend = device_backend,
                       .supports = supports,
                       .tile = {.rows = shapes[0].rows, .columns = shapes[0].columns},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
