// SPDX-License-Identifier: Apache-2.0
// CUB's less common algorithms of whole arrays: by key, in place, by comparison, of segments.
#include <cub/cub.cuh>

#include <algorithm>
#include <vector>

#include "check.cuh"

struct Call {
  template <class Function>
  void operator=(Function call) {  // once for its size, once for its work
    size_t bytes = 0;
    CUDA(call(nullptr, bytes));
    void* storage;
    CUDA(cudaMalloc(&storage, bytes));
    CUDA(call(storage, bytes));
    CUDA(cudaFree(storage));
  }
};
#define DO(call) Call() = [&](void* storage, size_t& bytes) { return call; }

struct Larger {
  template <class T>
  __host__ __device__ T operator()(const T& a, const T& b) const {
    return a < b ? b : a;
  }
};
struct ByLastDigit {
  __host__ __device__ bool operator()(int a, int b) const { return a % 10 < b % 10; }
};
struct Square {
  __host__ __device__ int operator()(int x) const { return x * x; }
};
struct Odd {
  __host__ __device__ bool operator()(int x) const { return x % 2 != 0; }
};
struct Set {
  int* to;
  __host__ __device__ void operator()(int i) const { to[i] = 3 * i; }
};

int main() {
  const int n = 500;
  Array<int> keys(n), in(n), out(n), other(n), lengths(n), count(1);
  for (int i = 0; i < n; ++i) {
    keys[i] = i / 7 % 5;
    in[i] = (i * 577) % 1009;
  }
  keys.up();
  in.up();
  DO(cub::DeviceReduce::ReduceByKey(storage, bytes, keys.device, other.device, in.device,
                                    out.device, count.device, Larger(), n));
  out.down();
  other.down();
  count.down();
  CHECK(count[0] == (n + 6) / 7);
  for (int run = 0; run < count[0]; ++run) {
    const int end = std::min(n, 7 * run + 7);
    CHECK(other[run] == run % 5);
    CHECK(out[run] == *std::max_element(in.host + 7 * run, in.host + end));
  }
  DO(cub::DeviceScan::ExclusiveSumByKey(storage, bytes, keys.device, in.device, out.device, n));
  out.down();
  for (int i = 0, sum = 0; i < n; sum += in[i++]) {
    if (i % 7 == 0) sum = 0;
    CHECK(out[i] == sum);
  }
  DO(cub::DeviceReduce::TransformReduce(storage, bytes, in.device, count.device, n, Larger(),
                                        Square(), 0));
  count.down();
  const int largest = *std::max_element(in.host, in.host + n);
  CHECK(count[0] == largest * largest);
  DO(cub::DevicePartition::If(storage, bytes, in.device, out.device, count.device, n, Odd()));
  out.down();
  count.down();
  int kept = 0, left = n;
  for (int i = 0; i < n; ++i) CHECK(out[in[i] % 2 != 0 ? kept++ : --left] == in[i]);
  CHECK(count[0] == kept);
  DO(cub::DeviceRunLengthEncode::NonTrivialRuns(storage, bytes, keys.device, out.device,
                                                lengths.device, count.device, n));
  out.down();
  lengths.down();
  count.down();
  CHECK(count[0] == 72 && out[71] == 497 && lengths[71] == 3 && lengths[0] == 7);
  DO(cub::DeviceSelect::UniqueByKey(storage, bytes, keys.device, in.device, out.device,
                                    other.device, count.device, n));
  other.down();
  count.down();
  for (int i = 0; i < count[0]; ++i) CHECK(other[i] == in[7 * i]);
  Array<int> edges(4), bins(3);
  const int limits[] = {0, 100, 300, 1000};
  for (int i = 0; i < 4; ++i) edges[i] = limits[i];
  edges.up();
  DO(cub::DeviceHistogram::HistogramRange(storage, bytes, in.device, bins.device, 4, edges.device,
                                          n));
  bins.down();
  for (int i = 0; i < 3; ++i) {
    CHECK(bins[i] == std::count_if(in.host, in.host + n,
                                   [&](int x) { return x >= limits[i] && x < limits[i + 1]; }));
  }

  // Sorts: by comparison, stably, with values; of segments.
  std::vector<int> want(in.host, in.host + n);
  std::stable_sort(want.begin(), want.end(), ByLastDigit());
  for (int i = 0; i < n; ++i) other[i] = i;
  other.up();
  CUDA(cudaMemcpy(out.device, in.device, n * sizeof(int), cudaMemcpyDeviceToDevice));
  DO(cub::DeviceMergeSort::StableSortPairs(storage, bytes, out.device, other.device, n,
                                           ByLastDigit()));
  out.down();
  other.down();
  for (int i = 0; i < n; ++i) CHECK(out[i] == want[i] && in[other[i]] == want[i]);
  Array<int> offsets(4);
  const int begins[] = {0, 120, 120, n};
  for (int i = 0; i < 4; ++i) offsets[i] = begins[i];
  offsets.up();
  DO(cub::DeviceSegmentedSort::SortKeysDescending(storage, bytes, in.device, out.device, n, 3,
                                                  offsets.device, offsets.device + 1));
  out.down();
  want.assign(in.host, in.host + n);
  std::sort(want.begin(), want.begin() + 120, [](int a, int b) { return a > b; });
  std::sort(want.begin() + 120, want.end(), [](int a, int b) { return a > b; });
  for (int i = 0; i < n; ++i) CHECK(out[i] == want[i]);
  cub::DoubleBuffer<int> buffers(in.device, other.device);
  DO(cub::DeviceRadixSort::SortKeysDescending(storage, bytes, buffers, n));
  CUDA(cudaMemcpy(out.host, buffers.Current(), n * sizeof(int), cudaMemcpyDeviceToHost));
  CHECK(std::is_sorted(out.host, out.host + n, [](int a, int b) { return a > b; }));
  CUDA(cub::DeviceFor::Bulk(n, Set{out.device}));
  out.down();
  for (int i = 0; i < n; ++i) CHECK(out[i] == 3 * i);
  return ok();
}
