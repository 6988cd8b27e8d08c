// SPDX-License-Identifier: Apache-2.0
// Volatile accesses of instrumented code: a thread that reads a variable again and again waits for
// another one to change it, and has to let that one run.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>

#include "rung/simt/scheduler.hpp"
#include "rung/simt/simulator.hpp"

namespace rung::simt {

bool poll(const void* address, std::uint64_t seen, const char* operation, Place place);

namespace {

/// What a wait at this place is called in messages. Asked for only by threads that do wait.
const char* name_of_wait(const void* site) {
  static std::mutex mutex;
  static auto& names = *new std::unordered_map<const void*, std::string>;
  const std::lock_guard lock(mutex);
  std::string& name = names[site];
  if (name.empty()) {
    const std::string line = source_line(static_cast<const char*>(site) - 1);
    name = "a loop that reads a volatile variable" + (line.empty() ? "" : " at " + line);
  }
  return name.c_str();
}

}  // namespace

/// Called by the hooks in front of a volatile read of up to 8 bytes.
extern "C" RUNG_API void rung_simt_volatile_read(const void* address, std::size_t bytes,
                                                 const void* site) {
  if (!in_kernel() || bytes > sizeof(std::uint64_t)) return;
  std::uint64_t seen = 0;
  std::memcpy(&seen, address, bytes);
  struct Last {
    const void* site = nullptr;
    const char* name = "a volatile read";
  };
  static thread_local Last last;
  if (last.site != site) last = Last{};
  if (poll(address, seen, last.name, Place{}) && last.site != site) {
    last = {site, name_of_wait(site)};
  }
}
extern "C" RUNG_API void rung_simt_volatile_write() { memory_changed = true; }

}  // namespace rung::simt
