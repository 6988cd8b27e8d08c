// SPDX-License-Identifier: Apache-2.0
// Registry of the memory that kernels may access, for the recorder. Internal to simt/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rung/simt/record.hpp"
#include "rung/simt/record/shadow.hpp"

namespace rung::simt::record {

struct Region {
  enum class State : std::uint8_t { live, freed, program };  // program: data of a loaded object
  Memory memory;
  State state = State::live;
  std::uint64_t serial = 0;  // registration order
  Initialized initialized;   // empty: all bytes are initialized
  Shadow shadow;             // allocated at the first checked access

  [[nodiscard]] const std::byte* begin() const {
    return static_cast<const std::byte*>(memory.begin);
  }
  [[nodiscard]] const std::byte* end() const { return begin() + memory.bytes; }
  /// Returns the part between the guards, which kernels may access.
  [[nodiscard]] const std::byte* inner() const { return begin() + memory.guard_before; }
  [[nodiscard]] std::size_t inner_bytes() const {
    return memory.bytes - memory.guard_before - memory.guard_behind;
  }
};

/// Returns the region that contains this address, preferring live memory, then freed memory, then
/// data of the program; null if there is none. Valid until the end of the session, or while a
/// launch is recorded.
Region* find_region(const void* address);
/// Returns the live region nearest to the address, before or behind it.
const Region* nearest_region(const void* address);
/// Keeps regions alive for its own lifetime, while a launch is recorded.
class RegionsInUse {
 public:
  RegionsInUse();
  ~RegionsInUse();
  RegionsInUse(const RegionsInUse&) = delete;
  RegionsInUse& operator=(const RegionsInUse&) = delete;
};
/// Returns the region's shadow, which the first call allocates.
Shadow& shadow_of(Region& region);

/// Forgets freed regions and all shadows, at the beginning and the end of a session.
void forget_history();
/// Returns the live memory that the program should have freed, for the leak check.
std::vector<Memory> still_allocated();
/// Excludes memory that is live now from the leak check.
void expect_no_release();

}  // namespace rung::simt::record
