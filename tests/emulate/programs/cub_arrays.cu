// SPDX-License-Identifier: Apache-2.0
// CUB's algorithms of whole arrays that cub_device_wide.cu leaves out, each against the loop that
// it means.
#include <cub/cub.cuh>

#include <algorithm>
#include <vector>

#include "check.cuh"

template <class Call>
void with_storage(Call call) {
  size_t bytes = 0;
  CUDA(call(nullptr, bytes));
  void* storage;
  CUDA(cudaMalloc(&storage, bytes));
  CUDA(call(storage, bytes));
  CUDA(cudaFree(storage));
}

/// x -> scale x + shift, one after the other: order matters.
struct Map {
  unsigned scale, shift;
};
struct Then {
  __host__ __device__ Map operator()(const Map& a, const Map& b) const {
    return {a.scale * b.scale, a.shift * b.scale + b.shift};
  }
};
bool same(const Map& a, const Map& b) { return a.scale == b.scale && a.shift == b.shift; }

void check_reductions(Array<int>& in) {
  const int n = in.size;
  Array<int> found(1);
  Array<cub::KeyValuePair<int, int>> place(1);
  with_storage(
      [&](void* s, size_t& b) { return cub::DeviceReduce::Max(s, b, in.device, found.device, n); });
  found.down();
  CHECK(found[0] == *std::max_element(in.host, in.host + n));
  with_storage([&](void* s, size_t& b) {
    return cub::DeviceReduce::ArgMax(s, b, in.device, place.device, n);
  });
  place.down();
  CHECK(place[0].key == std::max_element(in.host, in.host + n) - in.host);  // the first of several
  CHECK(place[0].value == found[0]);
  with_storage([&](void* s, size_t& b) {
    return cub::DeviceReduce::ArgMin(s, b, in.device, place.device, n);
  });
  place.down();
  CHECK(place[0].key == std::min_element(in.host, in.host + n) - in.host);
  CHECK(place[0].value == in[place[0].key]);
  Array<int> begin(5), sums(4);
  for (int i = 0; i < 5; ++i) begin[i] = i == 2 ? 7 : 7 * i;  // the second is empty
  begin.up();
  with_storage([&](void* s, size_t& b) {
    return cub::DeviceSegmentedReduce::Sum(s, b, in.device, sums.device, 4, begin.device,
                                           begin.device + 1);
  });
  sums.down();
  for (int k = 0; k < 4; ++k) {
    int sum = 0;
    for (int i = begin[k]; i < begin[k + 1]; ++i) sum += in[i];
    CHECK(sums[k] == sum);
  }
}

void check_scans() {
  const int n = 70;
  Array<Map> maps(n), scanned(n), whole(1);
  for (int i = 0; i < n; ++i) maps[i] = {2u * i + 3, 7u * i + 1};
  maps.up();
  with_storage([&](void* s, size_t& b) {
    return cub::DeviceScan::InclusiveScan(s, b, maps.device, scanned.device, Then(), n);
  });
  scanned.down();
  Map to_here{1, 0};
  for (int i = 0; i < n; ++i) CHECK(same(scanned[i], to_here = Then()(to_here, maps[i])));
  with_storage([&](void* s, size_t& b) {
    return cub::DeviceReduce::Reduce(s, b, maps.device, whole.device, n, Then(), Map{5, 9});
  });
  whole.down();
  CHECK(same(whole[0], Then()(Map{5, 9}, to_here)));
  with_storage([&](void* s, size_t& b) {  // in place
    return cub::DeviceScan::ExclusiveScan(s, b, maps.device, maps.device, Then(), Map{5, 9}, n);
  });
  Map before{5, 9};
  for (int i = 0; i < n; ++i) {
    const Map one = maps[i];
    CUDA(cudaMemcpy(scanned.host, maps.device + i, sizeof(Map), cudaMemcpyDeviceToHost));
    CHECK(same(scanned[0], before));
    before = Then()(before, one);
  }
  cub::ConstantInputIterator<int> three(3);
  Array<int> sums(10);
  with_storage([&](void* s, size_t& b) {
    return cub::DeviceScan::InclusiveSum(s, b, three, sums.device, 10);
  });
  sums.down();
  for (int i = 0; i < 10; ++i) CHECK(sums[i] == 3 * i + 3);
}

