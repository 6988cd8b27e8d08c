// SPDX-License-Identifier: Apache-2.0
// List of the accesses of a warp's lanes.
#include "rung/simt/record/request_list.hpp"

#include <algorithm>
#include <cstring>

namespace rung::simt::record {
namespace {

using Vector __attribute__((vector_size(16))) = std::uint32_t;

void find_progression(Request& request) {
  const std::uint32_t stride = request.units[1] - request.units[0];
  std::uint32_t odd = 0;
  for (std::uint32_t lane = 0; lane < warp_lanes; ++lane) {
    odd |= request.units[lane] ^ (request.units[0] + lane * stride);
  }
  request.stride = static_cast<std::int32_t>(stride);
  request.progression = odd == 0;
}

}  // namespace

/// Sets `halves` if both half-warps are progressions with the same stride. All lanes must be
/// active.
void RequestList::find_halves(Request& request) {
  constexpr std::uint32_t half = warp_lanes / 2;
  const std::uint32_t* const units = request.units;
  const std::uint32_t stride = units[1] - units[0];
  std::uint32_t odd = 0;
  for (std::uint32_t lane = 0; lane < half; ++lane) {
    odd |= units[lane] ^ (units[0] + lane * stride);
    odd |= units[half + lane] ^ (units[half] + lane * stride);
  }
  if (odd != 0) return;
  request.halves = true;
  request.stride = static_cast<std::int32_t>(stride);
}

RequestList::RequestList()
    : steps_(std::make_unique<Step[]>(room)),
      targets_(std::make_unique<Target[]>(room)),
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
    // A gap, which matches no access, separates steps that are adjacent in memory but not
    // consecutive.
    steps_[at++].site = 0;
  }
  Step& step = steps_[at];
  step.site = site;
  step.next = 0;
  if (!linear_) {
    steps_[at + 1].site = 0;  // separates leftover steps from the list
    step.next = steps_[index].next;
    steps_[index].next = at;
  }
  used_ = at;
  const std::size_t hash = hash_of(site);
  present_[hash / 64] |= std::uint64_t{1} << (hash % 64);
  return at;
}

/// Transposes the units of four steps at a time from lane-major to step-major order.
void RequestList::turn(const std::uint32_t* units, std::uint32_t (*steps)[warp_lanes]) {
  for (std::size_t lane = 0; lane < warp_lanes; lane += 4) {
    Vector rows[4];
    for (Vector& one : rows) {
      std::memcpy(&one, units, sizeof(one));
      units += row;
    }
    const Vector low01 = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5);
    const Vector low23 = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5);
    const Vector high01 = __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7);
    const Vector high23 = __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
    const Vector turned[4] = {__builtin_shufflevector(low01, low23, 0, 1, 4, 5),
                              __builtin_shufflevector(low01, low23, 2, 3, 6, 7),
                              __builtin_shufflevector(high01, high23, 0, 1, 4, 5),
                              __builtin_shufflevector(high01, high23, 2, 3, 6, 7)};
    for (std::size_t i = 0; i < 4; ++i) std::memcpy(steps[i] + lane, &turned[i], sizeof(Vector));
  }
}

void RequestList::take(std::uint32_t group) {
  taken_ = group;
  std::uint32_t* const units = units_.get() + std::size_t{group} * group_steps;
  // Fast path: all lanes are active and their units are a progression. An inactive lane passes this
  // test only as the first or last lane, since valid units are below 2^31.
  for (std::uint32_t half = 0; half < group_steps; half += 4) {
    std::uint32_t* next = units + half;
    const auto load = [&] {
      Vector one;
      std::memcpy(&one, next, sizeof(one));
      next += row;
      return one;
    };
    const Vector first = load();
    Vector last = load();
    const Vector stride = last - first;
    Vector odd = reinterpret_cast<Vector>(first == no_unit);
    for (int lane = 2; lane < warp_lanes; ++lane) {
      const Vector unit = load();
      odd |= (unit - last) ^ stride;
      last = unit;
    }
    odd |= reinterpret_cast<Vector>(last == no_unit);
    std::memcpy(group_.first + half, &first, sizeof(first));
    std::memcpy(group_.last + half, &last, sizeof(last));
    std::memcpy(group_.stride + half, &stride, sizeof(stride));
    std::memcpy(group_.odd + half, &odd, sizeof(odd));
    if ((odd[0] | odd[1] | odd[2] | odd[3]) != 0) turn(units + half, group_.units + half);
  }
  std::uint32_t* next = units;
  for (int lane = 0; lane < warp_lanes; ++lane) {
    std::memset(next, 0xff, group_steps * sizeof(*next));  // no_unit
    next += row;
  }
}

void RequestList::gather(std::uint32_t index, Request& request) {
  if (linear_) {
    if (index / group_steps != taken_) take(index / group_steps);
    const std::uint32_t i = index % group_steps;
    if (group_.odd[i] == 0) {
      request.progression = true;
      request.lanes = ~std::uint32_t{0};
      request.stride = static_cast<std::int32_t>(group_.stride[i]);
      request.units[0] = group_.first[i];
      request.units[warp_lanes - 1] = group_.last[i];
      return;
    }
    std::memcpy(request.units, group_.units[i], sizeof(request.units));
  } else {
    // In a nonlinear list, adjacent steps are not consecutive.
    std::uint32_t* unit = units_.get() + index;
    for (std::size_t lane = 0; lane < warp_lanes; ++lane) {
      request.units[lane] = unit[lane * row];
      unit[lane * row] = no_unit;
    }
  }
  Vector missing = {};
  for (std::size_t lane = 0; lane < warp_lanes; lane += 4) {
    Vector units;
    std::memcpy(&units, request.units + lane, sizeof(units));
    missing |= reinterpret_cast<Vector>(units == no_unit);
  }
  if ((missing[0] | missing[1] | missing[2] | missing[3]) == 0) {
    request.lanes = ~std::uint32_t{0};
    if (!linear_) find_progression(request);
    if (!request.progression) find_halves(request);
    return;
  }
  for (std::uint32_t lane = 0; lane < warp_lanes; ++lane) {
    request.lanes |= request.units[lane] != no_unit ? 1u << lane : 0;
  }
}

void RequestList::reset(bool forget) {
  if (forget || !linear_) {
    for (std::uint32_t i = 0; i < room; ++i) steps_[i] = Step();
    std::fill(std::begin(present_), std::end(present_), 0);
    linear_ = true;
  }
  used_ = 0;
  taken_ = ~std::uint32_t{0};
}

}  // namespace rung::simt::record
