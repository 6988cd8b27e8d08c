// SPDX-License-Identifier: Apache-2.0
// gemm / simt packed
//
// Idea     copy an operand once to where simt_top's tiles are fetched 16 bytes at a time: k steps
//          of contiguous rows or columns that begin at multiples of 128 bytes.
// Changes  against simt_top: rows that begin anywhere, or k contiguous in both operands, no longer
//          cost a copy instruction per element and tile.
// Cost     the copy: an operand read and written once, n^2 work beside n^3.
// Limits   products large enough for that; copies of up to 1 GiB of workspace.
// Tried    -
// Source   Goto & van de Geijn, "Anatomy of high-performance matrix multiplication", 2008: packing.
#include "rung/ops/gemm/cuda/detail/simt_top.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr int side = 32;                 // of a tile that a block copies
constexpr int lines = 8;                 // that it copies at a time
constexpr std::int64_t whole_line = 32;  // elements of 128 bytes
constexpr std::int64_t most_blocks = 65535;
constexpr std::int64_t most_bytes = std::int64_t{1} << 30;

/// `from`: matrices x k x outer, of any strides; `to` the same with contiguous outer, pitch
/// elements from a k to the next and zeros behind the last.
struct Packing {
  View<const float, 3> from;
  float* to;
  std::int64_t pitch;
};

__global__ void __launch_bounds__(side* lines) gemm_pack_steps(Packing packing) {
  struct Layout {
    float tile[side][side + 1];
  };
  auto& tile = shared<Layout>().tile;
  const View<const float, 3>& from = packing.from;
  const auto lane = static_cast<int>(threadIdx.x);
  const auto line = static_cast<int>(threadIdx.y);
  const std::int64_t first_outer = std::int64_t{blockIdx.x} * side;
  const bool turns = from.strides[1] < from.strides[2];  // k is the contiguous axis
  for (std::int64_t matrix = blockIdx.z; matrix < from.shape[0]; matrix += gridDim.z) {
    for (std::int64_t first_k = std::int64_t{blockIdx.y} * side; first_k < from.shape[1];
         first_k += std::int64_t{gridDim.y} * side) {
      float values[side / lines];
#pragma unroll
      for (int i = 0; i < side / lines; ++i) {
        const std::int64_t k = first_k + (turns ? lane : line + i * lines);
        const std::int64_t outer = first_outer + (turns ? line + i * lines : lane);
        const bool exists = k < from.shape[1] && outer < from.shape[2];
        values[i] = exists ? from(matrix, k, outer) : 0.0f;
      }
      if (turns) {
        __syncthreads();  // the tile before has been read
#pragma unroll
        for (int i = 0; i < side / lines; ++i) tile[lane][line + i * lines] = values[i];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < side / lines; ++i) values[i] = tile[line + i * lines][lane];
      }
      float* const to = packing.to + matrix * from.shape[1] * packing.pitch + first_outer + lane;
#pragma unroll
      for (int i = 0; i < side / lines; ++i) {
        const std::int64_t k = first_k + line + i * lines;
        if (k < from.shape[1]) to[k * packing.pitch] = values[i];
      }
    }
  }
}

/// Which operands are copied: those of any strides, and B where both have k contiguous.
struct Packs {
  bool a, b;
};
Packs packs(const Product32& p) {
  const TileAccess a = access_of(p.a, 1, 2);
  const TileAccess b = access_of(p.b, 2, 1);
  return {a == TileAccess::any,
          b == TileAccess::any || (b == TileAccess::along_depth && a != TileAccess::wide)};
}

std::int64_t pitch_of(std::int64_t outer) { return tiles_of(outer, whole_line) * whole_line; }
/// A matrix that the batch shares is copied once.
std::int64_t matrices_of(const View<const float, 3>& operand) {
  return operand.strides[0] == 0 ? 1 : operand.shape[0];
}
std::int64_t bytes_of(const View<const float, 3>& operand, int outer, int depth) {
  return matrices_of(operand) * operand.shape[depth] * pitch_of(operand.shape[outer]) *
         std::int64_t{sizeof(float)};
}

/// Copies an operand to `to`, and makes the copy the operand: as long as a whole line.
void pack(Context& context, View<const float, 3>& operand, int outer, int depth, float* to) {
  const std::int64_t pitch = pitch_of(operand.shape[outer]);
  Packing packing{operand, to, pitch};
  packing.from.shape[0] = matrices_of(operand);
  packing.from.shape[1] = operand.shape[depth];
  packing.from.shape[2] = operand.shape[outer];
  packing.from.strides[1] = operand.strides[depth];
  packing.from.strides[2] = operand.strides[outer];
  launch(context,
         {.grid = {pitch / side, smaller(tiles_of(packing.from.shape[1], side), most_blocks),
                   smaller(packing.from.shape[0], most_blocks)},
          .block = {side, lines},
          .shared_bytes = sizeof(float) * side * (side + 1)},
         gemm_pack_steps, packing);
  operand.data = to;
  if (operand.strides[0] != 0) operand.strides[0] = operand.shape[depth] * pitch;
  operand.strides[depth] = pitch;
  operand.strides[outer] = 1;
  operand.shape[outer] = pitch;
}

std::int64_t copied_bytes(const Product32& p) {
  const Packs which = packs(p);
  return (which.a ? bytes_of(p.a, 1, 2) : 0) + (which.b ? bytes_of(p.b, 2, 1) : 0);
}

Support supports(const Gemm::Args& args, const Context& context) {
  if (const Support short_strides = require_short_strides(args, context); !short_strides) {
    return short_strides;
  }
  constexpr std::int64_t longest = std::int64_t{1} << 22;  // of one launch, and of a stride
  if (args.m() > longest || args.n() > longest) {
    return unsupported("more than 4194304 rows or columns");
  }
  const Product32 p = with_contiguous_c(product<float, float>(args));
  const Packs which = packs(p);
  if (!which.a && !which.b) return unsupported("simt_top's copies take A and B as they are");
  return copied_bytes(p) <= most_bytes ? supported : unsupported("copies of more than 1 GiB");
}

double estimate(const Gemm::Args& args, const Context& context) {
  constexpr double share = 0.6;  // of memory's rate that copies reach
  const Product32 p = with_contiguous_c(product<float, float>(args));
  const Packs which = packs(p);
  return simt_top_choice(args, context).seconds +
         ((which.a ? 1 : 0) + (which.b ? 1 : 0)) * launch_seconds +
         2 * static_cast<double>(copied_bytes(p)) /
             (share * nominal_rates(context).bytes_per_second);
}

void run(const Gemm::Args& args, Context& context) {
  Product32 p = with_contiguous_c(product<float, float>(args));
  const TileChoice choice = simt_top_choice(args, context);
  const Packs which = packs(p);
  const std::int64_t a_bytes = which.a ? bytes_of(p.a, 1, 2) : 0;
  auto* const memory = static_cast<float*>(
      context.workspace(static_cast<std::size_t>(larger<std::int64_t>(copied_bytes(p), 1))));
  if (which.a) pack(context, p.a, 1, 2, memory);
  if (which.b) pack(context, p.b, 2, 1, memory + a_bytes / std::int64_t{sizeof(float)});
  run_simt_top(context, p, choice);
}

const Rung<Gemm> self{{.name = "simt_packed",
                       .after = "simt_top",
                       .backend = device_backend,
                       .supports = supports,
                       .speed = {.rows = 128, .columns = 256},
                       .estimate = estimate,
                       .run = run}};

}  // namespace
}  // namespace rung