template <class Key>
void check_sorts(int begin, int end) {
  const int n = 500;
  Array<Key> keys(n), sorted(n), other(n);
  Array<int> values(n), order(n), other_values(n);
  const bool whole = begin == 0 && end == 8 * sizeof(Key);
  for (int i = 0; i < n; ++i) {
    keys[i] = static_cast<Key>((i * 7919) % 1009) - static_cast<Key>(400);
    // Of which other bits than those differ, too, and some keys alike in those.
    if (!whole) keys[i] = static_cast<Key>((i % 400) * 2654435761u);
    values[i] = i;
  }
  keys.up();
  values.up();
  // Those bits of the key, as it orders.
  const auto digit = [&](int i) {
    if (whole) return static_cast<long long>(keys[i]);
    const auto bits = static_cast<unsigned long long>(static_cast<long long>(keys[i]));
    return static_cast<long long>(bits >> begin & ((1ull << (end - begin)) - 1));
  };
  for (const bool descending : {false, true}) {
    std::vector<int> expected(values.host, values.host + n);
    std::stable_sort(expected.begin(), expected.end(), [&](int a, int b) {
      return descending ? digit(a) > digit(b) : digit(a) < digit(b);
    });
    const auto check = [&](const char* what) {
      sorted.down();
      order.down();
      for (int i = 0; i < n; ++i) {
        if (sorted[i] != keys[expected[i]] || order[i] != expected[i]) {
          std::printf("%s, %d to %d, descending %d: place %d\n", what, begin, end, descending, i);
          std::exit(1);
        }
      }
    };
    CUDA(cudaMemset(order.device, 0, n * sizeof(int)));
    with_storage([&](void* s, size_t& b) {
      return descending
                 ? cub::DeviceRadixSort::SortPairsDescending(
                       s, b, keys.device, sorted.device, values.device, order.device, n, begin, end)
                 : cub::DeviceRadixSort::SortPairs(s, b, keys.device, sorted.device, values.device,
                                                   order.device, n, begin, end);
    });
    check("pairs");
    CUDA(cudaMemset(sorted.device, 0, n * sizeof(Key)));
    with_storage([&](void* s, size_t& b) {
      return descending
                 ? cub::DeviceRadixSort::SortKeysDescending(s, b, keys.device, sorted.device, n,
                                                            begin, end)
                 : cub::DeviceRadixSort::SortKeys(s, b, keys.device, sorted.device, n, begin, end);
    });
    check("keys");
    if (descending) continue;
    CUDA(cudaMemcpy(other.device, keys.device, n * sizeof(Key), cudaMemcpyDeviceToDevice));
    CUDA(cudaMemcpy(other_values.device, values.device, n * sizeof(int), cudaMemcpyDeviceToDevice));
    cub::DoubleBuffer<Key> two(other.device, sorted.device);
    cub::DoubleBuffer<int> two_values(other_values.device, order.device);
    with_storage([&](void* s, size_t& b) {
      return cub::DeviceRadixSort::SortPairs(s, b, two, two_values, n, begin, end);
    });
    CUDA(cudaMemcpy(keys.device, two.Current(), n * sizeof(Key), cudaMemcpyDeviceToDevice));
    CUDA(
        cudaMemcpy(values.device, two_values.Current(), n * sizeof(int), cudaMemcpyDeviceToDevice));
    std::swap(keys.device, sorted.device);  // so that check() reads what came out
    std::swap(values.device, order.device);
    check("buffers");
    keys.up();
    values.up();
  }
}

void check_selections() {
  const int n = 60;
  Array<int> in(n), out(n), lengths(n), found(1);
  for (int i = 0; i < n; ++i) in[i] = i * i / 100;  // runs, from ten long to one
  in.up();
  with_storage([&](void* s, size_t& b) {
    return cub::DeviceRunLengthEncode::Encode(s, b, in.device, out.device, lengths.device,
                                              found.device, n);
  });
  out.down();
  lengths.down();
  found.down();
  int at = 0;
  for (int k = 0; k < found[0]; ++k) {
    for (int i = 0; i < lengths[k]; ++i) CHECK(in[at++] == out[k]);
    CHECK(at == n || in[at] != out[k]);
  }
  CHECK(at == n);
  const int runs = found[0];
  CUDA(cudaMemset(out.device, 0, n * sizeof(int)));
  with_storage([&](void* s, size_t& b) {
    return cub::DeviceSelect::Unique(s, b, in.device, out.device, found.device, n);
  });
  out.down();
  found.down();
  CHECK(found[0] == runs);
  for (int k = 0; k < runs; ++k)
    CHECK(out[k] == (k == 0 ? in[0] : *std::upper_bound(in.host, in.host + n, out[k - 1])));
}

void check_histograms() {
  Array<float> in(9);
  const float values[] = {-1.5f, 0, 0.24f, 0.25f, 0.5f, 0.99f, 1, 7, 0.76f};
  std::copy(values, values + 9, in.host);
  in.up();
  Array<unsigned> bins(4);
  with_storage([&](void* s, size_t& b) {
    return cub::DeviceHistogram::HistogramEven(s, b, in.device, bins.device, 5, 0.0f, 1.0f, 9);
  });
  bins.down();
  CHECK(bins[0] == 2 && bins[1] == 1 && bins[2] == 1 && bins[3] == 2);
  Array<int> whole(100);
  for (int i = 0; i < 100; ++i) whole[i] = i;
  whole.up();
  with_storage([&](void* s, size_t& b) {
    return cub::DeviceHistogram::HistogramEven(s, b, whole.device, bins.device, 4, 10, 40, 100);
  });
  bins.down();
  CHECK(bins[0] == 10 && bins[1] == 10 && bins[2] == 10 && bins[3] == 2);
}

int main() {
  Array<int> in(300);
  for (int i = 0; i < 300; ++i) in[i] = (i * 71) % 101 - 50;
  in.up();
  check_reductions(in);
  check_scans();
  check_sorts<int>(0, 32);
  check_sorts<short>(0, 16);
  check_sorts<float>(0, 32);
  check_sorts<double>(0, 64);
  check_sorts<unsigned>(3, 14);
  check_sorts<int>(5, 13);
  check_selections();
  check_histograms();
  return ok();
}
