// SPDX-License-Identifier: Apache-2.0
// Sizes, alignments and makers of the vector types; operators of the program's own.
// Compiled alone: it declares a type of CUDA's once more.
#include "check.cuh"

__host__ __device__ inline float3 operator+(float3 a, float3 b) {
  return make_float3(a.x + b.x, a.y + b.y, a.z + b.z);
}
__host__ __device__ inline float dot(const float4& a, const float4& b) {
  return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}

static_assert(sizeof(float3) == 12 && alignof(float3) == 4 && sizeof(float4) == 16 &&
              alignof(float4) == 16);
static_assert(sizeof(uchar4) == 4 && alignof(uchar4) == 4 && sizeof(short2) == 4 &&
              alignof(int2) == 8);
static_assert(sizeof(double2) == 16 && alignof(double2) == 16 && sizeof(longlong3) == 24 &&
              sizeof(ulonglong2) == 16);
struct float4;

__global__ void compute(float* out) {
  const float3 s = make_float3(1, 2, 3) + make_float3(4, 5, 6);
  const float4 v = make_float4(1, 2, 3, 4);
  const uchar4 c = make_uchar4(255, 1, 2, 3);
  int2 p = make_int2(3, 4);
  p.x += p.y;
  const dim3 d(2, 3);
  const uint3 u = d;
  out[0] = s.x + 10 * s.y + 100 * s.z;
  out[1] = dot(v, v);
  out[2] = c.x + c.w;
  out[3] = p.x + d.z + u.y;
  double3 e;
  e.x = e.y = e.z = 2;
  const char1 one = make_char1(5);
  out[4] = static_cast<float>(e.x * e.y * e.z) + one.x;
}

int main() {
  Array<float> out(5);
  compute<<<1, 1>>>(out.device);
  out.down();
  CHECK(out[0] == 5 + 70 + 900 && out[1] == 30 && out[2] == 258 && out[3] == 7 + 1 + 3 &&
        out[4] == 13);
  return ok();
}
