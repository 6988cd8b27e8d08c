// SPDX-License-Identifier: Apache-2.0
// Kernels whose parameters are references: they get the address of what is passed, which has to
// be memory that the device may access.
#include "check.cuh"

struct Item {
  int value;
  int copies = 0;
  Item() : value(0) {}
  Item(const Item& other) : value(other.value), copies(other.copies + 1) {}
};

__global__ void by_reference(Item& item, int more) { item.value += more; }
__global__ void by_value(Item item, int* out) {
  item.value += 100;
  *out = item.value;
}
template <class T>
__global__ void of_any_type(T& sum, const T one, int times) {
  for (int i = 0; i < times; ++i) sum = sum + one;
}

int main() {
  void* memory;
  CUDA(cudaMallocManaged(&memory, sizeof(Item)));
  Item& item = *new (memory) Item;
  int* out;
  CUDA(cudaMallocManaged(&out, 2 * sizeof(int)));
  CHECK(out[0] == 0 && out[1] == 0);  // empty pages
  const int more = 3;
  by_reference<<<1, 1>>>(item, more);
  CUDA(cudaDeviceSynchronize());
  CHECK(item.value == 3 && item.copies == 0);
  by_value<<<1, 1>>>(item, out);
  CUDA(cudaDeviceSynchronize());
  CHECK(item.value == 3 && out[0] == 103);
  of_any_type<<<1, 1>>>(out[1], 2, more);
  CUDA(cudaDeviceSynchronize());
  CHECK(out[1] == 6);
  Item* address = &item;
  int seven = 7;
  void* arguments[] = {&address, &seven};
  CUDA(cudaLaunchKernel(reinterpret_cast<const void*>(by_reference), dim3(1), dim3(1), arguments, 0,
                        nullptr));
  CUDA(cudaDeviceSynchronize());
  CHECK(item.value == 10);
  CUDA(cudaFree(memory));
  CUDA(cudaFree(out));
  return ok();
}
