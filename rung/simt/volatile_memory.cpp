// SPDX-License-Identifier: Apache-2.0
// Volatile accesses of instrumented code. A thread that reads a volatile variable repeatedly waits
// for another thread to change it, and yields. Programs for GPUs before Volta rely on lockstep
// execution of warps when they use volatile shared memory; the simulator runs such warps in
// lockstep.
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

/// Returns the name, for messages, of a wait at this location. Called only by waiting threads.
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

/// Number of consecutive reads of shared memory, without a write in between, after which a thread
/// counts as possibly waiting.
constexpr int reads_before_poll = 8;

/// Handles a read in lockstep execution: all lanes execute a statement's reads before any lane
/// executes its write. A block barrier in between has the same effect. Returns true if the reading
/// thread may be waiting.
bool read_in_step(Thread& self) {
  if (self.volatile_reads < 0) {
    if (!self.met_block) this_worker->keep_step();
    self.volatile_reads = 0;
  }
  self.met_block = false;
  if (self.volatile_reads < reads_before_poll) ++self.volatile_reads;
  return self.volatile_reads == reads_before_poll;
}
void write_in_step(Thread& self) {
  if (self.volatile_reads > 0 && !self.met_block) this_worker->keep_step();
  self.volatile_reads = -1;
  self.met_block = false;
}

/// Returns in_kernel(), inlined.
bool kernel_runs() { return this_worker != nullptr && this_worker->busy(); }

}  // namespace

/// Handles a volatile read of up to 8 bytes; called by the hooks before the read.
extern "C" RUNG_API void rung_simt_volatile_read(const void* address, std::size_t bytes,
                                                 const void* site) {
  if (!kernel_runs() || bytes > sizeof(std::uint64_t)) return;
  Thread& self = this_worker->current();
  const auto* byte = static_cast<const std::byte*>(address);
  const std::byte* shared = self.block->shared;
  const bool in_shared = byte >= shared && byte < shared + self.block->shared_capacity;
  if (in_shared && !read_in_step(self)) return;
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
extern "C" RUNG_API void rung_simt_volatile_write() {
  memory_changed = true;
  if (kernel_runs()) write_in_step(this_worker->current());
}

}  // namespace rung::simt
