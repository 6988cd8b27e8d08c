// SPDX-License-Identifier: Apache-2.0
// gemm / packed
//
// Idea     what the copy engine cannot take is copied to where it can: lines that begin at
//          multiples of 128 bytes in the workspace; f32 turned, so that k is contiguous, which
//          wgmma wants of tf32. Then persistent multiplies.
// Changes  against ldmatrix_pipeline, which is what else takes such operands: two passes over an
//          operand instead of loads that pass registers for every tile that needs it.
// Cost     the operand once more read and written, and a launch for each; then persistent's.
// Limits   up to 1 GiB of copies; operands that TMA takes as they are go to persistent itself. C is
//          written by threads where TMA cannot write it.
// Tried    -
// Source   cuBLAS does so, too, as its kernels' names in a profile tell.
#include "rung/device/load_anywhere.hpp"
#include "rung/ops/gemm/cuda/320_persistent.cuh"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr std::int64_t most_bytes = std::int64_t{1} << 30;
constexpr std::int64_t most_blocks = 65535;  // along y and z

/// A copy of matrices whose lines are anywhere, to lines of `pitch` elements.
template <class T>
struct Packing {
  View<const T, 3> from;  // matrices x lines x along
  T* to;
  std::int64_t pitch;
};

constexpr int chunk_threads = 64;  // along a line
constexpr int line_threads = 4;
constexpr int lines_each = 4;  // of a thread: loads in flight

/// Lines stay lines. A thread copies 16 bytes of each of four.
template <class T>
__global__ void __launch_bounds__(chunk_threads* line_threads) gemm_pack_lines(Packing<T> p) {
  constexpr int chunk = vector_width<T>;
  const std::int64_t at = (std::int64_t{blockIdx.x} * chunk_threads + threadIdx.x) * chunk;
  if (at >= p.pitch) return;
  const std::int64_t lines = p.from.shape[1];
  for (std::int64_t matrix = blockIdx.z; matrix < p.from.shape[0]; matrix += gridDim.z) {
    constexpr int block_lines = line_threads * lines_each;
    for (std::int64_t first = std::int64_t{blockIdx.y} * block_lines; first < lines;
         first += std::int64_t{gridDim.y} * block_lines) {
#pragma unroll
      for (int i = 0; i < lines_each; ++i) {
        const std::int64_t line = first + static_cast<int>(threadIdx.y) + i * line_threads;
        if (line >= lines) break;
        const T* const from = &p.from(matrix, line, 0);
        T* const to = p.to + (matrix * lines + line) * p.pitch + at;
        if (p.from.strides[2] == 1) {
          store_raw(to, load_anywhere<chunk>(from, at, p.from.shape[2]));
          continue;
        }
        Pack<T, chunk> values;
#pragma unroll
        for (int j = 0; j < chunk; ++j) {
          values[j] = at + j < p.from.shape[2] ? from[(at + j) * p.from.strides[2]] : zero<T>();
        }
        store_raw(to, raw(values));
      }
    }
  }
}

constexpr int side = 32;  // of a tile that is turned
constexpr int side_threads = 8;

/// Lines become columns: `from` is read along its lines, which are contiguous, and written along
/// the other axis.
__global__ void __launch_bounds__(side* side_threads) gemm_pack_turned(Packing<float> p) {
  struct Tile {
    float at[side][side + 1];
  };
  auto& tile = shared<Tile>().at;
  const auto x = static_cast<int>(threadIdx.x);
  const auto y = static_cast<int>(threadIdx.y);
  const std::int64_t along = p.from.shape[2];  // of what is written
  const std::int64_t lines = p.from.shape[1];
  const std::int64_t first_along = std::int64_t{blockIdx.x} * side;
  for (std::int64_t matrix = blockIdx.z; matrix < p.from.shape[0]; matrix += gridDim.z) {
    for (std::int64_t first_line = std::int64_t{blockIdx.y} * side; first_line < lines;
         first_line += std::int64_t{gridDim.y} * side) {
      __syncthreads();
#pragma unroll
      for (int i = y; i < side; i += side_threads) {
        const bool exists = first_line + x < lines && first_along + i < along;
        tile[i][x] = exists ? p.from(matrix, first_line + x, first_along + i) : 0.0f;
      }
      __syncthreads();
#pragma unroll
      for (int i = y; i < side; i += side_threads) {
        if (first_line + i < lines && first_along + x < p.pitch) {
          p.to[(matrix * lines + first_line + i) * p.pitch + first_along + x] = tile[x][i];
        }
      }
    }
  }
}

/// How one operand goes to the copy engine.
template <class T>
struct Packed {
  MappedOperand<T> operand;
  bool packs;
  std::int64_t pitch;  // of the copy

