// SPDX-License-Identifier: Apache-2.0
// Copies 8-bit operands to lines along k that begin at multiples of 128 bytes.
#include "rung/device/load_anywhere.hpp"
#include "rung/ops/gemm/cuda/detail/byte_operands.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {
namespace {

constexpr std::int64_t most_blocks = 65535;  // along y and z

struct BytePacking {
  View<const std::uint8_t, 3> from;  // matrices x lines x k
  std::uint8_t* to;
  std::int64_t pitch;
};

constexpr int chunk = 16;  // bytes per thread
constexpr int chunk_threads = 32;
constexpr int line_threads = 8;

/// Lines stay lines: k is contiguous, at any address.
__global__ void __launch_bounds__(chunk_threads* line_threads) gemm_pack_byte_lines(BytePacking p) {
  const std::int64_t at = (std::int64_t{blockIdx.x} * chunk_threads + threadIdx.x) * chunk;
  if (at >= p.pitch) return;
  const std::int64_t lines = p.from.shape[1];
  for (std::int64_t matrix = blockIdx.z; matrix < p.from.shape[0]; matrix += gridDim.z) {
    for (std::int64_t line = std::int64_t{blockIdx.y} * line_threads + threadIdx.y; line < lines;
         line += std::int64_t{gridDim.y} * line_threads) {
      store_raw(p.to + (matrix * lines + line) * p.pitch + at,
                load_anywhere<chunk>(&p.from(matrix, line, 0), at, p.from.shape[2]));
    }
  }
}

constexpr int side = 64;  // of a tile that is turned
constexpr int side_threads = 4;

/// Lines become columns: `from` is read across its lines, along which it is contiguous (or it is so
/// along nothing), and written along k, four bytes per thread.
__global__ void __launch_bounds__(side* side_threads) gemm_pack_bytes_turned(BytePacking p) {
  struct Tile {
    std::uint8_t at[side][side + 4];  // [line][k]
  };
  auto& tile = shared<Tile>().at;
  const auto x = static_cast<int>(threadIdx.x);
  const auto y = static_cast<int>(threadIdx.y);
  const std::int64_t lines = p.from.shape[1];
  const std::int64_t first_k = std::int64_t{blockIdx.x} * side;
  for (std::int64_t matrix = blockIdx.z; matrix < p.from.shape[0]; matrix += gridDim.z) {
    for (std::int64_t first = std::int64_t{blockIdx.y} * side; first < lines;
         first += std::int64_t{gridDim.y} * side) {
      __syncthreads();  // the tile before has been written out
#pragma unroll
      for (int i = y; i < side; i += side_threads) {
        const bool exists = first + x < lines && first_k + i < p.from.shape[2];
        tile[x][i] = exists ? p.from(matrix, first + x, first_k + i) : std::uint8_t{0};
      }
      __syncthreads();
      const int k = x % (side / 4) * 4;
      const int line_step = side_threads * (side / (side / 4));
#pragma unroll
      for (int line = y * (side / (side / 4)) + x / (side / 4); line < side; line += line_step) {
        if (first + line >= lines || first_k + k >= p.pitch) continue;
        Pack<std::uint8_t, 4> four;
#pragma unroll
        for (int i = 0; i < 4; ++i) four[i] = tile[line][k + i];
        store_wide(p.to + (matrix * lines + first + line) * p.pitch + first_k + k, four);
      }
    }
  }
}

}  // namespace

void pack_bytes(Context& context, ByteOperand& operand, std::uint8_t* to) {
  if (!operand.packs) return;
  View<const std::uint8_t, 3>& view = operand.view;
  const BytePacking packing{view, to, operand.pitch()};
  const std::int64_t matrices = smaller(view.shape[0], most_blocks);
  if (view.strides[2] == 1) {
    launch(context,
           {.grid = {tiles_of(packing.pitch, chunk * chunk_threads),
                     smaller(tiles_of(view.shape[1], line_threads), most_blocks), matrices},
            .block = {chunk_threads, line_threads}},
           gemm_pack_byte_lines, packing);
  } else {
    launch(context,
           {.grid = {tiles_of(packing.pitch, side),
                     smaller(tiles_of(view.shape[1], side), most_blocks), matrices},
            .block = {side, side_threads},
            .shared_bytes = side * (side + 4)},
           gemm_pack_bytes_turned, packing);
  }
  view.data = to;
  view.strides[0] = view.shape[1] * packing.pitch;
  view.strides[1] = packing.pitch;
  view.strides[2] = 1;
  operand.packs = false;
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
