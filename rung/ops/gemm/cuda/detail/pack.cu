// SPDX-License-Identifier: Apache-2.0
// Kernels of pack(): lines are copied, or transposed if `from` is contiguous across them.
#include "rung/ops/gemm/cuda/detail/pack.hpp"

#include <cstdlib>

namespace rung::gemm_cuda::inline RUNG_TARGET {
namespace {

constexpr std::int64_t most_blocks = 65535;  // along y and z
constexpr int pack_threads = 256;
/// Lines per thread, in flight together. Four 16-byte lines loaded element by element would take
/// 128 registers.
template <class T>
constexpr int lines_each = sizeof(T) == 1 ? 1 : 4;

template <class T>
struct Packing {
  View<const T, 3> from;
  T* to;
  std::int64_t pitch;
};

/// Copies 16 bytes per thread of each of its lines.
template <class T>
__global__ void __launch_bounds__(pack_threads) gemm_pack_lines(Packing<T> p) {
  constexpr int chunk = vector_width<T>;
  const std::int64_t at = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * chunk;
  if (at >= p.pitch) return;
  const std::int64_t lines = p.from.shape[1];
  const auto line_threads = static_cast<int>(blockDim.y);
  const int block_lines = line_threads * lines_each<T>;
  for (std::int64_t matrix = blockIdx.z; matrix < p.from.shape[0]; matrix += gridDim.z) {
    for (std::int64_t first = std::int64_t{blockIdx.y} * block_lines; first < lines;
         first += std::int64_t{gridDim.y} * block_lines) {
#pragma unroll
      for (int i = 0; i < lines_each<T>; ++i) {
        const std::int64_t line = first + static_cast<int>(threadIdx.y) + i * line_threads;
        if (line >= lines) break;
        store_raw(
            p.to + (matrix * lines + line) * p.pitch + at,
            load_line<chunk>(&p.from(matrix, line, 0), p.from.strides[2], at, p.from.shape[2]));
      }
    }
  }
}

/// Tile for transposition: `side` lines; a thread stores 4 bytes of a line at a time.
template <class T>
struct TurnedTile {
  static constexpr int side = sizeof(T) == 1 ? 64 : 32;
  static constexpr int word = sizeof(T) < 4 ? 4 / static_cast<int>(sizeof(T)) : 1;
  static constexpr int threads = pack_threads / side;  // along y
  T at[side][side + word];                             // [line][along]: no bank conflicts
};

/// Transposes: reads `from` across its lines and writes along them.
template <class T>
__global__ void __launch_bounds__(pack_threads) gemm_pack_turned(Packing<T> p) {
  using Tile = TurnedTile<T>;
  constexpr int side = Tile::side;
  constexpr int line_words = side / Tile::word;
  auto& tile = shared<Tile>().at;
  const auto x = static_cast<int>(threadIdx.x);
  const auto y = static_cast<int>(threadIdx.y);
  const std::int64_t lines = p.from.shape[1];
  const std::int64_t first_along = std::int64_t{blockIdx.x} * side;
  for (std::int64_t matrix = blockIdx.z; matrix < p.from.shape[0]; matrix += gridDim.z) {
    for (std::int64_t first = std::int64_t{blockIdx.y} * side; first < lines;
         first += std::int64_t{gridDim.y} * side) {
      __syncthreads();  // the previous tile has been written out
#pragma unroll
      for (int i = y; i < side; i += Tile::threads) {
        const bool exists = first + x < lines && first_along + i < p.from.shape[2];
        tile[x][i] = exists ? p.from(matrix, first + x, first_along + i) : zero<T>();
      }
      __syncthreads();
      const int along = x % line_words * Tile::word;
#pragma unroll
      for (int line = (y * side + x) / line_words; line < side;
           line += Tile::threads * side / line_words) {
        if (first + line >= lines || first_along + along >= p.pitch) continue;
        Pack<T, Tile::word> word;
#pragma unroll
        for (int i = 0; i < Tile::word; ++i) word[i] = tile[line][along + i];
        store_wide(p.to + (matrix * lines + first + line) * p.pitch + first_along + along, word);
      }
    }
  }
}

}  // namespace

template <class T>
View<const T, 3> pack(Context& context, const View<const T, 3>& from, T* to) {
  const std::int64_t pitch = packed_pitch<T>(from.shape[2]);
  const Packing<T> packing{from, to, pitch};
  const std::int64_t matrices = smaller(from.shape[0], most_blocks);
  if (from.strides[2] != 1 && std::abs(from.strides[1]) < std::abs(from.strides[2])) {
    using Tile = TurnedTile<T>;
    launch(context,
           {.grid = {tiles_of(pitch, Tile::side),
                     smaller(tiles_of(from.shape[1], Tile::side), most_blocks), matrices},
            .block = {Tile::side, Tile::threads},
            .shared_bytes = sizeof(Tile)},
           gemm_pack_turned<T>, packing);
  } else {
    constexpr std::int64_t chunk = vector_width<T>;
    int along = 8;  // threads per line
    while (along < 64 && along * chunk < pitch) along *= 2;
    const std::int64_t block_lines = pack_threads / along * lines_each<T>;
    launch(context,
           {.grid = {tiles_of(pitch, chunk * along),
                     smaller(tiles_of(from.shape[1], block_lines), most_blocks), matrices},
            .block = {along, pack_threads / along}},
           gemm_pack_lines<T>, packing);
  }
  View<const T, 3> packed = from;
  packed.data = to;
  packed.strides[0] = from.shape[1] * pitch;
  packed.strides[1] = pitch;
  packed.strides[2] = 1;
  return packed;
}

template View<const std::uint8_t, 3> pack(Context&, const View<const std::uint8_t, 3>&,
                                          std::uint8_t*);
template View<const f16, 3> pack(Context&, const View<const f16, 3>&, f16*);
template View<const bf16, 3> pack(Context&, const View<const bf16, 3>&, bf16*);
template View<const float, 3> pack(Context&, const View<const float, 3>&, float*);

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
