// SPDX-License-Identifier: Apache-2.0
// GPU for tests of core: its memory is inaccessible to the host (an access outside the DeviceApi's
// own copy is a segmentation fault), and allocations are counted. Replaces the backend cuda in
// programs that include this file.
#pragma once

#include <sys/mman.h>

#include <cstring>
#include <map>
#include <string>

#include "rung/core/context.hpp"

namespace rung::test {

inline constexpr Device gpu{Backend::cuda, 0};

/// Live blocks and their sizes; number of copies and synchronizations so far.
struct FakeDevice {
  std::map<std::uintptr_t, std::size_t> blocks;
  int allocations = 0;
  int copies = 0;
  int synchronizations = 0;
  bool capturing = false;  // all of its streams are capturing

  /// Returns true if an address is in a live block; opens or closes that block to the host.
  bool unlock(const void* address, bool open) const {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    auto block = blocks.upper_bound(at);
    if (block == blocks.begin() || at >= (--block)->first + block->second) return false;
    mprotect(reinterpret_cast<void*>(block->first), block->second,
             open ? PROT_READ | PROT_WRITE : PROT_NONE);
    return true;
  }
};

inline FakeDevice& fake_device() {
  static FakeDevice device;
  return device;
}

namespace fake {

constexpr int devices = 2;
constexpr std::size_t memory = std::size_t{1} << 32;

inline void* allocate(int, std::size_t bytes) {
  if (bytes > memory) {
    throw Error(ErrorCode::out_of_memory, "no " + std::to_string(bytes) + " bytes on the fake GPU");
  }
  void* block = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  fake_device().blocks[reinterpret_cast<std::uintptr_t>(block)] = bytes;
  ++fake_device().allocations;
  return block;
}

inline void release(int, void* block) noexcept {
  const auto found = fake_device().blocks.find(reinterpret_cast<std::uintptr_t>(block));
  munmap(block, found->second);
  fake_device().blocks.erase(found);
}

inline void copy(int, void* to, const void* from, std::size_t bytes) {
  FakeDevice& device = fake_device();
  ++device.copies;
  const bool from_device = device.unlock(from, true);
  const bool to_device = device.unlock(to, true);
  std::memcpy(to, from, bytes);
  if (from_device) device.unlock(from, false);
  if (to_device) device.unlock(to, false);
}

inline DeviceInfo info(int index) {
  return {.name = "fake " + std::to_string(index),
          .compute_capability = 90,
          .sms = 132,
          .memory_bytes = memory};
}

// The last registration is the effective one: this one, because a program's objects are initialized
// after the libraries that it needs.
inline const DeviceRegistration registration{{
    .backend = Backend::cuda,
    .device_count = [] { return devices; },
    .why_not = []() -> const char* { return ""; },
    .info = info,
    .allocate = allocate,
    .release = release,
    .copy = copy,
    .create_stream = [](int) -> void* { return nullptr; },
    .destroy_stream = [](int, void*) noexcept {},
    .synchronize = [](int, void*) { ++fake_device().synchronizations; },
    .is_capturing = [](int, void*) { return fake_device().capturing; },
}};

}  // namespace fake
}  // namespace rung::test
