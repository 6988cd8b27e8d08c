// SPDX-License-Identifier: Apache-2.0
// Objects with virtual functions, made and used on the device.
#include "check.cuh"

struct Shape {
  __device__ virtual float area() const = 0;
  __device__ virtual ~Shape() {}
};
struct Square : Shape {
  float side;
  __device__ explicit Square(float s) : side(s) {}
  __device__ float area() const override { return side * side; }
};
struct Circle : Shape {
  float radius;
  __device__ explicit Circle(float r) : radius(r) {}
  __device__ float area() const override { return 3 * radius * radius; }
};
__global__ void areas(float* out) {
  Shape* shape;
  if (threadIdx.x % 2 == 0) {
    shape = new Square(threadIdx.x);
  } else {
    shape = new Circle(threadIdx.x);
  }
  out[threadIdx.x] = shape->area();
  delete shape;
}

int main() {
  Array<float> out(32);
  areas<<<1, 32>>>(out.device);
  out.down();
  for (int i = 0; i < 32; ++i) CHECK(out[i] == (i % 2 == 0 ? 1 : 3) * i * i);
  return ok();
}
