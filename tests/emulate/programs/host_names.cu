// SPDX-License-Identifier: Apache-2.0
// Names of functions of the host that mean something else in device functions, which nvcc takes.
#include "check.cuh"

int overloaded(int x) { return x; }
__device__ int overloaded(float x) { return static_cast<int>(x) + 1; }
__device__ int declared(int x);
int declared(int x);
int in_lambda(int x) { return x; }
int pointed_to(int x) { return x; }
int of_class(int x) { return x; }
int in_template(int x) { return x; }
int not_evaluated(int x) { return x; }
#define BOTH __host__ __device__ inline
BOTH int through_macro(int x) { return x + 2; }
constexpr int always(int x) { return x + 3; }
template <class T>
__host__ __device__ T of_any(T x) {
  return x + 4;
}
namespace other {
int same_name(int x) { return x; }
}  // namespace other
__device__ int same_name(int x) { return x + 5; }
struct Adder {
  int value;
  __host__ __device__ int of_class(int x) const { return x + value; }
};
typedef int (*Function)(int);
__device__ int plus_seven(int x) { return x + 7; }
template <class T>
__global__ void never_launched(T* out) {
  *out = in_template(*out);
}

__device__ int called(Function pointed_to, int x) { return pointed_to(x); }
__global__ void kernel(int* out) {
  const auto in_lambda = [](int x) { return x + 8; };
  out[0] = overloaded(1.0f);
  out[1] = through_macro(1);
  out[2] = of_any(1);
  out[3] = same_name(1);
  out[4] = Adder{6}.of_class(1);
  out[5] = called(plus_seven, 1);
  out[6] = in_lambda(1);
  out[7] = sizeof(not_evaluated(1));
  out[8] = declared(1);
}
__device__ int declared(int x) { return x + 9; }

int main() {
  Array<int> out(9);
  kernel<<<1, 1>>>(out.device);
  out.down();
  const int want[] = {2, 3, 5, 6, 7, 8, 9, 4, 10};
  for (int i = 0; i < 9; ++i) CHECK(out[i] == want[i]);
  CHECK(overloaded(1) == 1 && in_lambda(1) == 1 && pointed_to(1) == 1 && of_class(1) == 1);
  CHECK(in_template(1) == 1 && not_evaluated(1) == 1 && other::same_name(1) == 1);
  CHECK(always(1) == 4 && through_macro(2) == 4);
  return ok();
}
