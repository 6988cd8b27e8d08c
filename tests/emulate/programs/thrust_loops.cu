// SPDX-License-Identifier: Apache-2.0
// Thrust's algorithms that thrust_algorithms.cu leaves out, with operations whose order matters, on
// the device and on the host, each against the loop that it means; and its vectors' own functions.
#include <thrust/adjacent_difference.h>
#include <thrust/binary_search.h>
#include <thrust/copy.h>
#include <thrust/count.h>
#include <thrust/device_free.h>
#include <thrust/device_malloc.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/extrema.h>
#include <thrust/fill.h>
#include <thrust/for_each.h>
#include <thrust/functional.h>
#include <thrust/gather.h>
#include <thrust/host_vector.h>
#include <thrust/inner_product.h>
#include <thrust/iterator/constant_iterator.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/reduce.h>
#include <thrust/remove.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/unique.h>

#include <algorithm>
#include <vector>

#include "check.cuh"

constexpr int n = 200;

struct Negative {
  __host__ __device__ bool operator()(int v) const { return v < 0; }
};
struct Mix {  // neither commutes nor associates
  __host__ __device__ int operator()(int a, int b) const { return 3 * a - b; }
};
struct AddTo {
  int* to;
  __host__ __device__ void operator()(int v) const { to[v % 7] += v; }
};
struct TimesThree {
  __host__ __device__ int operator()(int, int i) const { return 3 * i % n; }
};
struct LastDigit {
  __host__ __device__ bool operator()(int a, int b) const { return a % 10 < b % 10; }
};

template <class Vector>
std::vector<int> list(const Vector& v) {
  thrust::host_vector<int> host(v.size());
  thrust::copy(v.begin(), v.end(), host.begin());
  return std::vector<int>(host.begin(), host.end());
}

