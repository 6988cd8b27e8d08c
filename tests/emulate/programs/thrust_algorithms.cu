// SPDX-License-Identifier: Apache-2.0
// Thrust's vectors and algorithms, on the device and on the host.
#include <thrust/copy.h>
#include <thrust/count.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/extrema.h>
#include <thrust/functional.h>
#include <thrust/generate.h>
#include <thrust/host_vector.h>
#include <thrust/inner_product.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/transform_reduce.h>
#include <thrust/unique.h>

#include "check.cuh"

struct Scale {
  float by;
  __host__ __device__ float operator()(float x, float y) const { return by * x + y; }
};
struct Odd {
  __host__ __device__ bool operator()(int v) const { return v % 2 != 0; }
};

__global__ void triple(int* values, int n) {
  if (static_cast<int>(threadIdx.x) < n) values[threadIdx.x] *= 3;
}

int next() {
  static int state = 7;
  return state = (state * 211 + 17) % 1013;
}

int main() {
  const int n = 300;
  thrust::host_vector<int> host(n);
  thrust::generate(host.begin(), host.end(), next);
  thrust::device_vector<int> values = host;
  long sum = 0;
  int odd = 0;
  for (const int v : host) {
    sum += v;
    odd += v % 2;
  }
  CHECK(thrust::reduce(values.begin(), values.end()) == sum);
  CHECK(thrust::reduce(thrust::device, values.begin(), values.end(), 5, thrust::plus<int>()) ==
        sum + 5);
  CHECK(thrust::reduce(host.begin(), host.end(), 0, thrust::maximum<int>()) ==
        *thrust::max_element(values.begin(), values.end()));
  CHECK(thrust::count_if(values.begin(), values.end(), Odd()) == odd);
  CHECK(thrust::transform_reduce(values.begin(), values.end(), thrust::square<int>(), 0,
                                 thrust::plus<int>()) ==
        thrust::inner_product(values.begin(), values.end(), values.begin(), 0));

  thrust::device_vector<int> order(n), kept(n);
  thrust::sequence(order.begin(), order.end());
  thrust::device_vector<int> keys = values;
  thrust::sort_by_key(keys.begin(), keys.end(), order.begin());
  thrust::host_vector<int> sorted = keys, positions = order;
  for (int i = 0; i < n; ++i) {
    CHECK(i == 0 || sorted[i - 1] <= sorted[i]);
    CHECK(host[positions[i]] == sorted[i]);
  }
  thrust::sort(keys.begin(), keys.end(), thrust::greater<int>());
  CHECK(keys[0] == sorted[n - 1] && keys.back() == sorted[0]);
  const auto end = thrust::copy_if(values.begin(), values.end(), kept.begin(), Odd());
  CHECK(end - kept.begin() == odd);

  thrust::exclusive_scan(values.begin(), values.end(), kept.begin());
  CHECK(kept[0] == 0 && kept[2] == host[0] + host[1]);
  thrust::inclusive_scan(values.begin(), values.end(), values.begin());
  CHECK(values[n - 1] == sum);

  thrust::device_vector<float> x(n, 2.0f), y(n);
  thrust::sequence(y.begin(), y.end(), 1.0f, 0.5f);
  thrust::transform(x.begin(), x.end(), y.begin(), y.begin(), Scale{3});
  CHECK(y[0] == 7 && y[4] == 9);

  int* raw = thrust::raw_pointer_cast(order.data());
  triple<<<1, 4>>>(raw, 4);
  CHECK(order[3] == 3 * positions[3]);
  thrust::device_ptr<int> wrapped(raw);
  thrust::fill(wrapped, wrapped + 3, 8);
  order[1] = 9;
  CHECK(thrust::reduce(thrust::device, raw, raw + 3) == 25);

  thrust::device_vector<int> group(6), one(6, 1), groups(6), sizes(6);
  for (int i = 0; i < 6; ++i) group[i] = i / 4;
  const auto ends =
      thrust::reduce_by_key(group.begin(), group.end(), one.begin(), groups.begin(), sizes.begin());
  CHECK(ends.first - groups.begin() == 2 && sizes[0] == 4 && sizes[1] == 2);
  CHECK(thrust::unique(group.begin(), group.end()) - group.begin() == 2);
  const auto squares =
      thrust::make_transform_iterator(thrust::counting_iterator<int>(1), thrust::square<int>());
  CHECK(thrust::reduce(squares, squares + 4) == 30);
  return ok();
}
