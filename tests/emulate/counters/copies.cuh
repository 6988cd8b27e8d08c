// SPDX-License-Identifier: Apache-2.0
// Global memory: widths, offsets, strides, structures, lanes that stand aside.
#pragma once

#include "buffers.cuh"

template <class T>
__global__ void copy(const T* in, T* out) {
  out[global_thread()] = in[global_thread()];
}

/// Every warp's piece begins `offset` elements behind a line of 128 bytes.
template <int offset>
__global__ void copy_from_offset(const float* in, float* out) {
  out[global_thread()] = in[global_thread() + offset];
}
template <int offset>
__global__ void copy_to_offset(const float* in, float* out) {
  out[global_thread() + offset] = in[global_thread()];
}

template <int stride>
__global__ void copy_from_strided(const float* in, float* out) {
  out[global_thread()] = in[global_thread() * stride];
}
template <int stride>
__global__ void copy_to_strided(const float* in, float* out) {
  out[global_thread() * stride] = in[global_thread()];
}

__global__ void gather(const float* in, const int* from, float* out) {
  out[global_thread()] = in[from[global_thread()]];
}
__global__ void scatter(const float* in, const int* to, float* out) {
  out[to[global_thread()]] = in[global_thread()];
}
__global__ void broadcast(const float* in, float* out) {
  out[global_thread()] = in[global_thread() / 32];
}

/// The last block has work for some of its warps, and for some lanes of one.
__global__ void copy_guarded(int n, const float* in, float* out) {
  if (global_thread() < n) out[global_thread()] = in[global_thread()];
}
__global__ void copy_even_lanes(const float* in, float* out) {
  if (threadIdx.x % 2 == 0) out[global_thread()] = in[global_thread()];
}
__global__ void copy_by_two_branches(const float* in, float* out) {
  if (threadIdx.x % 4 == 0) {
    out[global_thread()] = in[global_thread()] + 1;
  } else {
    out[global_thread() + count] = in[global_thread() + 2 * count];
  }
}

/// Rows of 1 to 32 elements, a thread each: lanes leave the loop one after another.
__global__ void sum_ragged_rows(const float* in, float* out) {
  const int length = global_thread() * 7 % 32 + 1;
  float sum = 0;
#pragma unroll 1
  for (int i = 0; i < length; ++i) sum += in[i * count + global_thread()];
  out[global_thread()] = sum;
}

// Particles of three coordinates, adjacent or each in an array of its own.
struct Particle {
  float x, y, z;
};
__global__ void move_structures(Particle* particles) {
  Particle& p = particles[global_thread()];
  p.x += 1;
  p.y += 2;
  p.z += 3;
}
__global__ void move_arrays(float* x, float* y, float* z) {
  x[global_thread()] += 1;
  y[global_thread()] += 2;
  z[global_thread()] += 3;
}

__global__ void stencil_global(const float* in, float* out) {
  const int i = global_thread() + 1;
  out[i] = in[i - 1] + in[i] + in[i + 1];
}

inline void run_copies(const Buffers& b) {
  constexpr int blocks = count / threads;
  copy<unsigned char><<<blocks, threads>>>(reinterpret_cast<unsigned char*>(b.in),
                                           reinterpret_cast<unsigned char*>(b.out));
  copy<short><<<blocks, threads>>>(reinterpret_cast<short*>(b.in), reinterpret_cast<short*>(b.out));
  copy<float><<<blocks, threads>>>(b.in, b.out);
  copy<double>
      <<<blocks, threads>>>(reinterpret_cast<double*>(b.in), reinterpret_cast<double*>(b.out));
  copy<float2>
      <<<blocks, threads>>>(reinterpret_cast<float2*>(b.in), reinterpret_cast<float2*>(b.out));
  copy<float4>
      <<<blocks, threads>>>(reinterpret_cast<float4*>(b.in), reinterpret_cast<float4*>(b.out));
  copy_from_offset<1><<<blocks, threads>>>(b.in, b.out);
  copy_from_offset<8><<<blocks, threads>>>(b.in, b.out);
  copy_to_offset<31><<<blocks, threads>>>(b.in, b.out);
  copy_from_strided<2><<<blocks, threads>>>(b.in, b.out);
  copy_from_strided<5><<<blocks, threads>>>(b.in, b.out);
  copy_from_strided<32><<<blocks, threads>>>(b.in, b.out);
  copy_to_strided<3><<<blocks, threads>>>(b.in, b.out);
  copy_to_strided<16><<<blocks, threads>>>(b.in, b.out);
  gather<<<blocks, threads>>>(b.in, b.numbers, b.out);
  scatter<<<blocks, threads>>>(b.in, b.numbers, b.out);
  broadcast<<<blocks, threads>>>(b.in, b.out);
  copy_guarded<<<blocks, threads>>>(count - 150, b.in, b.out);
  copy_even_lanes<<<blocks, threads>>>(b.in, b.out);
  copy_by_two_branches<<<blocks, threads>>>(b.in, b.out);
  sum_ragged_rows<<<blocks, threads>>>(b.in, b.out);
  move_structures<<<blocks, threads>>>(reinterpret_cast<Particle*>(b.out));
  move_arrays<<<blocks, threads>>>(b.out, b.out + count, b.out + 2 * count);
  stencil_global<<<blocks, threads>>>(b.in, b.out);
  expect(cudaGetLastError());
}
