// SPDX-License-Identifier: Apache-2.0
// Launches in every spelling: templates with commas and shifts, macros, function pointers, several
// lines, streams, braces, kernels in namespaces and behind references.
// Compiled alone: it names what is of the whole file.
#include "check.cuh"

namespace outer {
namespace inner {
__global__ void set(int* p, int v) { p[threadIdx.x] = v; }
template <class T>
__global__ void set_deduced(T* p, T v) {
  p[threadIdx.x] = v;
}
}  // namespace inner
}  // namespace outer

template <int A, int B, class T>
__global__ void set_many(T* p) {
  p[threadIdx.x] = A + B;
}
template <bool Greater>
__global__ void set_flag(int* p) {
  p[threadIdx.x] = Greater;
}
template <class A, class B>
struct Pair {
  static constexpr int value = sizeof(A) + sizeof(B);
};
template <class P>
__global__ void set_pair(int* p) {
  p[threadIdx.x] = P::value;
}
__global__ void set_default(int* p, int v) { p[threadIdx.x] = v; }
__global__ void set_null(int* p, const int* from, void* other) {
  p[threadIdx.x] = from == nullptr && other == nullptr ? 77 : 0;
}

#define LAUNCH(kernel, grid, block, ...) kernel<<<grid, block>>>(__VA_ARGS__)
#define LAUNCH_TWICE(kernel, p, v) \
  do {                             \
    kernel<<<1, 4>>>(p, v);        \
    kernel<<<1, 4>>>(p, v + 1);    \
  } while (0)

typedef void (*Kernel)(int*, int);

static Array<int>* result;
static void expect(int value) {
  result->down();
  for (int i = 0; i < 4; ++i) CHECK((*result)[i] == value);
}

template <class F>
void launch_it(F kernel, int* p, int v) {
  kernel<<<1, 4>>>(p, v);
}
template <int... N>
void launch_pack(int* p) {
  (set_many<N, 0><<<1, 4>>>(p), ...);
}

int main() {
  Array<int> array(4);
  result = &array;
  int* p = array.device;
  outer::inner::set<<<1, 4>>>(p, 1);
  expect(1);
  ::outer::inner::set<<<dim3(1), dim3(4, 1)>>>(p, 2);
  expect(2);
  outer::inner::set_deduced<<<1, 4>>>(p, 3);
  expect(3);
  outer::inner::set_deduced<int><<<1, 4, 0>>>(p, 4);
  expect(4);
  set_many<1, 2><<<1, 4, 0, 0>>>(p);
  expect(3);
  set_many<(16 >> 2), 1 << 3><<<1, 4>>>(p);
  expect(12);
  set_flag<(3 > 2)><<<1, 4>>>(p);
  expect(1);
  set_pair<Pair<Pair<int, char>, double>><<<1, 4>>>(p);
  expect(9);
  LAUNCH((set_many<5, 6>), 1, 4, p);
  expect(11);
  LAUNCH(set_default, 1, 4, p, 12);
  expect(12);
  LAUNCH_TWICE(set_default, p, 20);
  expect(21);
  Kernel table[] = {set_default, outer::inner::set};
  for (int i = 0; i < 2; ++i) {
    table[i]<<<1, 4>>>(p, 30 + i);
    expect(30 + i);
  }
  Kernel pointer = &set_default;
  (*pointer)<<<1, 4>>>(p, 40);
  expect(40);
  launch_it(outer::inner::set, p, 41);
  expect(41);
  launch_pack<1, 2, 3>(p);
  expect(3);
  set_default<<<dim3{1, 1, 1}, {4}>>>(p, [] { return 50; }());
  expect(50);
  set_null<<<1, 4>>>(p, NULL, 0);
  expect(77);
  int evaluated = 0;
  set_default<<<1, 4>>>(p, ++evaluated);
  expect(1);
  CHECK(evaluated == 1);
  if (evaluated)
    set_default<<<1, 4>>>(p, 60);
  else
    set_default<<<1, 4>>>(p, 61);
  expect(60);
  bool on = 1 < 2, off = 3 > 4;  // no launch
  CHECK(on && !off);
  return ok();
}
