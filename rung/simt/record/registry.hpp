// SPDX-License-Identifier: Apache-2.0
// The memory that kernels may access, as the recorder sees it. Internal to simt/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rung/simt/record.hpp"
#include "rung/simt/record/shadow.hpp"

namespace rung::simt::record {

struct Region {
  enum class State : std::uint8_t { live, freed, program };  // program: a loaded object's data
  Memory memory;
  State state = State::live;
  std::uint64_t serial = 0;  // in order of registration
  Initialized initialized;   // empty: all of it is
  Shadow shadow;             // made at the first access that is checked

  [[nodiscard]] const std::byte* begin() const {
    return static_cast<const std::byte*>(memory.begin);
  }
  [[nodiscard]] const std::byte* end() const { return begin() + memory.bytes; }
};

/// The region that holds this address: live memory first, then what was freed, then data of the
/// program; null: none does. Stays valid until no launch is recorded, or the session ends.
Region* find_region(const void* address);
/// The live region that ends nearest before the address, or begins nearest behind it.
const Region* nearest_region(const void* address);
/// A launch is recorded: regions and what is remembered of them stay for as long.
class RegionsInUse {
 public:
  RegionsInUse();
  ~RegionsInUse();
  RegionsInUse(const RegionsInUse&) = delete;
  RegionsInUse& operator=(const RegionsInUse&) = delete;
};
/// Makes the region's shadow, once.
Shadow& shadow_of(Region& region);

/// At a session's begin and end: what was freed and all shadows are forgotten.
void forget_history();
/// Live memory that a program should have freed and has not.
std::vector<Memory> still_allocated();
/// What lives now must not be freed.
void expect_no_release();

}  // namespace rung::simt::record