  [[nodiscard]] std::int64_t bytes() const {
    if (!packs) return 0;
    const View<const T, 3>& view = operand.view;
    return tiles_of(view.shape[0] * view.shape[1] * pitch * std::int64_t{sizeof(T)}, 1024) * 1024;
  }
};
/// `given`: matrices x outer x k, in that order where the axes are 1 and 2.
template <class T>
Packed<T> packed_operand(const View<const T, 3>& given, int outer, int depth) {
  Packed<T> packed{mapped_operand(given, outer, depth), false, 0};
  constexpr int box[3] = {1, 64, SwizzledTile<T, 64, true>::depth};
  const bool turns = sizeof(T) == 4 && !packed.operand.k_major;
  if (!turns && tensor_map_support(packed.operand.view, box, Swizzle::bytes_128)) return packed;
  packed.packs = true;
  MappedOperand<T>& operand = packed.operand;
  operand.k_major =
      sizeof(T) == 4 || std::abs(given.strides[depth]) <= std::abs(given.strides[outer]);
  const int line = operand.k_major ? outer : depth;
  const int along = operand.k_major ? depth : outer;
  operand.view.shape[1] = given.shape[line];
  operand.view.shape[2] = given.shape[along];
  operand.view.strides[1] = given.strides[line];
  operand.view.strides[2] = given.strides[along];
  constexpr std::int64_t whole = 128 / sizeof(T);
  packed.pitch = tiles_of(operand.view.shape[2], whole) * whole;
  return packed;
}
template <class T>
struct PackedOperands {
  Finish<T> finish;
  Packed<T> a, b;
  [[nodiscard]] std::int64_t bytes() const { return a.bytes() + b.bytes(); }
};
template <class T>
PackedOperands<T> packed_operands(const Gemm::Args& args) {
  Finish<T> finish = finish_of<T>(args);
  finish.p = with_contiguous_c(finish.p);
  return {finish, packed_operand(finish.p.a, 1, 2), packed_operand(finish.p.b, 2, 1)};
}

/// Copies an operand to `to`, and makes the copy the operand.
template <class T>
void pack(Context& context, Packed<T>& packed, T* to) {
  if (!packed.packs) return;
  View<const T, 3>& view = packed.operand.view;
  const Packing<T> packing{view, to, packed.pitch};
  const std::int64_t matrices = smaller(view.shape[0], most_blocks);
  if (sizeof(T) == 4 && std::abs(view.strides[1]) < std::abs(view.strides[2])) {
    if constexpr (sizeof(T) == 4) {
      launch(context,
             {.grid = {tiles_of(packed.pitch, side),
                       smaller(tiles_of(view.shape[1], side), most_blocks), matrices},
              .block = {side, side_threads},
              .shared_bytes = sizeof(float) * side * (side + 1)},
             gemm_pack_turned, packing);
    }
  } else {
    constexpr std::int64_t chunk = vector_width<T>;
    launch(context,
           {.grid = {tiles_of(packed.pitch, chunk * chunk_threads),
                     smaller(tiles_of(view.shape[1], line_threads * lines_each), most_blocks),
                     matrices},
            .block = {chunk_threads, line_threads}},
           gemm_pack_lines<T>, packing);
  }
  view.data = to;
  view.strides[0] = view.shape[1] * packed.pitch;
  view.strides[1] = packed.pitch;
  view.strides[2] = 1;
}

/// Calls f with the packed operands of the call's type.
template <class F>
auto with_packed(const Gemm::Args& args, F&& f) {
  return visit<float, f16, bf16>(args.a.dtype,
                                 [&]<class T>() { return f(packed_operands<T>(args)); });
}

Support supports(const Gemm::Args& args, const Context& context) {
  if (const Support extents = require_mapped_extents(args, context); !extents) return extents;
  return with_packed(args, [&](const auto& operands) {
    if (operands.bytes() == 0) return unsupported("the copy engine takes A and B as they are");
    return operands.bytes() <= most_bytes ? supported : unsupported("copies of more than 1 GiB");
  });
}

TensorPlan plan_of(const Gemm::Args& args, const Context& context) {
  return plan_tensor(args, context, persistent_tiles, true);
}

double estimate(const Gemm::Args& args, const Context& context) {
  constexpr double share = 0.6;  // of memory's rate that copies reach
  return with_packed(args, [&](const auto& operands) {
    const double copies = (operands.a.packs ? 1 : 0) + (operands.b.packs ? 1 : 0);
    return plan_of(args, context).seconds + copies * launch_seconds +
           2 * static_cast<double>(operands.bytes()) /
               (share * nominal_rates(context).bytes_per_second);
  });
}

void run(const Gemm::Args& args, Context& context) {
  const TensorPlan plan = plan_of(args, context);
  with_packed(args, [&]<class T>(PackedOperands<T> operands) {
    const std::size_t partial = plan.slices > 1 ? partial_bytes(operands.finish, plan.slices) : 0;
    auto* const memory = static_cast<unsigned char*>(
        context.workspace(static_cast<std::size_t>(operands.bytes()) + partial));
    pack(context, operands.a, reinterpret_cast<T*>(memory));
    pack(context, operands.b, reinterpret_cast<T*>(memory + operands.a.bytes()));
    run_persistent(context, {operands.finish, operands.a.operand, operands.b.operand}, plan,
                   memory + operands.bytes());
  });
}

const Rung<Gemm> self{{.name = "packed",
                       .after = "persistent",
                       .backend = device_backend,
                       .supports = supports,
                       .speed = {.rows = persistent_rows, .columns = 256},
                       .estimate = estimate,
                       .run = run}};

}  // namespace
}  // namespace rung
