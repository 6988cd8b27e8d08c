// SPDX-License-Identifier: Apache-2.0
// A double in shared memory of bytes.
#include "../programs/check.cuh"

__global__ void keep(double* out) {
#ifdef BUG
  __shared__ __align__(16) unsigned char bytes[36 * 8];
  double* kept = reinterpret_cast<double*>(bytes + 4);
#else
  __shared__ __align__(8) unsigned char bytes[36 * 8];
  double* kept = reinterpret_cast<double*>(bytes + 8);
#endif
  kept[threadIdx.x] = threadIdx.x;  // expect: misaligned
  __syncthreads();
  if (threadIdx.x == 0) out[0] = 1;
}

int main() {
  Array<double> out(32);
  keep<<<1, 32>>>(out.device);
  return ok();
}
