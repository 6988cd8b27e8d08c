// SPDX-License-Identifier: Apache-2.0
// Detection of overlapping `__restrict__` parameters: tracks the bytes that a launch accesses
// through each parameter.
//
// An access does not reveal which pointer it uses. The launcher, which knows the source, maps code
// locations to parameters (LaunchSource); unmapped locations are ignored. Bytes are tracked only in
// memory to which several arguments of the launch point.
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
  /// Begins a launch; `data` is Launch::data.
  void begin(const void* data);
  [[nodiscard]] bool any() const { return !suspects_.empty(); }
  void note(Request& request);
  /// Merges the data of another worker of the same launch into this one.
  void add(const Overlaps& other);
  /// Adds a finding for each pair of parameters that access a common byte that at least one of them
  /// writes.
  void report(const Launch& launch) const;

 private:
  static constexpr std::size_t page_bytes = 4096;
  using Page = std::array<std::uint64_t, page_bytes / 64>;  // one bit per byte
  /// Accesses by one code location. `parameter.number` is -1 if the parameter is unknown.
  struct SiteAccesses {
    RestrictedParameter parameter;
    bool writes = false;
    std::unordered_map<std::uintptr_t, Page> pages;
  };
  static std::uintptr_t common_byte(const SiteAccesses& one, const SiteAccesses& other);

  std::vector<const void*> suspects_;  // base addresses of memory to which several arguments point
  const void* data_ = nullptr;
  std::map<std::uintptr_t, SiteAccesses> sites_;  // by site
};

}  // namespace rung::simt::record
