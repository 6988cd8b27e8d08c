// SPDX-License-Identifier: Apache-2.0
// Shared memory: which lanes meet in a bank, for accesses of every width.
#pragma once

#include "buffers.cuh"

constexpr int shared_bytes = 4096;
constexpr int shared_rounds = 16;

// Which element a lane accesses.
struct neighbors {
  static __device__ int at(int lane) { return lane; }
};
struct reversed {
  static __device__ int at(int lane) { return 31 - lane; }
};
template <int n>
struct stride {
  static __device__ int at(int lane) { return lane * n; }
};
template <int n>
struct groups_of {  // one element for n lanes adjacent
  static __device__ int at(int lane) { return lane / n; }
};
template <int n>
struct repeated {  // the same n elements again and again
  static __device__ int at(int lane) { return lane % n; }
};
template <int n>
struct columns {  // of a matrix with n rows
  static __device__ int at(int lane) { return lane % n * (32 / n) + lane / n; }
};
struct scattered {
  static __device__ int at(int lane) { return (lane * 5741u + (lane >> 2) * 611u + 37u) % 128; }
};

__device__ inline void assign(unsigned char& to, int value) { to = value; }
__device__ inline void assign(short& to, int value) { to = value; }
__device__ inline void assign(float& to, int value) { to = value; }
__device__ inline void assign(double& to, int value) { to = value; }
__device__ inline void assign(float2& to, int value) { to = make_float2(value, 1); }
__device__ inline void assign(float4& to, int value) { to = make_float4(value, 1, 2, 3); }

template <class T>
__device__ T* fill_shared() {
  __shared__ __align__(16) unsigned char bytes[shared_bytes];
  T* const elements = reinterpret_cast<T*>(bytes);
#pragma unroll 1
  for (int i = threadIdx.x; i < shared_bytes / sizeof(T); i += blockDim.x) assign(elements[i], i);
  __syncthreads();
  return elements;
}

/// A round lies a multiple of all banks behind the one before.
template <class T>
__device__ int place_in_round(int element, int round) {
  return (element + round * 128) % static_cast<int>(shared_bytes / sizeof(T));
}

/// Elements are copied whole: what is taken apart could be read in parts.
template <class T, class Pattern>
__global__ void read_shared(T* out) {
  const T* const elements = fill_shared<T>();
  const int element = Pattern::at(threadIdx.x);
#pragma unroll 1
  for (int round = 0; round < shared_rounds; ++round) {
    out[round * gridDim.x * 32 + global_thread()] = elements[place_in_round<T>(element, round)];
  }
}

template <class T, class Pattern>
__global__ void write_shared(T* out) {
  T* const elements = fill_shared<T>();
  const int element = Pattern::at(threadIdx.x);
#pragma unroll 1
  for (int round = 0; round < shared_rounds; ++round) {
    assign(elements[place_in_round<T>(element, round)], round);
    __syncwarp();  // rounds come to elements that other lanes had before
  }
  __syncthreads();
  out[global_thread()] = elements[threadIdx.x];
}

constexpr int shared_blocks = 8;  // of a warp

template <class T, class... Patterns>
void read_and_write(const Buffers& b) {
  T* const out = reinterpret_cast<T*>(b.out);
  (read_shared<T, Patterns><<<shared_blocks, 32>>>(out), ...);
  (write_shared<T, Patterns><<<shared_blocks, 32>>>(out), ...);
}

inline void run_banks(const Buffers& b) {
  read_and_write<unsigned char, neighbors, stride<4>>(b);
  read_and_write<short, neighbors, stride<32>>(b);
  read_and_write<float, neighbors, reversed, stride<2>, stride<3>, stride<4>, stride<8>,
                 stride<16>, stride<17>, stride<31>, stride<32>, groups_of<8>, repeated<4>,
                 scattered>(b);
  read_and_write<double, neighbors, stride<2>>(b);
  read_and_write<float2, neighbors, stride<2>, stride<16>, groups_of<2>, repeated<16>, columns<4>,
                 scattered>(b);
  read_and_write<float4, neighbors, reversed, stride<2>, stride<8>, groups_of<2>, groups_of<4>,
                 groups_of<16>, groups_of<32>, repeated<2>, repeated<8>, repeated<16>, columns<4>,
                 columns<8>, scattered>(b);
  expect(cudaGetLastError());
}
