// SPDX-License-Identifier: Apache-2.0
// Selects the blocks of a regular launch that are recorded.
#include "rung/simt/record/block_sampling.hpp"

#include <cmath>

#include "rung/simt/random.hpp"
#include "rung/simt/record/session.hpp"

namespace rung::simt::record {
namespace {

/// Minimum number of blocks for sampling. Smaller launches are recorded whole, in about 0.1 s.
constexpr std::uint64_t blocks_worth_sampling = 256;
constexpr std::uint64_t requests_worth_sampling = std::uint64_t{1} << 20;
/// Minimum number of consistent inner blocks before a block may be skipped.
constexpr std::size_t members_before_sampling = 8;
/// One of this many groups of 2 x 2 x 2 blocks is always recorded.
constexpr std::uint64_t groups_per_sample = 64;

std::uint64_t blocks_in(const dialect::dim3& extent) {
  return std::uint64_t{extent.x} * extent.y * extent.z;
}

}  // namespace

BlockSampling::BlockSampling(const Launch& launch, bool allowed)
    : possible_(allowed && launch.unrecorded_entry != nullptr && launch.footprint == nullptr &&
                !launch.cooperative && blocks_in(launch.cluster) == 1 &&
                blocks_in(launch.grid) >= blocks_worth_sampling),
      extent_{launch.grid.x, launch.grid.y, launch.grid.z},
      blocks_(blocks_in(launch.grid)),
      findings_before_(findings_added()) {}

std::uint64_t BlockSampling::linear(const Position& block) const {
  return block.at[0] + extent_[0] * (block.at[1] + extent_[1] * block.at[2]);
}

bool BlockSampling::is_inner(const Position& block) const {
  for (int axis = 0; axis < axes; ++axis) {
    const bool edge = block.at[axis] == 0 || block.at[axis] + 1 == extent_[axis];
    if (edge && extent_[axis] != 1) return false;
  }
  return true;
}

bool BlockSampling::measures_distance(const Position& block) const {
  if (extent_[1] != 1 || extent_[2] != 1) return false;
  // The first m blocks, the last m, and every m-th: blocks r and q m have the distance q m - r;
  // block 0 and one of the last m have any distance from N - m.
  const auto m = static_cast<std::uint64_t>(std::ceil(std::sqrt(static_cast<double>(extent_[0]))));
  const std::uint64_t number = block.at[0];
  return number < m || number % m == 0 || number + m >= extent_[0];
}

bool BlockSampling::is_known() const {
  constexpr std::uint64_t edges = 2;
  for (int axis = 0; axis < axes; ++axis) {
    if (extent_[axis] > edges + 1 && !has_slope_[axis]) return false;
  }
  return true;
}

bool BlockSampling::records(const dialect::uint3& index) {
  if (!possible_ || !regular()) return true;
  const Position block{{index.x, index.y, index.z}};
  if (!is_inner(block) || measures_distance(block)) return true;
  const Position group{{index.x / 2, index.y / 2, index.z / 2}};
  if (mix(linear(group) + 1) % groups_per_sample == 0) return true;
  if (findings_added() != findings_before_) {
    give_up();
    return true;
  }
  const std::lock_guard lock(mutex_);
  if (members_.size() < members_before_sampling || !is_known()) return true;
  if (first_did_.requests * blocks_ < requests_worth_sampling) return true;
  ++left_out_;
  return false;
}

void BlockSampling::leave_out() {
  const std::lock_guard lock(mutex_);
  ++left_out_;
}

bool BlockSampling::learn_slopes(const Position& block, std::uint64_t addresses) {
  bool news = false;
  for (int axis = 0; axis < axes; ++axis) {
    if (has_slope_[axis]) continue;
    for (const bool behind : {false, true}) {
      Position neighbor = block;
      neighbor.at[axis] += behind ? 1 : -std::uint64_t{1};
      const auto found = members_.find(linear(neighbor));
      if (found == members_.end()) continue;
      if (!is_inner(neighbor)) continue;
      const std::uint64_t there = found->second.addresses;
      slope_[axis] = behind ? there - addresses : addresses - there;
      has_slope_[axis] = news = true;
      break;
    }
  }
  return news;
}

bool BlockSampling::is_affine(const Position& block, std::uint64_t addresses) const {
  std::uint64_t expected = first_did_.addresses;
  for (int axis = 0; axis < axes; ++axis) {
    const std::uint64_t apart = block.at[axis] - first_.at[axis];  // modulo 2^64
    if (apart != 0 && !has_slope_[axis]) return true;  // checked once the slope is known
    expected += apart * slope_[axis];
  }
  return addresses == expected;
}

void BlockSampling::note(const dialect::uint3& index, const BlockFingerprint& block) {
  if (!possible_ || !regular()) return;
  const Position position{{index.x, index.y, index.z}};
  if (!is_inner(position)) return;
  const std::lock_guard lock(mutex_);
  if (members_.empty()) {
    first_ = position;
    first_did_ = block;
  }
  bool fits = block.shape == first_did_.shape && block.requests == first_did_.requests;
  if (fits && learn_slopes(position, block.addresses)) {
    for (const auto& [number, one] : members_) fits &= is_affine(one.position, one.addresses);
  }
  fits = fits && is_affine(position, block.addresses);
  members_.try_emplace(linear(position), Member{position, block.addresses});
  if (!fits) give_up();
}

}  // namespace rung::simt::record
