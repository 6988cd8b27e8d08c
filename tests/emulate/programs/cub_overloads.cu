// SPDX-License-Identifier: Apache-2.0
// CUB's collectives in all the forms of its documentation, and what its header brings along.
#include <cub/cub.cuh>

#include "check.cuh"

constexpr int threads = 64, items = 2, n = threads * items;

struct Maximum {
  template <class T>
  __host__ __device__ T operator()(const T& a, const T& b) const {
    return a < b ? b : a;
  }
};
struct Running {
  int total;
  __device__ int operator()(int of_block) {
    const int before = total;
    total += of_block;
    return before;
  }
};

__device__ int input(int i) { return (i * 29) % 53 - 20; }
__device__ int sum_before(int i, int first = 0) {
  int sum = 0;
  for (int j = first; j < i; ++j) sum += input(j);
  return sum;
}
__device__ int max_before(int i, int at_least) {
  for (int j = 0; j < i; ++j) at_least = Maximum()(at_least, input(j));
  return at_least;
}

__global__ void block_scans() {
  using Scan = cub::BlockScan<int, threads>;
  __shared__ typename Scan::TempStorage storage;
  const int t = threadIdx.x;
  const int mine = input(t);
  int out = 0, total = 0;
  const int sum = sum_before(threads);
  Scan(storage).ExclusiveSum(mine, out, total);
  assert(out == sum_before(t) && total == sum);
  __syncthreads();
  Scan(storage).InclusiveSum(mine, out, total);
  assert(out == sum_before(t + 1) && total == sum);
  __syncthreads();
  Scan(storage).ExclusiveScan(mine, out, Maximum());
  assert(t == 0 || out == max_before(t, -99));
  __syncthreads();
  Scan(storage).ExclusiveScan(mine, out, Maximum(), total);
  assert(t == 0 || out == max_before(t, -99));
  assert(total == max_before(threads, -99));
  __syncthreads();
  Scan(storage).ExclusiveScan(mine, out, 7, Maximum(), total);
  assert(out == max_before(t, 7) && total == max_before(threads, -99));
  __syncthreads();
  Running running{100};
  Scan(storage).ExclusiveSum(mine, out, running);
  assert(out == 100 + sum_before(t));
  __syncthreads();
  Scan(storage).InclusiveSum(mine, out, running);
  assert(out == 100 + sum + sum_before(t + 1));
  __syncthreads();
  int in[items] = {input(2 * t), input(2 * t + 1)}, outs[items];
  running = {5};
  Scan(storage).ExclusiveSum(in, outs, running);
  assert(outs[0] == 5 + sum_before(2 * t) && outs[1] == 5 + sum_before(2 * t + 1));
  __syncthreads();
  Scan(storage).InclusiveScan(in, in, Maximum(), total);
  assert(in[1] == max_before(2 * t + 2, -99) && total == max_before(n, -99));
  __syncthreads();
  Scan().InclusiveSum(mine, out);  // in storage of its own
  assert(out == sum_before(t + 1));
}

__global__ void warps() {
  using Reduce = cub::WarpReduce<int>;
  using Scan = cub::WarpScan<int>;
  __shared__ typename Reduce::TempStorage of_reduce[threads / 32];
  __shared__ typename Scan::TempStorage of_scan[threads / 32];
  const int t = threadIdx.x, warp = t / 32, lane = t % 32, first = 32 * warp;
  const int mine = input(t);
  // Segments begin at lanes 0, 5, 6 and 20.
  const bool head = lane == 5 || lane == 6 || lane == 20;
  const bool tail = lane == 4 || lane == 5 || lane == 19;
  const int end = lane < 5 ? 5 : lane < 6 ? 6 : lane < 20 ? 20 : 32;
  const int sum = Reduce(of_reduce[warp]).HeadSegmentedSum(mine, head);
  if (head || lane == 0) assert(sum == sum_before(first + end, t));
  __syncwarp();
  const int again = Reduce(of_reduce[warp]).TailSegmentedSum(mine, tail);
  if (head || lane == 0) assert(again == sum_before(first + end, t));
  int inclusive = 0, exclusive = 0, total = 0;
  Scan(of_scan[warp]).Scan(mine, inclusive, exclusive, Maximum());
  int most = -99;
  for (int i = first; i < t; ++i) most = Maximum()(most, input(i));
  assert(lane == 0 || exclusive == most);
  assert(inclusive == Maximum()(most, mine));
  __syncwarp();
  Scan(of_scan[warp]).ExclusiveSum(mine, exclusive, total);
  assert(exclusive == sum_before(t, first) && total == sum_before(first + 32, first));
}

__global__ void neighbors() {
  using Flags = cub::BlockDiscontinuity<int, threads>;
  using Differences = cub::BlockAdjacentDifference<int, threads>;
  using Histogram = cub::BlockHistogram<unsigned char, threads, items, 8>;
  using Sort = cub::BlockMergeSort<int, threads, items, int>;
  __shared__ union {
    typename Flags::TempStorage flags;
    typename Differences::TempStorage differences;
    typename Histogram::TempStorage histogram;
    typename Sort::TempStorage sort;
  } storage;
  __shared__ unsigned bins[8];
  const int t = threadIdx.x;
  int in[items] = {2 * t / 3, (2 * t + 1) / 3}, flags[items], out[items];
  Flags(storage.flags).FlagHeads(flags, in, [](int a, int b) { return a != b; });
  for (int i = 0; i < items; ++i) assert(flags[i] == ((2 * t + i) % 3 == 0));
  __syncthreads();
  Differences(storage.differences).SubtractLeft(in, out, [](int a, int b) { return a - b; });
  for (int i = 0; i < items; ++i) assert(out[i] == (t + i > 0 && (2 * t + i) % 3 == 0));
  __syncthreads();
  unsigned char classes[items] = {static_cast<unsigned char>(t % 8), 3};
  Histogram(storage.histogram).Histogram(classes, bins);
  __syncthreads();
  if (t < 8) assert(bins[t] == threads / 8 + (t == 3 ? threads : 0));
  int keys[items] = {(2 * t * 7) % 10, (2 * t * 7 + 7) % 10}, values[items] = {2 * t, 2 * t + 1};
  Sort(storage.sort).Sort(keys, values, [](int a, int b) { return a < b; });
  assert(keys[0] <= keys[1] && (keys[0] < keys[1] || values[0] < values[1]));
  assert(keys[0] == values[0] * 7 % 10 && keys[1] == values[1] * 7 % 10);
}

__global__ void small_numbers(nv_bfloat16* a, __half* b) {
  *a = __float2bfloat16(1.5f);
  *b = __float2half(2.5f);
}

int main() {
  const auto start = std::chrono::steady_clock::now();
  block_scans<<<1, threads>>>();
  warps<<<1, threads>>>();
  neighbors<<<1, threads>>>();
  Array<nv_bfloat16> a(1);
  Array<__half> b(1);
  small_numbers<<<1, 1>>>(a.device, b.device);
  a.down();
  b.down();
  CHECK(static_cast<float>(a[0]) == 1.5f && static_cast<float>(b[0]) == 2.5f);
  CHECK(std::chrono::steady_clock::now() >= start);
  return ok();
}
