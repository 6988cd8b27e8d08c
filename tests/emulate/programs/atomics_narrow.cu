// SPDX-License-Identifier: Apache-2.0
// Atomic operations on 16 bits and on 64, of scopes, and those that wrap.
#include "check.cuh"

__global__ void change(unsigned short* words, unsigned long long* wide, unsigned* counters,
                       int* system) {
  unsigned short seen = words[1], before;
  do {
    before = seen;
    seen = atomicCAS(&words[1], before, static_cast<unsigned short>(before + 3));
  } while (seen != before);
  atomicMax(&wide[0], (1ull << 40) + threadIdx.x);
  atomicOr(&wide[1], 1ull << threadIdx.x);
  atomicAdd(&wide[2], ~0ull);  // minus one
  atomicInc(&counters[0], 9);
  atomicDec(&counters[1], 9);
  atomicAdd_system(system, 2);
  atomicAnd(reinterpret_cast<unsigned*>(&system[1]), ~(1u << threadIdx.x));
}

int main() {
  Array<unsigned short> words(4);
  Array<unsigned long long> wide(3);
  Array<unsigned> counters(2);
  Array<int> system(2);
  words[0] = 11;
  wide[2] = 100;
  system[1] = -1;
  words.up();
  wide.up();
  system.up();
  change<<<1, 64>>>(words.device, wide.device, counters.device, system.device);
  words.down();
  wide.down();
  counters.down();
  system.down();
  CHECK(words[0] == 11 && words[1] == 192 && words[2] == 0);
  CHECK(wide[0] == (1ull << 40) + 63 && wide[1] == ~0ull && wide[2] == 36);
  CHECK(counters[0] == 4 && counters[1] == 6 && system[0] == 128 && system[1] == 0);
  return ok();
}
