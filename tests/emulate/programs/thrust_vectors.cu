// SPDX-License-Identifier: Apache-2.0
// Thrust's vectors: insertions and removals, and memory that both sides use.
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/host_vector.h>
#include <thrust/reduce.h>
#include <thrust/transform.h>
#include <thrust/universal_vector.h>

#include "check.cuh"

struct Scale {
  float by;
  __host__ __device__ float operator()(float x, float y) const { return by * x + y; }
};
__global__ void increment(float* values, int n) {
  if (threadIdx.x < n) values[threadIdx.x] += 1;
}

int main() {
  thrust::device_vector<int> numbers(3, 7);
  auto at = numbers.insert(numbers.begin() + 1, 5);
  CHECK(at - numbers.begin() == 1);
  at = numbers.erase(numbers.begin());
  CHECK(at == numbers.begin());
  thrust::host_vector<int> host = numbers;
  CHECK(host.size() == 3 && host[0] == 5 && host[1] == 7);
  numbers.insert(numbers.end(), host.begin(), host.end());
  numbers.insert(numbers.begin(), 2, 1);
  CHECK(numbers.size() == 8 && numbers[0] == 1 && numbers[2] == 5 && numbers[5] == 5);
  numbers.assign(host.begin() + 1, host.end());
  CHECK(numbers.size() == 2 && numbers.capacity() >= 2);

  thrust::universal_vector<float> both(10, 1.0f);
  thrust::device_vector<float> other(10, 2.0f);
  increment<<<1, 32>>>(thrust::raw_pointer_cast(both.data()), 10);
  CUDA(cudaDeviceSynchronize());
  both[3] = 4;
  thrust::transform(thrust::device, both.begin(), both.end(), other.begin(), other.begin(),
                    Scale{3});
  CHECK(thrust::reduce(other.begin(), other.end(), 0.0f) == 9 * 8 + 14);
  return ok();
}
