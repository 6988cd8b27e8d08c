// SPDX-License-Identifier: Apache-2.0
// Thrust's asynchronous algorithms: their events and futures, in order.
#include <thrust/async/copy.h>
#include <thrust/async/for_each.h>
#include <thrust/async/reduce.h>
#include <thrust/async/scan.h>
#include <thrust/async/sort.h>
#include <thrust/async/transform.h>
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>

#include "check.cuh"

struct Square {
  __host__ __device__ int operator()(int x) const { return x * x; }
};
struct Clear {
  __host__ __device__ void operator()(int& x) const { x = 0; }
};

int main() {
  thrust::host_vector<int> numbers(100);
  for (int i = 0; i < 100; ++i) numbers[i] = (37 * i) % 100;
  thrust::device_vector<int> data(100), squares(100), sums(100), total(1);
  thrust::device_event copied = thrust::async::copy(thrust::host, thrust::device, numbers.begin(),
                                                    numbers.end(), data.begin());
  CHECK(copied.valid());
  auto sorted = thrust::async::sort(thrust::device.after(copied), data.begin(), data.end());
  sorted.wait();
  for (int i = 0; i < 100; ++i) CHECK(data[i] == i);
  thrust::async::sort(thrust::device, data.begin(), data.end(), thrust::greater<int>()).wait();
  CHECK(data[0] == 99);
  auto squared = thrust::async::transform(data.begin(), data.end(), squares.begin(), Square());
  auto scanned = thrust::async::inclusive_scan(thrust::device.after(squared), data.begin(),
                                               data.end(), sums.begin());
  thrust::device_future<int> sum = thrust::async::reduce(data.begin(), data.end());
  auto most =
      thrust::async::reduce(thrust::device, data.begin(), data.end(), -1, thrust::maximum<int>());
  CHECK(sum.ready() && sum.get() == 4950 && most.get() == 99);
  CHECK(sum.extract() == 4950 && !sum.valid());
  thrust::async::reduce_into(data.begin(), data.end(), total.begin(), 50).wait();
  auto all = thrust::when_all(squared, scanned);
  all.wait();
  CHECK(total[0] == 5000 && squares[0] == 99 * 99 && sums[99] == 4950);
  thrust::async::for_each(data.begin(), data.end(), Clear()).wait();
  CHECK(thrust::async::reduce(data.begin(), data.end(), 7).get() == 7);
  const thrust::device_event none;
  CHECK(!none.valid());
  return ok();
}
