// SPDX-License-Identifier: Apache-2.0
// Registry of the memory that kernels may access.
#include "rung/simt/record/registry.hpp"

#include <link.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "rung/simt/limits.hpp"

namespace rung::simt::record {
namespace {

/// Regions by their first byte, guarded by a mutex. A kernel locks it at most once per request, and
/// only if the request accesses other memory than the previous one.
struct Registry {
  using Regions = std::map<const std::byte*, std::unique_ptr<Region>, std::less<>>;
  std::mutex mutex;
  Regions live;
  Regions freed;
  Regions program;
  std::deque<std::unique_ptr<Region>> replaced;  // replaced regions, possibly still referenced
  std::size_t launches = 0;                      // launches that are being recorded
  std::uint64_t registered = 0;
};
Registry& registry() {
  static Registry& table = *new Registry;  // never destroyed, since tensors may be static
  return table;
}

Region* find_in(const Registry::Regions& regions, const std::byte* address) {
  auto after = regions.upper_bound(address);
  if (after == regions.begin()) return nullptr;
  Region* region = std::prev(after)->second.get();
  return address < region->end() || address == region->begin() ? region : nullptr;
}

/// Maximum number of freed regions that are kept to detect use after free.
constexpr std::size_t max_freed = 16384;

void forget_contents(Region& freed) {
  freed.shadow = Shadow();
  freed.initialized = Initialized();
}

/// Destroys replaced regions once no launch can refer to them.
void sweep(Registry& all) {
  if (all.launches != 0) return;
  all.replaced.clear();
  while (all.freed.size() > max_freed) all.freed.erase(all.freed.begin());
}

/// Segment of a loaded object that contains an address.
struct Segment {
  const std::byte* address;
  const std::byte* begin = nullptr;
  std::size_t bytes = 0;
  bool writable = false;
};

int find_segment(dl_phdr_info* object, std::size_t, void* erased) {
  Segment& wanted = *static_cast<Segment*>(erased);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& header = object->dlpi_phdr[i];
    if (header.p_type != PT_LOAD) continue;
    const auto* begin = reinterpret_cast<const std::byte*>(object->dlpi_addr + header.p_vaddr);
    if (wanted.address < begin || wanted.address >= begin + header.p_memsz) continue;
    wanted.begin = begin;
    wanted.bytes = header.p_memsz;
    wanted.writable = (header.p_flags & PF_W) != 0;
    return 1;
  }
  return 0;
}

Region* find_program_data(Registry& all, const std::byte* address) {
  if (Region* known = find_in(all.program, address)) return known;
  Segment segment{address};
  if (dl_iterate_phdr(find_segment, &segment) == 0) return nullptr;
  auto region = std::make_unique<Region>();
  region->memory.begin = segment.begin;
  region->memory.bytes = segment.bytes;
  region->memory.space = segment.writable ? Space::global : Space::constant;
  region->memory.name = "the program's data";
  region->state = Region::State::program;
  return (all.program[segment.begin] = std::move(region)).get();
}

}  // namespace

void register_memory(Memory memory) {
  Registry& all = registry();
  auto region = std::make_unique<Region>();
  if (!memory.initialized && checking()) region->initialized = Initialized(memory.bytes);
  const auto* begin = static_cast<const std::byte*>(memory.begin);
  region->memory = std::move(memory);
  const std::lock_guard lock(all.mutex);
  region->serial = ++all.registered;
  // Forgets the freed regions that overlap the new one, so that freed regions are always disjoint.
  auto old = all.freed.upper_bound(begin);
  if (old != all.freed.begin() && std::prev(old)->second->end() > begin) --old;
  while (old != all.freed.end() && old->first < region->end()) {
    all.replaced.push_back(std::move(old->second));
    old = all.freed.erase(old);
  }
  auto& place = all.live[begin];
  if (place != nullptr) all.replaced.push_back(std::move(place));
  place = std::move(region);
}

bool unregister_memory(const void* begin, const void* code) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.live.find(static_cast<const std::byte*>(begin));
  if (found == all.live.end()) return false;
  std::unique_ptr<Region> region = std::move(found->second);
  all.live.erase(found);
  if (checking()) {
    region->state = Region::State::freed;
    region->memory.freed = code;
    if (all.launches == 0) forget_contents(*region);
    all.freed[region->begin()] = std::move(region);
    sweep(all);
  }
  return true;
}

void allow_devices(const void* begin, std::uint64_t readers, std::uint64_t writers) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.live.find(static_cast<const std::byte*>(begin));
  if (found == all.live.end()) return;
  found->second->memory.readers = readers;
  found->second->memory.writers = writers;
}

