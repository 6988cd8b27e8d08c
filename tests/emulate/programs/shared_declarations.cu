// SPDX-License-Identifier: Apache-2.0
// Static and dynamic shared memory, declared in every order of words.
#include "check.cuh"

struct Cell {
  int a;
  float b;
};

__global__ void many(int* out) {
  __shared__ int a[32], b[32][2], single;
  static __shared__ double wide[8];
  __shared__ __align__(16) unsigned char bytes[64];
  alignas(32) __shared__ Cell cells[32];
  volatile __shared__ int loud[32];
  __shared__ union {
    int i[32];
    float f[32];
  } both;
  const int t = threadIdx.x;
  a[t] = t;
  b[t][0] = 2 * t;
  b[t][1] = 3 * t;
  if (t == 0) single = 1000;
  if (t < 8) wide[t] = t;
  bytes[t] = static_cast<unsigned char>(t);
  cells[t].a = 4 * t;
  loud[t] = 5 * t;
  both.i[t] = 6 * t;
  __syncthreads();
  const int o = 31 - t;
  out[t] = a[o] + b[o][0] + b[o][1] + single + static_cast<int>(wide[o % 8]) + bytes[o] +
           cells[o].a + loud[o] + both.i[o];
  if (sizeof(a) != 128 || (reinterpret_cast<size_t>(cells) & 31) != 0) out[t] = -1;
}

__global__ void dynamic_1(int* out) {
  extern __shared__ int values[];
  values[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = values[31 - threadIdx.x];
}
__global__ void dynamic_2(int* out) {
  extern __align__(16) __shared__ unsigned char raw[];
  int* values = reinterpret_cast<int*>(raw);
  float* more = (float*)&values[blockDim.x];
  values[threadIdx.x] = threadIdx.x;
  more[threadIdx.x] = 2.0f * threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = values[31 - threadIdx.x] + static_cast<int>(more[31 - threadIdx.x]);
}
__global__ void dynamic_3(int* out) {
  int extern __shared__ rows[][4];
  rows[threadIdx.x][1] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = rows[31 - threadIdx.x][1];
}
extern __shared__ float of_the_file[];
__global__ void dynamic_4(int* out) {
  of_the_file[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = static_cast<int>(*(of_the_file + 31 - threadIdx.x));
}
template <class T>
__device__ T reverse(T value) {
  __shared__ T kept[32];
  kept[threadIdx.x] = value;
  __syncthreads();
  return kept[31 - threadIdx.x];
}
__global__ void in_functions(int* out) {
  const int i = reverse<int>(threadIdx.x);
  const double d = reverse<double>(threadIdx.x);
  out[threadIdx.x] = i + static_cast<int>(d);
}

int main() {
  Array<int> out(32);
  many<<<1, 32>>>(out.device);
  out.down();
  for (int t = 0; t < 32; ++t) {
    const int o = 31 - t;
    CHECK(out[t] == o * (1 + 2 + 3 + 1 + 4 + 5 + 6) + 1000 + o % 8);
  }
  dynamic_1<<<1, 32, 128>>>(out.device);
  out.down();
  for (int t = 0; t < 32; ++t) CHECK(out[t] == 31 - t);
  dynamic_2<<<1, 32, 256>>>(out.device);
  out.down();
  for (int t = 0; t < 32; ++t) CHECK(out[t] == 3 * (31 - t));
  dynamic_3<<<1, 32, 512>>>(out.device);
  out.down();
  for (int t = 0; t < 32; ++t) CHECK(out[t] == 31 - t);
  dynamic_4<<<1, 32, 128>>>(out.device);
  out.down();
  for (int t = 0; t < 32; ++t) CHECK(out[t] == 31 - t);
  in_functions<<<1, 32>>>(out.device);
  out.down();
  for (int t = 0; t < 32; ++t) CHECK(out[t] == 2 * (31 - t));
  return ok();
}
