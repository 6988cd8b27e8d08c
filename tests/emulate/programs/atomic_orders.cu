// SPDX-License-Identifier: Apache-2.0
// What orders: releases and acquires by every operation of cuda::atomic, relaxed ones with fences,
// chains of them, and the block's scope within a block; the same in PTX.
#include <cuda/atomic>

#include "check.cuh"

using Whole = cuda::atomic_ref<int, cuda::thread_scope_device>;

/// Each block takes over what the one before has left.
__global__ void chain(int* data, int* flag, int how) {
  Whole turn(*flag);
  const int me = blockIdx.x;
  if (how == 0) {
    while (turn.load() != me) {
    }
    *data += me;
    turn.fetch_add(1);
  } else if (how == 1) {
    while (turn.load(cuda::memory_order_acquire) != me) {
    }
    *data += me;
    turn.exchange(me + 1, cuda::memory_order_release);
  } else if (how == 2) {
    while (turn.load(cuda::memory_order_relaxed) != me) {
    }
    cuda::atomic_thread_fence(cuda::memory_order_acquire);
    *data += me;
    cuda::atomic_thread_fence(cuda::memory_order_release);
    turn.store(me + 1, cuda::memory_order_relaxed);
  } else if (how == 3) {
    int mine = me;
    while (!turn.compare_exchange_weak(mine, me, cuda::memory_order_acquire)) mine = me;
    *data += me;
    turn.store(me + 1, cuda::memory_order_release);
  } else {
    int seen;
    do {
      asm volatile("atom.acquire.gpu.global.add.s32 %0, [%1], 0;"
                   : "=r"(seen)
                   : "l"(flag)
                   : "memory");
    } while (seen != me);
    *data += me;
    asm volatile("red.release.gpu.global.add.s32 [%0], 1;" ::"l"(flag) : "memory");
  }
}

/// The first thread's data reaches the last by the hands of all between, which read nothing.
__global__ void pass_on(int* data, int* counter, int* out) {
  Whole arrived(*counter);
  if (blockIdx.x == 0) *data = 42;
  const int before = arrived.fetch_add(1, cuda::memory_order_acq_rel);
  if (before == 3 && arrived.load() == 4) *out = *data;
}

__global__ void within_block(int* out) {
  __shared__ int data;
  __shared__ cuda::atomic<int, cuda::thread_scope_block> ready;
  const int t = threadIdx.x;
  if (t == 0) ready.store(0);
  __syncthreads();
  if (t == 0) {
    data = 5;
    ready.store(1, cuda::memory_order_release);
  } else if (t == 32) {
    while (ready.load(cuda::memory_order_acquire) == 0) {
    }
    *out = data;
  }
}

__global__ void narrow(unsigned char* flags, unsigned short* halves) {
  cuda::atomic_ref<unsigned char, cuda::thread_scope_device> flag(*flags);
  cuda::atomic_ref<unsigned short, cuda::thread_scope_device> half(*halves);
  if (flag.load() == 0) flag.store(1);
  half.fetch_add(2);
}

int main() {
  for (int how = 0; how < 5; ++how) {
    Array<int> data(1), flag(1);
    chain<<<5, 1>>>(data.device, flag.device, how);
    data.down();
    CHECK(data[0] == 10);
  }
  Array<int> data(1), counter(1), out(1);
  pass_on<<<4, 1>>>(data.device, counter.device, out.device);
  out.down();
  CHECK(out[0] == 42);
  within_block<<<1, 64>>>(out.device);
  out.down();
  CHECK(out[0] == 5);
  Array<unsigned char> flags(4);
  Array<unsigned short> halves(2);
  narrow<<<2, 8>>>(flags.device, halves.device);
  flags.down();
  halves.down();
  CHECK(flags[0] == 1 && flags[1] == 0 && halves[0] == 32 && halves[1] == 0);
  return ok();
}
