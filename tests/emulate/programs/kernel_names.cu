// SPDX-License-Identifier: Apache-2.0
// Parameters and variables that are named as the kernel that they belong to, which can be launched
// by its address nonetheless.
#include "check.cuh"

namespace {
namespace inner {
__global__ void sum(const int* in, int* sum) { *sum = in[0] + in[1]; }
template <class T>
__global__ void twice(T* twice, T) {
  *twice *= 2;
}
}  // namespace inner
__global__ void local(int* out) {
  __shared__ int local[2];
  local[threadIdx.x] = 5;
  out[threadIdx.x] = local[threadIdx.x];
}
}  // namespace
extern "C" {
__global__ void named_in_c(int named_in_c, int* out) { *out += named_in_c; }
}

int main() {
  Array<int> in(2), out(2);
  in[0] = 3;
  in[1] = 4;
  in.up();
  inner::sum<<<1, 1>>>(in.device, out.device);
  void* arguments[] = {&in.device, &out.device};
  CUDA(cudaMemset(out.device, 0, sizeof(int)));
  CUDA(cudaLaunchKernel(reinterpret_cast<const void*>(inner::sum), dim3(1), dim3(1), arguments, 0,
                        nullptr));
  inner::twice<<<1, 1>>>(out.device, 0);
  named_in_c<<<1, 1>>>(10, out.device);
  out.down();
  CHECK(out[0] == 24);
  local<<<1, 2>>>(out.device);
  out.down();
  CHECK(out[0] == 5 && out[1] == 5);
  return ok();
}
