// SPDX-License-Identifier: Apache-2.0
// Loads that wait, and accesses of 16 bytes.
#include "rung/simt/ordered_memory.hpp"

#include <mutex>

#include "rung/simt/scheduler.hpp"

namespace rung::simt {
namespace {

constexpr std::size_t lock_count = 64;
std::mutex locks[lock_count];

std::mutex& lock_of(const void* address) {
  return locks[reinterpret_cast<std::uintptr_t>(address) / 16 % lock_count];
}

constexpr int polls_before_yield = 32;
constinit thread_local int polls_left = polls_before_yield;

}  // namespace

void load_16_bytes(const void* from, void* to) {
  const std::lock_guard lock(lock_of(from));
  std::memcpy(to, from, 16);
}

void store_16_bytes(void* to, const void* from) {
  const std::lock_guard lock(lock_of(to));
  std::memcpy(to, from, 16);
}

void require_aligned(const void* address, std::size_t bytes, const char* operation, Place place) {
  if (reinterpret_cast<std::uintptr_t>(address) % bytes == 0) return;
  running_worker(operation).fail(
      std::string("misaligned address: ") + operation + " of " + std::to_string(bytes) + " bytes",
      place);
}

bool poll(const void* address, std::uint64_t seen, const char* operation, Place place) {
  Worker& here = running_worker(operation);
  Thread& self = here.current();
  self.operation = operation;
  self.place = place;
  const auto known = [&](int i) {
    return self.polled[i] == address && self.polled_values[i] == seen;
  };
  if (!known(0) && !known(1)) {
    // Replaces what it saw here before, or else the older of the two.
    if (self.polled[0] != address) {
      self.polled[1] = self.polled[0];
      self.polled_values[1] = self.polled_values[0];
    }
    self.polled[0] = address;
    self.polled_values[0] = seen;
    // One that looks at many places in turn gives way too, now and then.
    if (--polls_left <= 0) {
      polls_left = polls_before_yield;
      here.yield(Look::many_loads);
    }
    return false;
  }
  here.yield(Look::in_vain);
  return true;
}

}  // namespace rung::simt
