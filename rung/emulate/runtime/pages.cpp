// SPDX-License-Identifier: Apache-2.0
// Page mappings for memory that the runtime allocates.
#include "rung/emulate/runtime/pages.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>

#include "rung/emulate/runtime/shared_block.hpp"
#include "rung/simt/record.hpp"

namespace rung::cuda {
namespace {

// Retired pages take address space and a mapping, but no memory.
constexpr std::size_t max_freed_bytes = std::size_t{64} << 30;
constexpr std::size_t max_freed = 8192;

// Maximum number of protection changes. Protecting and unprotecting takes about 2 to 14 us per
// allocation and 0.2 to 0.4 us per page, so the total stays below about 0.3 s for a program with
// many launches and much memory. Beyond the limit, device memory stays accessible.
constexpr std::size_t max_changes = 20'000;
constexpr std::size_t max_changed_pages = std::size_t{1} << 19;

struct Freed {
  Pages pages;
  FreedMemory what;
};
struct State {
  std::mutex mutex;
  std::deque<Freed> freed;  // oldest first
  std::size_t freed_bytes = 0;
  std::map<char*, Pages> device;
  std::size_t users = 0;  // number of DeviceAccess objects
  std::size_t changes = 0, changed_pages = 0;
  bool affordable = true;
  bool closed = false;
};
State& state() {
  static State& one = *new State;  // never destroyed, since static destructors may free memory
  return one;
}

char* whole_begin(const Pages& pages) { return pages.begin - pages.guard; }
std::size_t whole_extent(const Pages& pages) { return pages.bytes + 2 * pages.guard; }

/// Returns true if device memory is inaccessible to the host. This requires a session with checks.
bool closes(const State& all) { return all.affordable && simt::record::checking(); }

void close_all(State& all, bool closed) {
  all.closed = closed;
  for (const auto& [begin, pages] : all.device) {
    mprotect(begin, pages.bytes, closed ? PROT_NONE : PROT_READ | PROT_WRITE);
  }
}

}  // namespace

Pages map_pages(std::size_t bytes, bool guarded) {
  Pages pages{nullptr, whole_pages(bytes), guarded ? whole_pages(1) : 0};
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  const int access = guarded ? PROT_NONE : PROT_READ | PROT_WRITE;
  void* there = mmap(nullptr, whole_extent(pages), access, flags, -1, 0);
  if (there == MAP_FAILED) return {};
  pages.begin = static_cast<char*>(there) + pages.guard;
  if (guarded && mprotect(pages.begin, pages.bytes, PROT_READ | PROT_WRITE) != 0) {
    munmap(there, whole_extent(pages));
    return {};
  }
  return pages;
}

void retire_pages(const Pages& pages, const FreedMemory& what) {
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  char* const begin = whole_begin(pages);
  if (mmap(begin, whole_extent(pages), PROT_NONE, flags, -1, 0) == MAP_FAILED) {
    munmap(begin, whole_extent(pages));
    return;
  }
  State& all = state();
  const std::lock_guard lock(all.mutex);
  all.freed.push_back({pages, what});
  all.freed_bytes += whole_extent(pages);
  while (all.freed.size() > max_freed || all.freed_bytes > max_freed_bytes) {
    const Pages& oldest = all.freed.front().pages;
    munmap(whole_begin(oldest), whole_extent(oldest));
    all.freed_bytes -= whole_extent(oldest);
    all.freed.pop_front();
  }
}

FreedMemory find_freed(const void* address) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  for (const Freed& one : all.freed) {
    if (at - reinterpret_cast<std::uintptr_t>(one.what.begin) < one.what.bytes) return one.what;
  }
  return {};
}

DeviceAccess::DeviceAccess() {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  if (all.users++ == 0 && all.closed) close_all(all, false);
}

DeviceAccess::~DeviceAccess() {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  if (--all.users != 0 || !closes(all)) return;
  for (const auto& [begin, pages] : all.device) all.changed_pages += pages.bytes / whole_pages(1);
  all.changes += all.device.size();
  all.affordable = all.changes <= max_changes && all.changed_pages <= max_changed_pages;
  if (all.affordable) close_all(all, true);
}

void close_to_host(const Pages& pages) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  all.device[pages.begin] = pages;
  if (all.users != 0 || !closes(all)) return;
  mprotect(pages.begin, pages.bytes, PROT_NONE);
  all.closed = true;
}

void open_to_host(const Pages& pages) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  if (all.device.erase(pages.begin) == 0) return;
  if (all.closed) mprotect(pages.begin, pages.bytes, PROT_READ | PROT_WRITE);
}

}  // namespace rung::cuda