/// All of them over this kind of vector, `sums` in the same memory.
template <class Vector>
void check_all(int* sums) {
  std::vector<int> in(n), expected(n);
  for (int i = 0; i < n; ++i) in[i] = (i * 577) % 211 - 60;
  const Vector values(in.begin(), in.end());
  Vector out(n);
  CHECK(list(values) == in);

  int running = 4;
  for (int i = 0; i < n; ++i) {
    expected[i] = running;
    running = Mix()(running, in[i] % 3);
  }
  Vector small(n);
  thrust::transform(values.begin(), values.end(), thrust::make_constant_iterator(3), small.begin(),
                    thrust::modulus<int>());
  thrust::exclusive_scan(small.begin(), small.end(), out.begin(), 4, Mix());
  CHECK(list(out) == expected);
  for (int i = 0; i < n; ++i)
    running = expected[i] = i == 0 ? in[0] % 3 : Mix()(running, in[i] % 3);
  thrust::inclusive_scan(small.begin(), small.end(), small.begin(), Mix());
  CHECK(list(small) == expected);

  for (int i = 0; i < n; ++i) expected[i] = i == 0 ? in[0] : in[i] - in[i - 1];
  thrust::adjacent_difference(values.begin(), values.end(), out.begin());
  CHECK(list(out) == expected);
  out = values;
  for (int i = 0; i < n; ++i) expected[i] = i == 0 ? in[0] : Mix()(in[i], in[i - 1]);
  thrust::adjacent_difference(out.begin(), out.end(), out.begin(), Mix());
  CHECK(list(out) == expected);
  thrust::transform(values.begin(), values.end(), out.begin(), thrust::negate<int>());
  for (int i = 0; i < n; ++i) expected[i] = -in[i];
  CHECK(list(out) == expected);

  CHECK(thrust::count(values.begin(), values.end(), in[5]) ==
        std::count(in.begin(), in.end(), in[5]));
  CHECK(thrust::min_element(values.begin(), values.end()) - values.begin() ==
        std::min_element(in.begin(), in.end()) - in.begin());
  CHECK(thrust::max_element(values.begin(), values.end(), LastDigit()) - values.begin() ==
        std::max_element(in.begin(), in.end(), LastDigit()) - in.begin());
  CHECK(thrust::inner_product(values.begin(), values.end(), values.begin() + 0, 5, Mix(),
                              thrust::minimum<int>()) ==
        std::inner_product(in.begin(), in.end(), in.begin(), 5, Mix(),
                           [](int a, int b) { return a < b ? a : b; }));

  out = values;
  const auto end = thrust::remove_if(out.begin(), out.end(), Negative());
  std::vector<int> kept = in;
  kept.erase(std::remove_if(kept.begin(), kept.end(), Negative()), kept.end());
  CHECK(end - out.begin() == static_cast<long>(kept.size()));
  std::vector<int> rest = list(out);
  CHECK(std::equal(kept.begin(), kept.end(), rest.begin()));

  out = values;
  CHECK(!thrust::is_sorted(out.begin(), out.end()));
  thrust::stable_sort(out.begin(), out.end(), LastDigit());
  expected = in;
  std::stable_sort(expected.begin(), expected.end(), LastDigit());
  CHECK(list(out) == expected);
  CHECK(thrust::is_sorted(out.begin(), out.end(), LastDigit()));
  thrust::sort(out.begin(), out.end());
  CHECK(thrust::is_sorted(out.begin(), out.end()));
  std::sort(expected.begin(), expected.end());
  CHECK(list(out) == expected);

  const Vector wanted(in.begin(), in.begin() + 30);
  Vector low(30), high(30);
  thrust::lower_bound(out.begin(), out.end(), wanted.begin(), wanted.end(), low.begin());
  thrust::upper_bound(out.begin(), out.end(), wanted.begin(), wanted.end(), high.begin());
  const std::vector<int> lows = list(low), highs = list(high);
  for (int i = 0; i < 30; ++i) {
    CHECK(lows[i] == std::lower_bound(expected.begin(), expected.end(), in[i]) - expected.begin());
    CHECK(highs[i] == std::upper_bound(expected.begin(), expected.end(), in[i]) - expected.begin());
  }

  Vector map(n);
  thrust::sequence(map.begin(), map.end(), n - 1, -1);
  thrust::gather(map.begin(), map.end(), values.begin(), out.begin());
  expected.assign(in.rbegin(), in.rend());
  CHECK(list(out) == expected);
  thrust::sort_by_key(map.begin(), map.end(), out.begin());
  CHECK(list(out) == in);
  thrust::stable_sort_by_key(out.begin(), out.end(), map.begin(), LastDigit());
  const std::vector<int> places = list(map), digits = list(out);
  for (int i = 0; i < n; ++i) {
    CHECK(in[places[i]] == digits[i]);
    CHECK(i == 0 || !LastDigit()(digits[i - 1], digits[i]) || digits[i - 1] != digits[i]);
    CHECK(i == 0 || LastDigit()(digits[i - 1], digits[i]) || places[i - 1] < places[i]);
  }

  thrust::fill(out.begin() + 3, out.begin() + 9, -7);
  rest = list(out);
  for (int i = 0; i < n; ++i) CHECK(rest[i] == (i >= 3 && i < 9 ? -7 : digits[i]));
  // The map above is its own inverse: this one is not.
  thrust::transform(map.begin(), map.end(), thrust::counting_iterator<int>(7), map.begin(),
                    TimesThree());
  thrust::gather(map.begin(), map.end(), values.begin(), out.begin());
  rest = list(out);
  for (int i = 0; i < n; ++i) CHECK(rest[i] == in[3 * (7 + i) % n]);
  const thrust::counting_iterator<int> first(0), last(50);
  if constexpr (std::is_same_v<Vector, thrust::host_vector<int>>) {
    thrust::for_each(first, last, AddTo{sums});
  } else {
    cudaStream_t stream;
    CUDA(cudaStreamCreate(&stream));
    thrust::for_each(thrust::cuda::par.on(stream), first, last, AddTo{sums});
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaStreamDestroy(stream));
  }
}

void check_vectors() {
  thrust::device_vector<int> v(3, 5), other;
  v.push_back(9);
  v.resize(6, 2);
  CHECK((list(v) == std::vector<int>{5, 5, 5, 9, 2, 2}));
  v.erase(v.begin() + 1, v.begin() + 3);
  v[0] += 4;
  v.front() -= 1;
  v.pop_back();
  CHECK((list(v) == std::vector<int>{8, 9, 2}));
  other.swap(v);
  CHECK(v.empty() && other.size() == 3 && other.back() == 2);
  v = other;
  v[1] = other[2];
  CHECK(other[1] == 9 && v[1] == 2);
  v.assign(2, 6);
  CHECK((list(v) == std::vector<int>{6, 6}));
  other.clear();
  CHECK(other.size() == 0);
  thrust::device_ptr<int> raw = thrust::device_malloc<int>(4);
  thrust::sequence(raw, raw + 4, 1);
  CHECK(thrust::reduce(raw, raw + 4) == 10);
  *raw = raw[3];
  ++raw;
  CHECK(raw[-1] == 4 && *raw-- == 2 && *raw == 4);
  thrust::device_free(raw);
}

int main() {
  std::vector<int> expected(7);
  for (int i = 0; i < 50; ++i) expected[i % 7] += i;
  std::vector<int> sums(7);
  check_all<thrust::host_vector<int>>(sums.data());
  CHECK(sums == expected);
  Array<int> on_device(7);
  check_all<thrust::device_vector<int>>(on_device.device);
  on_device.down();
  for (int i = 0; i < 7; ++i) CHECK(on_device[i] == expected[i]);
  check_vectors();
  return ok();
}
