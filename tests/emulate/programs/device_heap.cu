// SPDX-License-Identifier: Apache-2.0
// malloc, new and memcpy in kernels; recursion; virtual functions.
#include "check.cuh"

struct Animal {
  __device__ virtual ~Animal() {}
  __device__ virtual int legs() const = 0;
};
struct Bird : Animal {
  __device__ int legs() const override { return 2; }
};
struct Dog : Animal {
  __device__ int legs() const override { return 4; }
};
__device__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

__global__ void use(int* out) {
  const int t = threadIdx.x;
  int* own = static_cast<int*>(malloc(8 * sizeof(int)));
  for (int i = 0; i < 8; ++i) own[i] = t + i;
  int copy[8];
  memcpy(copy, own, sizeof copy);
  free(own);
  Animal* animal = t % 2 ? static_cast<Animal*>(new Dog) : new Bird;
  out[t] = copy[7] + 100 * animal->legs() + fibonacci(10);
  delete animal;
}

int main() {
  Array<int> out(32);
  use<<<1, 32>>>(out.device);
  out.down();
  for (int t = 0; t < 32; ++t) CHECK(out[t] == t + 7 + (t % 2 ? 400 : 200) + 55);
  return ok();
}
