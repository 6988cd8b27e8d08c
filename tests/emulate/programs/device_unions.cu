// SPDX-License-Identifier: Apache-2.0
// Unions, bit fields and enumerations in device memory.
#include "check.cuh"

enum class Kind : unsigned char { number, fraction };
struct Value {
  Kind kind;
  unsigned low : 3, high : 5;
  union {
    int i;
    float f;
  };
};
__global__ void change(Value* values) {
  Value& v = values[threadIdx.x];
  if (v.kind == Kind::number) {
    v.i *= 2;
  } else {
    v.f *= 0.5f;
  }
  v.low = v.high + 1;
}

int main() {
  Array<Value> values(10);
  for (int i = 0; i < 10; ++i) {
    values[i].kind = i % 2 == 0 ? Kind::number : Kind::fraction;
    values[i].high = static_cast<unsigned>(i);
    if (i % 2 == 0) values[i].i = i;
    if (i % 2 == 1) values[i].f = static_cast<float>(i);
  }
  values.up();
  change<<<1, 10>>>(values.device);
  values.down();
  for (int i = 0; i < 10; ++i) {
    CHECK(i % 2 == 0 ? values[i].i == 2 * i : values[i].f == 0.5f * i);
    CHECK(values[i].low == static_cast<unsigned>(i + 1) % 8);
  }
  return ok();
}
