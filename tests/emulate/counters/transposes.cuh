// SPDX-License-Identifier: Apache-2.0
// A ladder of transposes: out[x][y] = in[y][x], 128 x 128.
#pragma once

#include "buffers.cuh"

constexpr int extent = 128;
constexpr int tile = 32;
constexpr int tile_rows = 8;  // of threads: each moves four elements of its tile's column

__global__ void transpose_reading_rows(const float* in, float* out) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  out[x * extent + y] = in[y * extent + x];
}

__global__ void transpose_writing_rows(const float* in, float* out) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  out[y * extent + x] = in[x * extent + y];
}

/// Through a tile in shared memory; padded by one element, its columns are in different banks.
template <class T, int padding>
__global__ void transpose_tile(const T* in, T* out) {
  __shared__ T elements[tile][tile + padding];
  const int first_x = blockIdx.x * tile;
  const int first_y = blockIdx.y * tile;
  for (int y = threadIdx.y; y < tile; y += tile_rows) {
    elements[y][threadIdx.x] = in[(first_y + y) * extent + first_x + threadIdx.x];
  }
  __syncthreads();
  for (int y = threadIdx.y; y < tile; y += tile_rows) {
    out[(first_x + y) * extent + first_y + threadIdx.x] = elements[threadIdx.x][y];
  }
}

/// Transposes without padding: element x of row y is at x ^ y.
template <class T>
__global__ void transpose_swizzled(const T* in, T* out) {
  __shared__ T elements[tile][tile];
  const int first_x = blockIdx.x * tile;
  const int first_y = blockIdx.y * tile;
  for (int y = threadIdx.y; y < tile; y += tile_rows) {
    elements[y][threadIdx.x ^ y] = in[(first_y + y) * extent + first_x + threadIdx.x];
  }
  __syncthreads();
  for (int y = threadIdx.y; y < tile; y += tile_rows) {
    out[(first_x + y) * extent + first_y + threadIdx.x] = elements[threadIdx.x][y ^ threadIdx.x];
  }
}

template <class T>
void run_tiles(const Buffers& b) {
  const dim3 tiles(extent / tile, extent / tile);
  const dim3 block(tile, tile_rows);
  const T* const in = reinterpret_cast<const T*>(b.in);
  T* const out = reinterpret_cast<T*>(b.out);
  transpose_tile<T, 0><<<tiles, block>>>(in, out);
  transpose_tile<T, 1><<<tiles, block>>>(in, out);
  transpose_swizzled<T><<<tiles, block>>>(in, out);
}

inline void run_transposes(const Buffers& b) {
  const dim3 whole(extent / tile, extent / tile_rows);
  const dim3 block(tile, tile_rows);
  transpose_reading_rows<<<whole, block>>>(b.in, b.out);
  transpose_writing_rows<<<whole, block>>>(b.in, b.out);
  run_tiles<float>(b);
  run_tiles<float2>(b);
  run_tiles<float4>(b);
  expect(cudaGetLastError());
}
