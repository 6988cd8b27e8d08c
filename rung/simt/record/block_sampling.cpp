// SPDX-License-Identifier: Apache-2.0
// Selects the blocks of a regular launch that are recorded.
#include "rung/simt/record/block_sampling.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "rung/simt/random.hpp"
#include "rung/simt/record/registry.hpp"
#include "rung/simt/record/session.hpp"

namespace rung::simt::record {
namespace {

/// Minimum number of blocks for sampling. Smaller launches are recorded whole, in about 0.1 s.
constexpr std::uint64_t blocks_worth_sampling = 256;
constexpr std::uint64_t requests_worth_sampling = std::uint64_t{1} << 19;
/// Minimum number of consistent inner blocks before a block may be skipped.
constexpr std::size_t members_before_sampling = 8;
/// One of this many groups of 2 x 2 x 2 blocks is always recorded.
constexpr std::uint64_t groups_per_sample = 64;

/// Limit of the runs kept per block.
constexpr std::size_t max_runs = 4096;

/// Sorts runs and joins those that touch.
std::vector<WrittenRun> in_order(std::vector<WrittenRun> runs) {
  const auto place = [](const WrittenRun& one) { return std::tie(one.region, one.begin, one.end); };
  std::sort(runs.begin(), runs.end(),
            [&](const WrittenRun& a, const WrittenRun& b) { return place(a) < place(b); });
  std::size_t kept = 0;
  for (const WrittenRun& one : runs) {
    const bool joins =
        kept != 0 && runs[kept - 1].region == one.region && one.begin <= runs[kept - 1].end;
    if (joins) {
      runs[kept - 1].end = std::max(runs[kept - 1].end, one.end);
    } else {
      runs[kept++] = one;
    }
  }
  runs.resize(kept);
  return runs;
}

bool are_alike(const std::vector<WrittenRun>& a, const std::vector<WrittenRun>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const WrittenRun& one, const WrittenRun& other) {
        return one.region == other.region && one.end - one.begin == other.end - other.begin;
      });
}

std::uint64_t blocks_in(const dialect::dim3& extent) {
  return std::uint64_t{extent.x} * extent.y * extent.z;
}

}  // namespace

void BlockFingerprint::add_written(Region* region, std::uint64_t begin, std::uint64_t end) {
  if (!written.empty() && written.back().region == region && written.back().end == begin) {
    written.back().end = end;
  } else if (written.size() < max_runs) {
    written.push_back({region, begin, end});
  } else {
    all_written = false;
  }
}

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
  // Selects, with N blocks and m = ceil(sqrt(N)), the first m blocks, the last m, and every m-th. A
  // distance below N - m is q m - r, between a block r < m and block q m; a larger one is the
  // distance from block 0 to one of the last m.
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
      const std::vector<WrittenRun>& own = members_.at(linear(block)).runs;
      learn_runs(axis, behind ? own : found->second.runs, behind ? found->second.runs : own);
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
  const bool knew = is_known() && members_.size() > 1;
  std::vector<WrittenRun> runs = in_order(block.written);
  runs_fit_ &= block.all_written;
  if (members_.empty()) runs_ = runs;
  // Runs are compared once all slopes are known; before that they are kept.
  if (knew) check_runs(position, runs);
  members_.try_emplace(linear(position),
                       Member{position, block.addresses, knew ? std::vector<WrittenRun>() : runs});
  bool fits = block.shape == first_did_.shape && block.requests == first_did_.requests;
  if (fits && learn_slopes(position, block.addresses)) {
    for (const auto& [number, one] : members_) fits &= is_affine(one.position, one.addresses);
  }
  if (!knew && is_known()) {
    for (auto& [number, one] : members_) check_runs(one.position, std::exchange(one.runs, {}));
  }
  fits = fits && is_affine(position, block.addresses);
  if (!fits) give_up();
}

void BlockSampling::learn_runs(int axis, const std::vector<WrittenRun>& lower,
                               const std::vector<WrittenRun>& upper) {
  runs_fit_ &= are_alike(lower, runs_) && are_alike(upper, runs_);
  if (!runs_fit_) return;
  run_slopes_[axis].clear();
  for (std::size_t i = 0; i < lower.size(); ++i) {
    run_slopes_[axis].push_back(upper[i].begin - lower[i].begin);
  }
}

std::uint64_t BlockSampling::run_shift(const Position& block, std::size_t i) const {
  std::uint64_t shift = 0;
  for (int axis = 0; axis < axes; ++axis) {
    const std::uint64_t apart = block.at[axis] - first_.at[axis];
    if (apart != 0 && i < run_slopes_[axis].size()) shift += apart * run_slopes_[axis][i];
  }
  return shift;
}

void BlockSampling::check_runs(const Position& block, const std::vector<WrittenRun>& runs) {
  runs_fit_ = runs_fit_ && are_alike(runs, runs_);
  for (std::size_t i = 0; runs_fit_ && i < runs.size(); ++i) {
    runs_fit_ = runs[i].begin == runs_[i].begin + run_shift(block, i);
  }
}

bool BlockSampling::mark_written() {
  const std::lock_guard lock(mutex_);
  if (!regular() || !runs_fit_ || !is_known()) return false;
  const auto begin = [&](int axis) { return std::uint64_t{extent_[axis] == 1 ? 0u : 1u}; };
  const auto end = [&](int axis) { return extent_[axis] == 1 ? 1 : extent_[axis] - 1; };
  Position block{};
  for (block.at[2] = begin(2); block.at[2] < end(2); ++block.at[2]) {
    for (block.at[1] = begin(1); block.at[1] < end(1); ++block.at[1]) {
      for (block.at[0] = begin(0); block.at[0] < end(0); ++block.at[0]) {
        for (std::size_t i = 0; i < runs_.size(); ++i) {
          const WrittenRun& run = runs_[i];
          const std::uint64_t at = run.begin + run_shift(block, i);
          const std::uint64_t bytes = run.end - run.begin;
          const std::uint64_t room = run.region->memory.bytes;
          if (at < room) run.region->initialized.set(at, std::min(bytes, room - at), true);
        }
      }
    }
  }
  return true;
}

}  // namespace rung::simt::record
