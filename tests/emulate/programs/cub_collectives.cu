// SPDX-License-Identifier: Apache-2.0
// CUB's collectives of a warp and of a block.
#include <cub/cub.cuh>

#include "check.cuh"

constexpr int threads = 96, items = 3;

template <class T>
__global__ void reduce(const T* in, T* out) {
  using BlockReduce = cub::BlockReduce<T, threads>;
  using WarpReduce = cub::WarpReduce<T, 16>;
  __shared__ typename BlockReduce::TempStorage storage;
  __shared__ typename WarpReduce::TempStorage of_warp[threads / 16];
  const T value = in[threadIdx.x];
  const T sum = BlockReduce(storage).Sum(value);
  __syncthreads();
  const T most = BlockReduce(storage).Reduce(value, cub::Max());
  __syncthreads();
  const T some = BlockReduce(storage).Sum(value, 70);
  __syncthreads();
  T several[2] = {value, value};
  const T twice = BlockReduce(storage).Sum(several);
  if (threadIdx.x == 0) {
    out[0] = sum;
    out[1] = most;
    out[2] = some;
    out[3] = twice;
  }
  const T part = WarpReduce(of_warp[threadIdx.x / 16]).Sum(value);
  if (threadIdx.x % 16 == 0) out[4 + threadIdx.x / 16] = part;
}

__global__ void scan(const int* in, int* out, int* totals) {
  using BlockScan = cub::BlockScan<int, threads>;
  using BlockLoad = cub::BlockLoad<int, threads, items, cub::BLOCK_LOAD_TRANSPOSE>;
  using BlockStore = cub::BlockStore<int, threads, items, cub::BLOCK_STORE_STRIPED>;
  __shared__ union {
    BlockScan::TempStorage scan;
    BlockLoad::TempStorage load;
    BlockStore::TempStorage store;
  } storage;
  int values[items], total;
  BlockLoad(storage.load).Load(in, values);
  __syncthreads();
  BlockScan(storage.scan).ExclusiveSum(values, values, total);
  for (int i = 0; i < items; ++i) out[threadIdx.x * items + i] = values[i];
  if (threadIdx.x == 5) totals[0] = total;
  __syncthreads();
  int one = in[threadIdx.x], up_to_here;
  BlockScan(storage.scan).InclusiveScan(one, up_to_here, cub::Max(), total);
  if (threadIdx.x == threads - 1) totals[1] = up_to_here;
  if (threadIdx.x == 7) totals[2] = total;
  int lanes;
  __shared__ cub::WarpScan<int>::TempStorage of_warp[threads / 32];
  cub::WarpScan<int>(of_warp[threadIdx.x / 32]).ExclusiveSum(1, lanes);
  CHECK(lanes == static_cast<int>(threadIdx.x % 32));
}

__global__ void sort(float* keys, int* values) {
  using Sort = cub::BlockRadixSort<float, threads, items, int>;
  __shared__ Sort::TempStorage storage;
  float mine[items];
  int theirs[items];
  for (int i = 0; i < items; ++i) {
    mine[i] = keys[threadIdx.x * items + i];
    theirs[i] = threadIdx.x * items + i;
  }
  Sort(storage).SortDescending(mine, theirs);
  for (int i = 0; i < items; ++i) {
    keys[threadIdx.x * items + i] = mine[i];
    values[threadIdx.x * items + i] = theirs[i];
  }
}

template <class T>
void check_reduce() {
  Array<T> in(threads), out(4 + threads / 16);
  T sum = 0, some = 0;
  for (int i = 0; i < threads; ++i) {
    in[i] = static_cast<T>((i * 37) % 101);
    sum += in[i];
    if (i < 70) some += in[i];
  }
  in.up();
  reduce<<<1, threads>>>(in.device, out.device);
  out.down();
  CHECK(out[0] == sum && out[1] == 100 && out[2] == some && out[3] == 2 * sum);
  for (int group = 0; group < threads / 16; ++group) {
    T part = 0;
    for (int i = 0; i < 16; ++i) part += in[16 * group + i];
    CHECK(out[4 + group] == part);
  }
}

int main() {
  check_reduce<int>();
  check_reduce<double>();
  Array<int> in(threads * items), out(threads * items), totals(3);
  int most = 0;
  for (int i = 0; i < in.size; ++i) {
    in[i] = (i * 29) % 53;
    if (i < threads && in[i] > most) most = in[i];
  }
  in.up();
  scan<<<1, threads>>>(in.device, out.device, totals.device);
  out.down();
  totals.down();
  int sum = 0;
  for (int i = 0; i < in.size; ++i) {
    CHECK(out[i] == sum);
    sum += in[i];
  }
  CHECK(totals[0] == sum && totals[1] == most && totals[2] == most);
  Array<float> keys(threads * items);
  for (int i = 0; i < keys.size; ++i) keys[i] = static_cast<float>((i * 71) % 113) - 50.5f;
  keys.up();
  sort<<<1, threads>>>(keys.device, out.device);
  keys.down();
  out.down();
  for (int i = 0; i < keys.size; ++i) {
    CHECK(keys[i] == static_cast<float>((out[i] * 71) % 113) - 50.5f);
    CHECK(i == 0 || keys[i - 1] >= keys[i]);
    CHECK(i == 0 || keys[i - 1] > keys[i] || out[i - 1] < out[i]);  // equal ones in their order
  }
  return ok();
}
