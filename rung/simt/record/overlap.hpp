// SPDX-License-Identifier: Apache-2.0
// Overlap of `__restrict__` parameters: which bytes one launch accesses through which of them.
//
// An access does not say which pointer it went through. The launcher, which knows the source, tells
// that of each place in the code (LaunchSource); places of which it cannot are left out. Bytes
// are noted only in memory to which several arguments of the launch point.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "rung/simt/record.hpp"
#include "rung/simt/record/request.hpp"

namespace rung::simt::record {

class Overlaps {
 public:
  /// Begins a launch, of this data of the launcher's.
  void begin(const void* data);
  [[nodiscard]] bool any() const { return !suspects_.empty(); }
  void note(Request& request);
  /// Adds what another worker has noted of the same launch.
  void add(const Overlaps& other);
  /// Adds a finding for each pair of parameters of which one byte was accessed through both, and
  /// written through one.
  void report(const Launch& launch) const;

 private:
  static constexpr std::size_t page_bytes = 4096;
  using Page = std::array<std::uint64_t, page_bytes / 64>;  // a bit for each byte
  /// What code at one place has accessed through one parameter; none: by none that is known.
  struct Place {
    RestrictedParameter parameter;
    bool writes = false;
    std::unordered_map<std::uintptr_t, Page> pages;
  };
  static std::uintptr_t common_byte(const Place& one, const Place& other);

  std::vector<const void*> suspects_;  // where memory begins to which several arguments point
  const void* data_ = nullptr;
  std::map<std::uintptr_t, Place> places_;  // by site
};

}  // namespace rung::simt::record
