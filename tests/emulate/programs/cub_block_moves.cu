// SPDX-License-Identifier: Apache-2.0
// CUB's collectives of a block of three dimensions, with values that tell each thread from the
// next: loads and stores of parts, exchanges, sorts by some bits, scans and reductions that do not
// commute.
#include <cub/cub.cuh>

#include "check.cuh"

constexpr int size_x = 8, size_y = 4, size_z = 3, threads = 96, items = 2, all = threads * items;

__device__ int me() { return threadIdx.x + size_x * (threadIdx.y + size_y * threadIdx.z); }

/// x -> scale x + shift, one after the other: order matters. Exact modulo 2^32.
struct Map {
  unsigned scale, shift;
};
struct Then {
  __host__ __device__ Map operator()(const Map& a, const Map& b) const {
    return {a.scale * b.scale, a.shift * b.scale + b.shift};
  }
};
__host__ __device__ Map map_of(int i) { return {2u * i + 3, 7u * i + 1}; }

__global__ void moves(const int* in, int* out) {
  using Load = cub::BlockLoad<int, size_x, items, cub::BLOCK_LOAD_STRIPED, size_y, size_z>;
  using Store =
      cub::BlockStore<int, size_x, items, cub::BLOCK_STORE_WARP_TRANSPOSE, size_y, size_z>;
  using Exchange = cub::BlockExchange<int, size_x, items, false, size_y, size_z>;
  __shared__ Load::TempStorage load;
  __shared__ Store::TempStorage store;
  __shared__ Exchange::TempStorage exchange;
  int mine[items], turned[items], ranks[items];
  Load(load).Load(in, mine, all - 5, -1);  // item i is that of i * threads + me
  for (int i = 0; i < items; ++i) out[i * threads + me()] = mine[i];
  Exchange(exchange).StripedToBlocked(mine, turned);
  Store(store).Store(out + all, turned);
  __syncthreads();
  Exchange(exchange).BlockedToStriped(turned, mine);
  for (int i = 0; i < items; ++i) out[2 * all + i * threads + me()] = mine[i];
  for (int i = 0; i < items; ++i) ranks[i] = all - 1 - (me() * items + i);
  __syncthreads();
  Exchange(exchange).ScatterToBlocked(turned, mine, ranks);
  Store(store).Store(out + 3 * all, mine, all - 7);
  __syncthreads();
  Exchange(exchange).ScatterToStriped(turned, mine, ranks);
  for (int i = 0; i < items; ++i) out[4 * all + i * threads + me()] = mine[i];
}

__global__ void orders(const int* in, int* out, Map* maps) {
  using Sort = cub::BlockRadixSort<int, size_x, items, cub::NullType, 4, true,
                                   cub::BLOCK_SCAN_WARP_SCANS, 0, size_y, size_z>;
  using Reduce = cub::BlockReduce<Map, size_x, cub::BLOCK_REDUCE_RAKING, size_y, size_z>;
  using Scan = cub::BlockScan<Map, size_x, cub::BLOCK_SCAN_RAKING, size_y, size_z>;
  __shared__ union {
    Sort::TempStorage sort;
    Reduce::TempStorage reduce;
    Scan::TempStorage scan;
  } storage;
  int keys[items];
  for (int i = 0; i < items; ++i) keys[i] = in[me() * items + i];
  Sort(storage.sort).SortBlockedToStriped(keys);
  for (int i = 0; i < items; ++i) out[i * threads + me()] = keys[i];
  for (int i = 0; i < items; ++i) keys[i] = in[me() * items + i];
  Sort(storage.sort).Sort(keys, 2, 5);  // by those bits alone, else as they came
  for (int i = 0; i < items; ++i) out[all + me() * items + i] = keys[i];
  const Map mine = map_of(me());
  const Map whole = Reduce(storage.reduce).Reduce(mine, Then());
  __syncthreads();
  const Map some = Reduce(storage.reduce).Reduce(mine, Then(), 41);
  if (me() == 0) maps[0] = whole;
  if (me() == 0) maps[1] = some;
  __syncthreads();
  Map to_here, before, last;
  Scan(storage.scan).InclusiveScan(mine, to_here, Then(), last);
  if (me() == 17) maps[2] = last;
  maps[3 + me()] = to_here;
  __syncthreads();
  Scan(storage.scan).ExclusiveScan(mine, before, Map{5, 9}, Then());
  maps[3 + threads + me()] = before;
  __syncthreads();
  Map several[items] = {mine, map_of(me() + 1000)};
  Scan(storage.scan).InclusiveScan(several, several, Then());
  for (int i = 0; i < items; ++i) maps[3 + 2 * threads + me() * items + i] = several[i];
}

