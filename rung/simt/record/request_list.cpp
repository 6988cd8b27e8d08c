// SPDX-License-Identifier: Apache-2.0
// The list that a warp's lanes walk along.
#include "rung/simt/record/request_list.hpp"

#include <algorithm>
#include <cstring>

namespace rung::simt::record {
namespace {

using Vector __attribute__((vector_size(16))) = std::uint32_t;

}  // namespace

RequestList::RequestList()
    : steps_(std::make_unique<Step[]>(capacity + 4)),
      targets_(std::make_unique<Target[]>(capacity + 4)),
      units_(std::make_unique<std::uint32_t[]>(warp_lanes * row)) {
  std::fill(units_.get(), units_.get() + warp_lanes * row, no_unit);
}

void RequestList::keep_values() {
  if (values_) return;
  values_ = LazyMemory(warp_lanes * value_row() * sizeof(std::uint32_t));
  values_from_units_ = reinterpret_cast<std::uintptr_t>(values_.as<std::byte>()) -
                       value_words * reinterpret_cast<std::uintptr_t>(units_.get());
}

std::uint32_t RequestList::insert(std::uint32_t index, std::uintptr_t site) {
  std::uint32_t at = used_ + 1;
  if (index != used_) {
    if (linear_) {
      for (std::uint32_t i = 0; i < used_; ++i) steps_[i].next = i + 1;
      steps_[used_].next = 0;
      linear_ = false;
    }
    // Its neighbour in memory is not its successor: a gap, at which no walk goes on by itself.
    steps_[at++].site = 0;
  }
  Step& step = steps_[at];
  step.site = site;
  step.next = 0;
  if (!linear_) {
    steps_[at + 1].site = 0;  // what is left over there belongs to no list
    step.next = steps_[index].next;
    steps_[index].next = at;
  }
  used_ = at;
  const std::size_t hash = hash_of(site);
  present_[hash / 64] |= std::uint64_t{1} << (hash % 64);
  return at;
}

void RequestList::take(std::uint32_t group) {
  std::uint32_t* unit = units_.get() + std::size_t{group} * group_steps;
  for (std::size_t lane = 0; lane < warp_lanes; lane += 4) {
    Vector rows[4];  // of a lane each, by step
    for (Vector& one : rows) {
      std::memcpy(&one, unit, sizeof(one));
      std::memset(unit, 0xff, sizeof(one));  // no_unit
      unit += row;
    }
    const Vector low01 = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5);
    const Vector low23 = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5);
    const Vector high01 = __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7);
    const Vector high23 = __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
    const Vector steps[4] = {__builtin_shufflevector(low01, low23, 0, 1, 4, 5),
                             __builtin_shufflevector(low01, low23, 2, 3, 6, 7),
                             __builtin_shufflevector(high01, high23, 0, 1, 4, 5),
                             __builtin_shufflevector(high01, high23, 2, 3, 6, 7)};
    for (std::size_t i = 0; i < 4; ++i) std::memcpy(group_[i] + lane, &steps[i], sizeof(Vector));
  }
  taken_ = group;
}

void RequestList::gather(std::uint32_t index, Request& request) {
  const std::uint32_t group = index / group_steps;
  if (linear_) {
    if (group != taken_) take(group);
    std::memcpy(request.units, group_[index % group_steps], sizeof(request.units));
  } else {
    // Where lists are not linear neighbours in memory do not follow each other.
    std::uint32_t* unit = units_.get() + index;
    for (std::size_t lane = 0; lane < warp_lanes; ++lane) {
      request.units[lane] = unit[lane * row];
      unit[lane * row] = no_unit;
    }
  }
  // Mostly all lanes are there, in step.
  const std::uint32_t stride = request.units[1] - request.units[0];
  const std::uint32_t first = request.units[0];
  Vector expected = {first, first + stride, first + 2 * stride, first + 3 * stride};
  const std::uint32_t four = 4 * stride;
  const Vector step = {four, four, four, four};
  Vector differ = {};
  Vector missing = {};
  for (std::size_t lane = 0; lane < warp_lanes; lane += 4) {
    Vector units;
    std::memcpy(&units, request.units + lane, sizeof(units));
    differ |= units ^ expected;
    missing |= reinterpret_cast<Vector>(units == no_unit);
    expected += step;
  }
  request.stride = static_cast<std::int32_t>(stride);
  request.progression = (differ[0] | differ[1] | differ[2] | differ[3]) == 0;
  if ((missing[0] | missing[1] | missing[2] | missing[3]) == 0) {
    request.lanes = ~std::uint32_t{0};
    return;
  }
  request.progression = false;
  request.lanes = 0;
  for (std::uint32_t lane = 0; lane < warp_lanes; ++lane) {
    request.lanes |= request.units[lane] != no_unit ? 1u << lane : 0;
  }
}

void RequestList::reset(bool forget) {
  if (forget || !linear_) {
    for (std::uint32_t i = 0; i < capacity + 4; ++i) steps_[i] = Step();
    std::fill(std::begin(present_), std::end(present_), 0);
    linear_ = true;
  }
  used_ = 0;
  taken_ = ~std::uint32_t{0};
}

}  // namespace rung::simt::record
