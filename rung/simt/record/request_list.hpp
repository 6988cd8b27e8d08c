// SPDX-License-Identifier: Apache-2.0
// List of the accesses of a warp's lanes. Internal to simt/.
//
// While all lanes take the same path, steps are stored in execution order (the list is linear), and
// leftover steps of the previous list serve as predictions. A step that a lane inserts between two
// others is appended; from then on links give the order.
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
  /// Number of slots: the capacity, plus the final steps of exiting lanes, which cannot wait for
  /// other lanes, with a gap before each.
  static constexpr std::uint32_t room = capacity + 4 + 2 * warp_lanes;
  RequestList();

  /// Returns the position before the first step, at which lanes start.
  [[nodiscard]] Step* start() const { return steps_.get(); }
  [[nodiscard]] std::uint32_t* units_of(int lane) const {
    return units_.get() + static_cast<std::size_t>(lane) * row;
  }
  /// Allocates the memory of written values.
  void keep_values();
  /// Returns the offset from four times a unit's address to its value's address; 0: values are not
  /// kept.
  [[nodiscard]] std::uintptr_t values() const { return values_from_units_; }
  /// Returns the values written at this step, one row per lane, with the row stride of the units.
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
  /// Returns the successor of a step; 0: none.
  [[nodiscard]] std::uint32_t after(std::uint32_t index) const {
    if (!linear_) return steps_[index].next;
    return index < used_ ? index + 1 : 0;
  }

  /// Records that a lane has advanced to this step.
  void reach(const Step* step) {
    if (linear_ && index_of(step) > used_) used_ = index_of(step);
  }
  /// Inserts a step behind `index` and returns its index; the caller fills it in.
  std::uint32_t insert(std::uint32_t index, std::uintptr_t site);
  /// Returns false if no step of this site is in the list (Bloom filter).
  [[nodiscard]] bool may_hold(std::uintptr_t site) const {
    const std::size_t hash = hash_of(site);
    return (present_[hash / 64] >> (hash % 64) & 1) != 0;
  }
  /// Moves the units of a step to the request and sets the request's active lanes. Call at most
  /// once per step until reset().
  void gather(std::uint32_t index, Request& request);
  /// Empties the list. Steps of a linear list remain as predictions unless `forget`.
  void reset(bool forget);

 private:
  // Rows of units are an odd number of cache lines apart, so that a step's 32 units map to
  // different cache sets.
  static constexpr std::size_t row = capacity + 80;
  /// Transposes the units of a group of adjacent steps from lane-major to step-major order.
  void take(std::uint32_t group);
  static void find_halves(Request& request);
  static void turn(const std::uint32_t* units, std::uint32_t (*steps)[warp_lanes]);
  static std::size_t hash_of(std::uintptr_t site) { return site * 0x9e3779b97f4a7c15u >> 54; }

  std::unique_ptr<Step[]> steps_;
  std::unique_ptr<Target[]> targets_;
  std::unique_ptr<std::uint32_t[]> units_;
  LazyMemory values_;  // allocated only for writes
  std::uintptr_t values_from_units_ = 0;
  // Units of steps 8 * taken_ to 8 * taken_ + 7. `odd` is 0 if the units of all lanes form a
  // progression, given by the first and last lanes' units and the stride; otherwise `units` has
  // them by step and lane.
  static constexpr std::uint32_t group_steps = 8;
  struct Group {
    std::uint32_t first[group_steps], last[group_steps], stride[group_steps], odd[group_steps];
    std::uint32_t units[group_steps][warp_lanes];
  };
  alignas(64) Group group_;
  std::uint32_t taken_ = ~std::uint32_t{0};
  std::uint32_t used_ = 0;  // last slot in use
  bool linear_ = true;
  std::uint64_t present_[16] = {};  // Bloom filter of the steps' sites
};

}  // namespace rung::simt::record
