// SPDX-License-Identifier: Apache-2.0
// CUB's algorithms of whole arrays; complex numbers and a profiler's marks, which do nothing.
#include <cuComplex.h>
#include <nvtx3/nvToolsExt.h>

#include <cub/cub.cuh>

#include "check.cuh"

/// Asks how much storage the call needs, and makes it.
template <class Call>
void with_storage(Call call) {
  size_t bytes = 0;
  CUDA(call(nullptr, bytes));
  CHECK(bytes > 0);
  void* storage;
  CUDA(cudaMalloc(&storage, bytes));
  CUDA(call(storage, bytes));
  CUDA(cudaFree(storage));
}

struct Even {
  __host__ __device__ bool operator()(int v) const { return v % 2 == 0; }
};

int main() {
  const int n = 1000;
  Array<int> in(n), out(n), values(n), order(n), found(1);
  long sum = 0;
  int even = 0;
  for (int i = 0; i < n; ++i) {
    in[i] = (i * 577) % 1009 - 500;
    values[i] = i;
    sum += in[i];
    even += in[i] % 2 == 0;
  }
  in.up();
  values.up();
  nvtxRangePush("reductions");
  with_storage([&](void* storage, size_t& bytes) {
    return cub::DeviceReduce::Sum(storage, bytes, in.device, found.device, n);
  });
  found.down();
  CHECK(found[0] == sum);
  with_storage([&](void* storage, size_t& bytes) {
    return cub::DeviceReduce::Min(storage, bytes, in.device, found.device, n);
  });
  found.down();
  for (int i = 0; i < n; ++i) CHECK(found[0] <= in[i]);
  nvtxRangePop();
  with_storage([&](void* storage, size_t& bytes) {
    return cub::DeviceScan::ExclusiveSum(storage, bytes, in.device, out.device, n);
  });
  out.down();
  for (int i = 0, before = 0; i < n; before += in[i++]) CHECK(out[i] == before);
  with_storage([&](void* storage, size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(storage, bytes, in.device, out.device, values.device,
                                           order.device, n);
  });
  out.down();
  order.down();
  for (int i = 0; i < n; ++i) {
    CHECK(i == 0 || out[i - 1] <= out[i]);
    CHECK(out[i] == in[order[i]]);
  }
  with_storage([&](void* storage, size_t& bytes) {
    return cub::DeviceSelect::If(storage, bytes, in.device, out.device, found.device, n, Even());
  });
  found.down();
  CHECK(found[0] == even);
  cub::CountingInputIterator<int> counting(0);
  cub::TransformInputIterator<bool, Even, int*> flags(in.device, Even());
  with_storage([&](void* storage, size_t& bytes) {
    return cub::DeviceSelect::Flagged(storage, bytes, counting, flags, out.device, found.device, n);
  });
  found.down();
  out.down();
  CHECK(found[0] == even);
  for (int i = 0; i < even; ++i) CHECK(in[out[i]] % 2 == 0);
  Array<int> bins(10);
  with_storage([&](void* storage, size_t& bytes) {
    return cub::DeviceHistogram::HistogramEven(storage, bytes, in.device, bins.device, 11, -500,
                                               500, n);
  });
  bins.down();
  int counted = 0, inside = 0;
  for (int i = 0; i < 10; ++i) counted += bins[i];
  for (int i = 0; i < n; ++i) inside += in[i] < 500;
  CHECK(counted == inside);

  const cuFloatComplex z = cuCdivf(make_cuFloatComplex(1, 2), make_cuFloatComplex(3, -1));
  CHECK(std::fabs(cuCrealf(z) - 0.1f) < 1e-6f && std::fabs(cuCimagf(z) - 0.7f) < 1e-6f);
  CHECK(std::fabs(cuCabs(make_cuDoubleComplex(3, 4)) - 5) < 1e-12);
  return ok();
}