void set_guards(const void* begin, std::size_t before, std::size_t behind, std::string name) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.live.find(static_cast<const std::byte*>(begin));
  if (found == all.live.end()) return;
  found->second->memory.guard_before = before;
  found->second->memory.guard_behind = behind;
  found->second->memory.name = std::move(name);
}

Memory find_memory(const void* address) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const Region* region = find_in(all.live, static_cast<const std::byte*>(address));
  return region == nullptr ? Memory{} : region->memory;
}

Region* find_region(const void* address) {
  Registry& all = registry();
  const auto* byte = static_cast<const std::byte*>(address);
  const std::lock_guard lock(all.mutex);
  if (Region* live = find_in(all.live, byte)) return live;
  if (Region* freed = find_in(all.freed, byte)) return freed;
  return find_program_data(all, byte);
}

const Region* nearest_region(const void* address) {
  Registry& all = registry();
  const auto* byte = static_cast<const std::byte*>(address);
  const std::lock_guard lock(all.mutex);
  const auto after = all.live.upper_bound(byte);
  const Region* above = after == all.live.end() ? nullptr : after->second.get();
  const Region* below = after == all.live.begin() ? nullptr : std::prev(after)->second.get();
  if (above == nullptr || below == nullptr) return above == nullptr ? below : above;
  return byte - below->end() <= above->begin() - byte ? below : above;
}

RegionsInUse::RegionsInUse() {
  const std::lock_guard lock(registry().mutex);
  ++registry().launches;
}

RegionsInUse::~RegionsInUse() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  if (--all.launches == 0) sweep(all);
}

Shadow& shadow_of(Region& region) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  if (!region.shadow) region.shadow = Shadow(region.memory.bytes);
  return region.shadow;
}

void forget_history() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.freed.clear();
  all.replaced.clear();
  all.program.clear();  // loaded objects may have been unloaded
  for (auto& [begin, region] : all.live) {
    region->shadow = Shadow();
    region->initialized = Initialized();
  }
}

std::vector<Memory> still_allocated() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::vector<Memory> left;
  for (const auto& [begin, region] : all.live) {
    if (region->memory.freed_by_hand) left.push_back(region->memory);
  }
  return left;
}

void expect_no_release() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  for (auto& [begin, region] : all.live) region->memory.freed_by_hand = false;
}

namespace {

/// Calls f(initialized, offset, bytes) on the part of the range in live memory.
template <class F>
void with_initialized(const void* begin, std::size_t bytes, F f) {
  if (!checking() || bytes == 0) return;
  Registry& all = registry();
  const auto* first = static_cast<const std::byte*>(begin);
  const std::lock_guard lock(all.mutex);
  Region* region = find_in(all.live, first);
  if (region == nullptr || !region->initialized) return;
  const auto offset = static_cast<std::size_t>(first - region->begin());
  f(region->initialized, offset, std::min(bytes, region->memory.bytes - offset));
}

}  // namespace

void mark_initialized(const void* begin, std::size_t bytes) {
  with_initialized(begin, bytes, [](Initialized& map, std::size_t offset, std::size_t count) {
    map.set(offset, count, true);
  });
}

void mark_whole_initialized(const void* address) {
  if (!checking()) return;
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto mark = [](Region& region) {
    if (region.initialized) region.initialized.set(0, region.memory.bytes, true);
  };
  if (address != nullptr) {
    Region* const region = find_in(all.live, static_cast<const std::byte*>(address));
    if (region != nullptr) mark(*region);
    return;
  }
  for (auto& [begin, region] : all.live) mark(*region);
}

void mark_uninitialized(const void* begin, std::size_t bytes) {
  with_initialized(begin, bytes, [](Initialized& map, std::size_t offset, std::size_t count) {
    map.set(offset, count, false);
  });
}

bool never_written(const void* begin, std::size_t bytes) {
  bool none = false;
  with_initialized(begin, bytes,
                   [&](const Initialized& map, std::size_t offset, std::size_t count) {
                     none = map.none(offset, count);
                   });
  return none;
}

void copy_initialized(const void* to, const void* from, std::size_t bytes) {
  const auto* begin = static_cast<const std::byte*>(from);
  with_initialized(to, bytes, [&](Initialized& map, std::size_t offset, std::size_t count) {
    // Searches live regions only: host memory may reuse the addresses of freed regions.
    const Region* source = find_in(registry().live, begin);
    if (source == nullptr || !source->initialized) {
      map.set(offset, count, true);
      return;
    }
    for (std::size_t i = 0; i < count && begin + i < source->end(); ++i) {
      const auto at = static_cast<std::size_t>(begin + i - source->begin());
      map.set(offset + i, 1, source->initialized.all(at, 1));
    }
  });
}

}  // namespace rung::simt::record
