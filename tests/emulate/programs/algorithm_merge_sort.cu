// SPDX-License-Identifier: Apache-2.0
// Bottom-up merge sort, one thread a pair of runs.
#include "check.cuh"

__global__ void merge(const int* in, int* out, int n, int width) {
  const int run = 2 * width * (blockIdx.x * blockDim.x + threadIdx.x);
  if (run >= n) return;
  const int middle = min(run + width, n), end = min(run + 2 * width, n);
  int a = run, b = middle;
  for (int i = run; i < end; ++i) {
    const bool left = a < middle && (b >= end || in[a] <= in[b]);
    out[i] = left ? in[a++] : in[b++];
  }
}

int main() {
  constexpr int n = 1000;
  Array<int> a(n), b(n);
  for (int i = 0; i < n; ++i) a[i] = (i * 7919) % 1009;
  a.up();
  int *from = a.device, *to = b.device;
  for (int width = 1; width < n; width *= 2) {
    merge<<<(n / width + 63) / 64, 64>>>(from, to, n, width);
    int* other = from;
    from = to;
    to = other;
  }
  CUDA(cudaMemcpy(a.host, from, n * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 1; i < n; ++i) CHECK(a[i - 1] <= a[i]);
  return ok();
}