__global__ void warps(int* out) {
  using Reduce = cub::WarpReduce<int>;
  using Scan = cub::WarpScan<int, 8>;
  __shared__ Reduce::TempStorage reduce;
  __shared__ Scan::TempStorage scan[4];
  const int t = threadIdx.x, value = (t * 7) % 32 + 1;  // 1 .. 32, each once
  const int most = Reduce(reduce).Max(value), least = Reduce(reduce).Min(value);
  const int some = Reduce(reduce).Sum(value, 9);
  if (t == 0) out[0] = most;
  if (t == 0) out[1] = least;
  if (t == 0) out[2] = some;
  int to_here, before, total;
  Scan(scan[t / 8]).InclusiveSum(value, to_here, total);
  out[3 + t] = to_here;
  CHECK(total == Scan(scan[t / 8]).Broadcast(to_here, 7));
  Scan(scan[t / 8]).ExclusiveScan(value, before, 5, cub::Max(), total);
  out[35 + t] = before;
  out[67 + t] = total;
}

bool same(const Map& a, const Map& b) { return a.scale == b.scale && a.shift == b.shift; }

void check_moves() {
  Array<int> in(all), out(5 * all);
  for (int i = 0; i < all; ++i) in[i] = 10 + i;
  in.up();
  moves<<<1, dim3(size_x, size_y, size_z)>>>(in.device, out.device);
  out.down();
  for (int i = 0; i < all; ++i) {
    const int loaded = i < all - 5 ? in[i] : -1,
              turned = all - 1 - i < all - 5 ? in[all - 1 - i] : -1;
    CHECK(out[i] == loaded);
    CHECK(out[all + i] == loaded);
    CHECK(out[2 * all + i] == loaded);
    CHECK(out[3 * all + i] == (i < all - 7 ? turned : 0));
    CHECK(out[4 * all + i] == turned);
  }
}

void check_orders() {
  Array<int> in(all), out(2 * all);
  Array<Map> maps(3 + 4 * threads);
  for (int i = 0; i < all; ++i) in[i] = (i * 83) % 211 - 100;
  in.up();
  orders<<<1, dim3(size_x, size_y, size_z)>>>(in.device, out.device, maps.device);
  out.down();
  maps.down();
  long sum = 0;
  for (int i = 0; i < all; ++i) {
    CHECK(i == 0 || out[i - 1] < out[i]);
    sum += out[i] - in[i];
  }
  CHECK(sum == 0);
  int at = 0;
  for (int digit = 0; digit < 8; ++digit) {
    for (int i = 0; i < all; ++i) {
      if ((in[i] >> 2 & 7) == digit) CHECK(out[all + at++] == in[i]);
    }
  }
  Map whole = map_of(0), before{5, 9};
  for (int i = 0; i < threads; ++i) {
    if (i > 0) whole = Then()(whole, map_of(i));
    if (i == 40) CHECK(same(maps[1], whole));
    CHECK(same(maps[3 + i], whole));
    CHECK(same(maps[3 + threads + i], before));
    before = Then()(before, map_of(i));
  }
  CHECK(same(maps[0], whole) && same(maps[2], whole));
  Map to_here{1, 0};
  for (int i = 0; i < all; ++i) {
    to_here = Then()(to_here, map_of(i / 2 + (i % 2) * 1000));
    CHECK(same(maps[3 + 2 * threads + i], to_here));
  }
}

int main() {
  check_moves();
  check_orders();
  Array<int> out(99);
  warps<<<1, 32>>>(out.device);
  out.down();
  int nine = 0, sum = 0, most = 5;
  for (int i = 0; i < 32; ++i) {
    const int value = (i * 7) % 32 + 1;
    if (i < 9) nine += value;
    if (i % 8 == 0) sum = 0, most = 5;
    CHECK(out[35 + i] == most);
    CHECK(out[3 + i] == (sum += value));
    most = most < value ? value : most;
    int of_eight = 0;
    for (int k = i / 8 * 8; k < i / 8 * 8 + 8; ++k) of_eight = std::max(of_eight, (k * 7) % 32 + 1);
    CHECK(out[67 + i] == of_eight);
  }
  CHECK(out[0] == 32 && out[1] == 1 && out[2] == nine);
  return ok();
}
