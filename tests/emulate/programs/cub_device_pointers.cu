// SPDX-License-Identifier: Apache-2.0
// CUB's algorithms of whole arrays on iterators and pointers of Thrust's device vectors.
#include <cub/cub.cuh>
#include <thrust/device_vector.h>

#include "check.cuh"

int main() {
  constexpr int n = 100;
  thrust::device_vector<int> values(n, 2), out(1);
  size_t bytes = 0;
  CUDA(cub::DeviceReduce::Sum(nullptr, bytes, values.begin(), out.begin(), n));
  thrust::device_vector<char> room(bytes);
  void* const storage = thrust::raw_pointer_cast(room.data());
  CUDA(cub::DeviceReduce::Sum(storage, bytes, values.begin(), out.begin(), n));
  CHECK(out[0] == 200);
  CUDA(cub::DeviceReduce::Max(storage, bytes, values.data(), out.data(), n));
  CHECK(out[0] == 2);
  CUDA(cub::DeviceScan::InclusiveSum(storage, bytes, values.begin(), values.begin(), n));
  CHECK(values[n - 1] == 200);
  return ok();
}
