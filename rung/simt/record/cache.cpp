// SPDX-License-Identifier: Apache-2.0
// Lookup and replacement of cache lines.
#include "rung/simt/record/cache.hpp"

#include <bit>

namespace rung::simt::record {

Cache::Cache(std::size_t sets, std::size_t ways) : ways_(ways), sets_(sets), lines_(1) {}

std::uint64_t Cache::mix(std::uint64_t number) {
  number *= 0x9e3779b97f4a7c15u;
  number ^= number >> 32;
  return number * 0xd6e8feb86659fd93u;
}

/// Returns the line's slot in the table, or the free slot in which it would be inserted.
std::size_t Cache::slot_of(std::uint64_t number) const {
  const std::size_t mask = table_.size() - 1;
  std::size_t slot = mix(number) & mask;
  while (table_[slot] != 0 && lines_[table_[slot]].number != number) slot = (slot + 1) & mask;
  return slot;
}

void Cache::grow() {
  if (table_.size() >= 2 * lines_.size() + 2) return;
  table_.assign(table_.empty() ? 64 : 4 * table_.size(), 0);
  for (std::uint32_t i = 1; i < lines_.size(); ++i) table_[slot_of(lines_[i].number)] = i;
}

/// Removes a line from the table and moves later entries of its probe sequence up.
void Cache::forget(std::uint64_t number) {
  const std::size_t mask = table_.size() - 1;
  std::size_t free = slot_of(number);
  for (std::size_t next = (free + 1) & mask; table_[next] != 0; next = (next + 1) & mask) {
    const std::size_t home = mix(lines_[table_[next]].number) & mask;
    if (((next - home) & mask) < ((next - free) & mask)) continue;
    table_[free] = table_[next];
    free = next;
  }
  table_[free] = 0;
}

void Cache::take_out(Set& set, std::uint32_t index) {
  const Line& line = lines_[index];
  (line.newer != 0 ? lines_[line.newer].older : set.newest) = line.older;
  (line.older != 0 ? lines_[line.older].newer : set.oldest) = line.newer;
}

void Cache::put_first(Set& set, std::uint32_t index) {
  Line& line = lines_[index];
  line.newer = 0;
  line.older = set.newest;
  (set.newest != 0 ? lines_[set.newest].newer : set.oldest) = index;
  set.newest = index;
}

Cache::Line* Cache::find(std::uint64_t number) {
  if (table_.empty()) return nullptr;
  const std::uint32_t index = table_[slot_of(number)];
  if (index == 0) return nullptr;
  Set& set = set_of(number);
  if (set.newest != index) {
    take_out(set, index);
    put_first(set, index);
  }
  return &lines_[index];
}

Cache::Fresh Cache::add(std::uint64_t number) {
  if (ways_ == 0) return {};
  Set& set = set_of(number);
  Fresh fresh;
  std::uint32_t index = set.oldest;
  if (set.lines == ways_) {
    fresh.evicts = true;
    fresh.dirty = lines_[index].dirty;
    take_out(set, index);
    forget(lines_[index].number);
    lines_[index] = {};
  } else {
    ++set.lines;
    grow();
    index = static_cast<std::uint32_t>(lines_.size());
    lines_.emplace_back();
  }
  const std::size_t slot = slot_of(number);
  lines_[index].number = number;
  table_[slot] = index;
  put_first(set, index);
  fresh.line = &lines_[index];
  return fresh;
}

std::uint64_t Cache::dirty() const {
  std::uint64_t sectors = 0;
  for (const Line& line : lines_) sectors += static_cast<std::uint64_t>(std::popcount(line.dirty));
  return sectors;
}

}  // namespace rung::simt::record
