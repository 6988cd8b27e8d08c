// SPDX-License-Identifier: Apache-2.0
// Vector addition in Metal: elementwise / thread per element. The CUDA and OpenCL versions are in
// rung/ops/elementwise/{cuda,opencl}/; docs/opencl.md has all three.
#include <metal_stdlib>

using namespace metal;

kernel void vector_add(device const float* x [[buffer(0)]], device const float* y [[buffer(1)]],
                       device float* z [[buffer(2)]], constant uint& n [[buffer(3)]],
                       uint i [[thread_position_in_grid]]) {
  if (i >= n) return;  // the last threadgroup has more threads than elements are left
  z[i] = x[i] + y[i];
}
