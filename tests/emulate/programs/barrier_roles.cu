// SPDX-License-Identifier: Apache-2.0
// Warps of two roles, each with barriers of its own: they meet by number, whichever call they come
// from. A role that ends early is no longer waited for.
#include "check.cuh"

__global__ void pipeline(const int* in, int* out, int rounds) {
  __shared__ int stages[2][32];
  const int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    for (int round = 0; round < rounds; ++round) {
      stages[round % 2][lane] = 3 * in[32 * round + lane];
      __syncthreads();
    }
    return;
  }
  int sum = 0;
  for (int round = 0; round < rounds; ++round) {
    __syncthreads();
    sum += stages[round % 2][31 - lane];
    out[32 * round + lane] = sum;
  }
  stages[0][lane] = sum;
  __syncthreads();
  out[32 * rounds + lane] = stages[0][lane ^ 1];
}

__global__ void vote(int* out) {
  const bool first = threadIdx.x < 64;
  int all = 0;
  if (first) {
    all = __syncthreads_and(1);
  } else {
    all = __syncthreads_and(threadIdx.x != 70);
  }
  out[threadIdx.x] = all;
}

int main() {
  const int rounds = 6;
  Array<int> in(32 * rounds), out(32 * (rounds + 1)), votes(96);
  for (int i = 0; i < in.size; ++i) in[i] = i * 7 % 13;
  in.up();
  pipeline<<<1, 64>>>(in.device, out.device, rounds);
  out.down();
  int sums[32] = {};
  for (int round = 0; round < rounds; ++round) {
    for (int lane = 0; lane < 32; ++lane) {
      sums[lane] += 3 * in[32 * round + 31 - lane];
      CHECK(out[32 * round + lane] == sums[lane]);
    }
  }
  for (int lane = 0; lane < 32; ++lane) CHECK(out[32 * rounds + lane] == sums[lane ^ 1]);
  votes.host[0] = 5;
  votes.up();
  vote<<<1, 96>>>(votes.device);
  votes.down();
  for (int i = 0; i < 96; ++i) CHECK(votes[i] == 0);
  return ok();
}
