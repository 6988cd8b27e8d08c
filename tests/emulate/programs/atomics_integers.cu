// SPDX-License-Identifier: Apache-2.0
// Integer atomics of every kind, width and scope.
#include "check.cuh"

template <class T>
__global__ void change(T* x) {
  const T t = static_cast<T>(blockIdx.x * blockDim.x + threadIdx.x);
  atomicAdd(&x[0], T(1));
  atomicMin(&x[1], t);
  atomicMax(&x[2], t);
  atomicAnd(&x[3], static_cast<T>(~(T(1) << (threadIdx.x % 8))));
  atomicOr(&x[4], T(1) << (threadIdx.x % 16));
  atomicXor(&x[5], T(1));
  atomicExch(&x[6], T(77));
  atomicCAS(&x[7], T(0), t + 1);
  atomicAdd_block(&x[8 + blockIdx.x], T(2));
  atomicAdd_system(&x[0], T(1));
}
__global__ void change_more(int* x, unsigned* u) {
  atomicSub(&x[0], 2);
  atomicInc(&u[0], 9);
  atomicDec(&u[1], 9);
}

template <class T>
void run() {
  Array<T> x(10);
  x[1] = 1000;
  x[3] = 0xff;
  x.up();
  change<<<2, 33>>>(x.device);
  x.down();
  CHECK(x[0] == 132 && x[1] == 0 && x[2] == 65 && x[3] == 0 && x[4] == 0xffff);
  CHECK(x[5] == 0 && x[6] == 77 && x[7] >= 1 && x[7] <= 66 && x[8] == 66 && x[9] == 66);
}

int main() {
  run<int>();
  run<unsigned>();
  run<unsigned long long>();
  Array<int> x(1);
  Array<unsigned> u(2);
  change_more<<<1, 33>>>(x.device, u.device);
  x.down();
  u.down();
  CHECK(x[0] == -66 && u[0] == 3 && u[1] == 7);
  return ok();
}
