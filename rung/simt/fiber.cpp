// SPDX-License-Identifier: Apache-2.0
// Stacks of simulated threads, allocated in slabs and reused.
#include "rung/simt/fiber.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cxxabi.h>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "rung/core/error.hpp"
#include "rung/simt/jump.hpp"
#include "rung/simt/simulator.hpp"

namespace rung::simt {
namespace {

// Space for a kernel's local arrays and a printf. Untouched pages take no memory.
#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t stack_bytes_at_first = 256 << 10;
#else
constexpr std::size_t stack_bytes_at_first = 64 << 10;
#endif
std::atomic<std::size_t> stack_bytes_now{stack_bytes_at_first};
constexpr std::size_t stacks_per_slab = 32;
// Size of the canary at the low end of a stack. Guard pages between all stacks would cost a system
// call and a mapping per stack; one guard page per slab catches long overruns.
constexpr std::size_t canary_bytes = 512;
constexpr unsigned char canary = 0xa5;

}  // namespace

Fiber::Exceptions* current_exceptions() {
  // The ABI fixes the layout of __cxa_eh_globals: a pointer and an unsigned int.
  return reinterpret_cast<Fiber::Exceptions*>(abi::__cxa_get_globals());
}

void set_stack_bytes(std::size_t bytes) {
  const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  stack_bytes_now.store((std::max(bytes, stack_bytes_at_first) + page - 1) / page * page,
                        std::memory_order_relaxed);
}

FiberPool::~FiberPool() {
  for (const Slab& slab : slabs_) {
#if defined(__SANITIZE_ADDRESS__)
    // A later owner of the memory must not inherit ASan's poisoning of the old stack frames.
    __asan_unpoison_memory_region(slab.memory, slab.size);
#endif
    munmap(slab.memory, slab.size);
  }
}

void FiberPool::grow() {
  const std::size_t guard = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t stack_bytes = stack_bytes_now.load(std::memory_order_relaxed);
  const std::size_t size = guard + stacks_per_slab * stack_bytes;
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) {
    throw Error(ErrorCode::out_of_memory, "simulated GPU: no memory for the stacks of " +
                                              std::to_string(fibers_.size() + stacks_per_slab) +
                                              " threads");
  }
  slabs_.push_back({memory, size});
  mprotect(memory, guard, PROT_NONE);
  for (std::size_t i = 0; i < stacks_per_slab; ++i) {
    std::byte* bottom = static_cast<std::byte*>(memory) + guard + i * stack_bytes;
    // Staggers the stack tops by one cache line each: equal offsets within a page would map to a
    // few L1 sets only.
    const std::size_t stagger = (fibers_.size() % 64) * 64;
    auto fiber = std::make_unique<Fiber>();
    fiber->bottom = bottom;
    fiber->size = stack_bytes - stagger;
    restart(*fiber);
    idle_.push_back(fiber.get());
    fibers_.push_back(std::move(fiber));
  }
}

void FiberPool::restart(Fiber& fiber) {
  std::byte* bottom = static_cast<std::byte*>(const_cast<void*>(fiber.bottom));
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(bottom, fiber.size);  // poisoned by frames of abandoned threads
#endif
  std::memset(bottom, canary, canary_bytes);
  fiber.context = new_context(bottom + fiber.size, fiber.size);
  fiber.exceptions = {};
  fiber.fake_stack = nullptr;
}

void FiberPool::restart_all() {
  idle_.clear();
  for (const auto& fiber : fibers_) {
    restart(*fiber);
    idle_.push_back(fiber.get());
  }
  unused_ = idle_.size();  // the canaries of all fibers are intact
}

bool FiberPool::intact() {
  bool whole = true;
  for (; unused_ < idle_.size(); ++unused_) {
    const auto* bottom = static_cast<const unsigned char*>(idle_[unused_]->bottom);
    whole &=
        std::all_of(bottom, bottom + canary_bytes, [](unsigned char c) { return c == canary; });
  }
  return whole;
}

}  // namespace rung::simt
