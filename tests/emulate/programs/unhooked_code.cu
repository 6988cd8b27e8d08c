// SPDX-License-Identifier: Apache-2.0
// Launches that repeat others run functions compiled without hooks: with the same variables and
// tables, and addresses of functions that are the same.
#include <cstring>
#include <thread>

#include "check.cuh"

__device__ int calls;
__constant__ int weights[4];
__device__ float (*operation)(float);
__device__ void* places[2];

static __device__ float half(float x) { return x / 2; }
static __device__ float twice(float x) { return x * 2; }
__noinline__ __device__ void note_place(int i) { places[i] = __builtin_return_address(0); }

struct Shape {
  __device__ virtual int corners() const { return 3; }
};
struct Square : Shape {
  __device__ int corners() const override { return 4; }
};
__device__ Square* square;

__device__ int by_table(int i) {
  switch (i % 8) {
    case 0:
      return weights[1];
    case 1:
      return weights[0] * i;
    case 2:
      return calls;
    case 3:
      return i ^ 5;
    case 4:
      return square->corners();
    case 5:
      return i << 3;
    case 6:
      return weights[3] - i;
    default:
      return -i;
  }
}
__device__ int next_ticket() {
  static int tickets = 100;
  return tickets++;
}

template <class T>
__global__ void step(T* out, int* tickets, int late) {
  __shared__ T turned[32];
  const int i = threadIdx.x;
  turned[31 - i] = by_table(i);
  __syncthreads();
  out[i] = turned[i];
  if (i != 0) return;
  note_place(late);
  ++calls;
  *tickets = next_ticket();
  if (operation == half) {
    operation = twice;
  } else if (operation == twice) {
    operation = half;
  }
}
__global__ void begin(Square* room) {
  operation = half;
  square = new (room) Square;
}
__global__ void check(float* out) { *out = operation(3); }

int main() {
  const char* const given = std::getenv("RUNG_EMULATE_RECORDED_LAUNCHES");
  const bool two_versions = given != nullptr && std::strcmp(given, "always") != 0 &&
                            std::thread::hardware_concurrency() > 1;
  record_first_launches(4);
  Array<int> out(32), tickets(1);
  Array<float> result(1);
  Array<char> room(sizeof(Square));
  const int host_weights[4] = {7, 11, 13, 17};
  CUDA(cudaMemcpyToSymbol(weights, host_weights, sizeof host_weights));
  begin<<<1, 1>>>(reinterpret_cast<Square*>(room.device));
  for (int i = 0; i < 15; ++i) {
    step<<<1, 32>>>(out.device, tickets.device, i < 4 ? 0 : 1);
    tickets.down();
    CHECK(tickets[0] == 100 + i);
    out.down();
    const int expected[8] = {11, 7, i, 6, 4, 40, 11, -7};
    for (int j = 0; j < 8; ++j) {
      CHECK(out[31 - j] == expected[j]);
    }
    check<<<1, 1>>>(result.device);
    result.down();
    CHECK(result[0] == (i % 2 == 0 ? 6 : 1.5f));
  }
  int host_calls = 0;
  CUDA(cudaMemcpyFromSymbol(&host_calls, calls, sizeof host_calls));
  CHECK(host_calls == 15);
  void* host_places[2];
  CUDA(cudaMemcpyFromSymbol(host_places, places, sizeof host_places));
  CHECK((host_places[0] != host_places[1]) == two_versions);
  return ok();
}
