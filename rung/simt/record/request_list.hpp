// SPDX-License-Identifier: Apache-2.0
// The list that a warp's lanes walk along. Internal to simt/.
//
// While every lane does the same, steps are in memory in the order in which they are walked (the
// list is linear), and what a list before left there is tried first. When a lane does something
// between two steps, its steps go behind the last one, and links tell the order.
#pragma once

#include <cstdint>
#include <memory>

#include "rung/simt/limits.hpp"
#include "rung/simt/record/request.hpp"
#include "rung/simt/record/shadow.hpp"

namespace rung::simt::record {

class RequestList {
 public:
  static constexpr std::uint32_t capacity = 1024;
  /// And steps with which lanes end, a gap before each: they cannot wait for others.
  static constexpr std::uint32_t room = capacity + 4 + 2 * warp_lanes;
  RequestList();

  /// Where lanes start: before the first step.
  [[nodiscard]] Step* start() const { return steps_.get(); }
  [[nodiscard]] std::uint32_t* units_of(int lane) const {
    return units_.get() + static_cast<std::size_t>(lane) * row;
  }
  /// From now on there is room for what lanes write.
  void keep_values();
  /// What makes four times the address of a unit that of its value; 0: values are not kept.
  [[nodiscard]] std::uintptr_t values() const { return values_from_units_; }
  /// By lane, in rows as units: what they wrote at this step.
  [[nodiscard]] const std::uint32_t* values_at(std::uint32_t index) const {
    return values_.as<std::uint32_t>() + std::size_t{index} * value_words;
  }
  static constexpr std::size_t value_row() { return row * value_words; }
  [[nodiscard]] std::uint32_t index_of(const Step* step) const {
    return static_cast<std::uint32_t>(step - steps_.get());
  }
  [[nodiscard]] Step& step(std::uint32_t index) const { return steps_[index]; }
  [[nodiscard]] Target& target(std::uint32_t index) const { return targets_[index]; }
  [[nodiscard]] bool full() const { return used_ + 3 >= capacity; }
  [[nodiscard]] bool linear() const { return linear_; }
  /// The next step; 0: there is none.
  [[nodiscard]] std::uint32_t after(std::uint32_t index) const {
    if (!linear_) return steps_[index].next;
    return index < used_ ? index + 1 : 0;
  }

  /// A lane has come as far as this by itself.
  void reach(const Step* step) {
    if (linear_ && index_of(step) > used_) used_ = index_of(step);
  }
  /// A step behind `index`, to be filled in.
  std::uint32_t insert(std::uint32_t index, std::uintptr_t site);
  /// Returns whether a step of this site may be in the list.
  [[nodiscard]] bool may_hold(std::uintptr_t site) const {
    const std::size_t hash = hash_of(site);
    return (present_[hash / 64] >> (hash % 64) & 1) != 0;
  }
  /// Takes the units of a step out, and says which lanes were there. Each step once until reset().
  void gather(std::uint32_t index, Request& request);
  /// No lane has walked it. A linear list's steps are kept, to be tried.
  void reset(bool forget);

 private:
  // Rows of units are apart by an odd number of cache lines, so that a step's 32 fall into
  // different sets of the cache.
  static constexpr std::size_t row = capacity + 80;
  /// Takes the units of some steps that are adjacent out.
  void take(std::uint32_t group);
  static void look_for_halves(Request& request);
  static void turn(const std::uint32_t* units, std::uint32_t (*steps)[warp_lanes]);
  static std::size_t hash_of(std::uintptr_t site) { return site * 0x9e3779b97f4a7c15u >> 54; }

  std::unique_ptr<Step[]> steps_;
  std::unique_ptr<Target[]> targets_;
  std::unique_ptr<std::uint32_t[]> units_;
  LazyMemory values_;  // only of steps that write
  std::uintptr_t values_from_units_ = 0;
  // Of the steps taken_ * 8 to taken_ * 8 + 7: the units of the first lane and the last, how far
  // lanes are apart, and whether all are (0) so. Where some are not, the units by step and lane.
  static constexpr std::uint32_t group_steps = 8;
  struct Group {
    std::uint32_t first[group_steps], last[group_steps], stride[group_steps], odd[group_steps];
    std::uint32_t units[group_steps][warp_lanes];
  };
  alignas(64) Group group_;
  std::uint32_t taken_ = ~std::uint32_t{0};
  std::uint32_t used_ = 0;  // the last step in memory
  bool linear_ = true;
  std::uint64_t present_[16] = {};  // by a hash of their sites: steps that may be there
};

}  // namespace rung::simt::record
