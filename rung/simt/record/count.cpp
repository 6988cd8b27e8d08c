// SPDX-License-Identifier: Apache-2.0
// Counts the events of each request (one instruction of one warp): sectors, bytes, wavefronts, bank
// conflicts.
#include <algorithm>
#include <bit>

#include "rung/simt/record/recorder.hpp"

namespace rung::simt::record {
namespace {

constexpr std::uint32_t banks = 32;
constexpr int line_shift = 7;  // L1 lines of 128 bytes

/// Returns the number of distinct values. Lanes mostly ascend; then counting the changes suffices.
std::uint32_t distinct(const std::uint32_t* numbers, int count) {
  std::uint32_t changes = 1;
  std::uint32_t falls = 0;
  for (int i = 1; i < count; ++i) {
    changes += numbers[i] != numbers[i - 1] ? 1 : 0;
    falls |= numbers[i] < numbers[i - 1] ? 1u : 0u;
  }
  if (falls == 0) return changes;
  std::uint32_t sorted[32];
  std::copy(numbers, numbers + count, sorted);
  std::sort(sorted, sorted + count);
  return static_cast<std::uint32_t>(std::unique(sorted, sorted + count) - sorted);
}

constexpr int half_lanes = 16;

/// Inclusive range of consecutive integers.
struct Range {
  std::uint64_t first, last;
};
/// Returns the range of units of 2^shift bytes that a half-warp touches. The addresses of its lanes
/// must have a constant stride of at most one unit.
Range parts_of_half(const Request& request, int half, int shift) {
  const auto part = [&](int lane) {
    return (request.step.base + (std::uint64_t{request.units[lane]} << request.step.log_size)) >>
           shift;
  };
  const std::uint64_t one = part(half * half_lanes);
  const std::uint64_t other = part(half * half_lanes + half_lanes - 1);
  return {std::min(one, other), std::max(one, other)};
}
std::uint64_t size_of(const Range& range) { return range.last - range.first + 1; }
/// Returns the number of units in the union of two ranges.
std::uint64_t size_of_both(const Range& a, const Range& b) {
  const std::uint64_t first = std::max(a.first, b.first), last = std::min(a.last, b.last);
  return size_of(a) + size_of(b) - (first <= last ? last - first + 1 : 0);
}
/// Returns true if adjacent lanes within each half-warp are at most 2^shift bytes apart.
bool halves_within(const Request& request, int shift) {
  if (!request.halves) return false;
  const std::int64_t step = std::int64_t{request.stride} * (1 << request.step.log_size);
  return (step < 0 ? -step : step) <= std::int64_t{1} << shift;
}

/// Returns the number of aligned units of 2^shift bytes (sectors or larger) that the request
/// touches. No access crosses a unit, since accesses are aligned and not larger.
std::uint32_t touched(const Request& request, int shift) {
  if (request.progression) {
    // A stride of at most one unit touches all units between the first and the last.
    const std::int64_t step = std::int64_t{request.stride} * (1 << request.step.log_size);
    const std::int64_t far = step < 0 ? -step : step;
    if (far > std::int64_t{1} << shift) return 32;
    const std::uint64_t first =
        request.step.base + (std::uint64_t{request.units[0]} << request.step.log_size);
    const std::uint64_t last =
        request.step.base + (std::uint64_t{request.units[31]} << request.step.log_size);
    const std::uint64_t span = (last >> shift) - (first >> shift);
    return 1 + static_cast<std::uint32_t>(step < 0 ? -span : span);
  }
  if (halves_within(request, shift)) {
    return static_cast<std::uint32_t>(
        size_of_both(parts_of_half(request, 0, shift), parts_of_half(request, 1, shift)));
  }
  std::uint32_t numbers[32];
  int count = 0;
  const std::uint64_t skew = request.step.base & ((std::uint64_t{1} << shift) - 1);
  const auto part = [&](int lane) {
    return static_cast<std::uint32_t>(
        ((std::uint64_t{request.units[lane]} << request.step.log_size) + skew) >> shift);
  };
  if (request.lanes == ~std::uint32_t{0}) {
    for (int lane = 0; lane < 32; ++lane) numbers[lane] = part(lane);
    count = 32;
  } else {
    for_each_lane(request.lanes, [&](int lane) { numbers[count++] = part(lane); });
  }
  return distinct(numbers, count);
}

/// Returns the number of distinct addresses of the request.
std::uint32_t distinct_units(const Request& request) {
  if (request.progression) return request.stride == 0 ? 1 : warp_lanes;
  if (request.halves && request.stride >= 0 && request.stride <= 1) {
    const auto half = [&](int first) {
      return Range{request.units[first], request.units[first + half_lanes - 1]};
    };
    return static_cast<std::uint32_t>(size_of_both(half(0), half(half_lanes)));
  }
  std::uint32_t units[32];
  int count = 0;
  for_each_lane(request.lanes, [&](int lane) { units[count++] = request.units[lane]; });
  return distinct(units, count);
}

/// Returns the number of lanes that access the most frequent address.
std::uint32_t most_alike(Request& request) {
  if (request.progression && request.stride != 0) return 1;
  request.spread();
  std::uint32_t units[32];
  int count = 0;
  for_each_lane(request.lanes, [&](int lane) { units[count++] = request.units[lane]; });
  std::sort(units, units + count);
  std::uint32_t most = 0, same = 0;
  for (int i = 0; i < count; ++i) {
    same = i != 0 && units[i] == units[i - 1] ? same + 1 : 1;
    most = std::max(most, same);
  }
  return most;
}
std::uint32_t sectors(const Request& request) { return touched(request, sector_shift); }

/// Returns the wavefronts that these lanes need: the largest number of distinct words that they
/// access in one bank of shared memory. Atomic operations (`each_alone`) on one word are
/// serialized.
std::uint32_t rounds(const Request& request, std::uint32_t lanes, bool each_alone) {
  const int log_size = request.step.log_size;
  const std::uint32_t words_each = log_size > 2 ? 1u << (log_size - 2) : 1;
  // The first word of each bank is kept separately: in most banks all lanes access one word.
  std::uint32_t first_in[banks];
  std::uint32_t others[64];
  int count = 0;
  std::uint32_t used = 0;
  for_each_lane(lanes, [&](int lane) {
    const std::uint32_t first =
        log_size >= 2 ? request.units[lane] * words_each : request.units[lane] >> (2 - log_size);
    for (std::uint32_t word = first; word != first + words_each; ++word) {
      const std::uint32_t bank = word % banks;
      if ((used >> bank & 1) == 0) {
        used |= 1u << bank;
        first_in[bank] = word;
      } else if (each_alone || first_in[bank] != word) {
        others[count++] = word;
      }
    }
  });
  if (count == 0) return 1;
  if (!each_alone) {
    std::sort(others, others + count);
    count = static_cast<int>(std::unique(others, others + count) - others);
  }
  std::uint32_t more_in[banks] = {};
  std::uint32_t most = 0;
  for (int i = 0; i < count; ++i) most = std::max(most, ++more_in[others[i] % banks]);
  return 1 + most;
}

struct Wavefronts {
  std::uint32_t all = 0;
  std::uint32_t needed = 0;  // minimum over all address patterns
};

/// Returns true if each of these lanes reads the same address as lane (lane ^ apart), where both
/// lanes are active.
bool in_pairs(const Request& request, std::uint32_t lanes, int apart) {
  bool same = true;
  for_each_lane(lanes, [&](int lane) {
    const int other = lane ^ apart;
    same &= (lanes >> other & 1) == 0 || request.units[other] == request.units[lane];
  });
  return same;
}

/// Counts wavefronts. Wide accesses are split: into half-warps for 8 bytes, quarter-warps for 16.
/// Two parts whose lanes read in equal pairs share a wavefront (measured on an H200, see
/// docs/counters-against-hardware.md).
Wavefronts wavefronts(Request& request, bool read) {
  const bool alike = request.progression && !is_atomic(request.step.access);
  if (alike && request.stride == 0 && request.step.log_size <= 2) return {1, 1};
  if (alike && request.stride == 1) {
    const std::uint32_t parts = request.step.log_size <= 2 ? 1 : request.step.log_size == 3 ? 2 : 4;
    return {parts, parts};
  }
  request.spread();
  const bool atomic = is_atomic(request.step.access);
  const bool row = request.stride == 0 || request.stride == 1;
  if (request.halves && row && request.step.log_size == 2 && !atomic) {
    // One wavefront if the halves read the same words, or words in distinct banks; else two.
    const std::uint32_t apart = request.units[half_lanes] - request.units[0];
    const std::uint32_t shift = apart % banks;
    const bool same_words = request.stride == 0 ? apart == 0 : apart + half_lanes <= 2 * half_lanes;
    const bool other_banks = request.stride == 0 ? shift != 0 : shift == half_lanes;
    return {same_words || other_banks ? 1u : 2u, 1};
  }
  if (request.step.log_size <= 2) return {rounds(request, request.lanes, atomic), 1};
  const int parts = request.step.log_size == 4 ? 4 : 2;
  const int lanes_each = 32 / parts;
  const std::uint32_t part = (1u << lanes_each) - 1;
  Wavefronts sum;
  const auto go = [&](std::uint32_t lanes) {
    if (lanes == 0) return;
    sum.all += rounds(request, lanes, atomic);
    ++sum.needed;
  };
  for (int i = 0; i < parts; i += 2) {
    const std::uint32_t first = request.lanes & part << (i * lanes_each);
    const std::uint32_t second = request.lanes & part << ((i + 1) * lanes_each);
    const std::uint32_t both = first | second;
    if (read && (in_pairs(request, both, 1) || in_pairs(request, both, 2))) {
      go(both);
    } else {
      go(first);
      go(second);
    }
  }
  return sum;
}

}  // namespace

/// Marks the request's sectors as read or written. Returns true if any of them is new.
bool Recorder::cover(Request& request, bool stores) {
  Coverage* const coverage = request.target.coverage;
  if (coverage == nullptr) return false;
  SectorSet& set = stores ? coverage->stored : coverage->loaded;
  std::uint64_t& bytes = stores ? work_.distinct_store_bytes : work_.distinct_load_bytes;
  const std::uint64_t before = bytes;
  const auto sector = [&](int lane) {
    const std::uint64_t offset = std::uint64_t{request.units[lane]} << request.step.log_size;
    return ((request.step.base + offset) >> sector_shift) - coverage->first_sector;
  };
  const std::int64_t step = std::int64_t{request.stride} * (1 << request.step.log_size);
  if (request.progression && step >= 0 && step <= 1 << sector_shift) {
    bytes += std::uint64_t{set.add(sector(0), sector(31))} << sector_shift;
    return bytes != before;
  }
  if (request.stride >= 0 && halves_within(request, sector_shift)) {
    for (const int half : {0, 1}) {
      const auto [first, last] = parts_of_half(request, half, sector_shift);
      const std::uint64_t begin = coverage->first_sector;
      bytes += std::uint64_t{set.add(first - begin, last - begin)} << sector_shift;
    }
    return bytes != before;
  }
  request.spread();
  for_each_lane(request.lanes, [&](int lane) {
    bytes += std::uint64_t{set.add(sector(lane), sector(lane))} << sector_shift;
  });
  return bytes != before;
}

bool Recorder::continues_vector(const Request& request) {
  constexpr std::uint64_t vector_bytes = 16;
  const std::uint16_t site = request.step.site_index;
  if (last_loads_.size() <= site) last_loads_.resize(site + std::size_t{1});
  LastLoad& last = last_loads_[site];
  LastLoad now{.stretch = stretch_, .lanes = request.lanes};
  now.first = request.units[std::countr_zero(request.lanes) % warp_lanes];
  now.last = request.units[31 - std::countl_zero(request.lanes)];
  const auto offset = [&](std::uint32_t unit) {
    return (request.step.base + (std::uint64_t{unit} << request.step.log_size)) % vector_bytes;
  };
  bool inside = offset(now.first) != 0;
  if (request.progression) {
    now.sum = (std::uint64_t{now.first} + now.last) * (banks / 2);
    const std::int64_t step = std::int64_t{request.stride} * (1 << request.step.log_size);
    inside &= step % static_cast<std::int64_t>(vector_bytes) == 0;
  } else if (request.halves) {
    const std::uint32_t* const units = request.units;
    now.sum = (std::uint64_t{units[0]} + units[half_lanes - 1] + units[half_lanes] + now.last) *
              (half_lanes / 2);
    const std::int64_t step = std::int64_t{request.stride} * (1 << request.step.log_size);
    inside &= step % static_cast<std::int64_t>(vector_bytes) == 0 &&
              offset(units[half_lanes]) == offset(now.first);
  } else {
    for_each_lane(request.lanes, [&](int lane) {
      now.sum += request.units[lane];
      inside &= offset(request.units[lane]) == offset(now.first);
    });
  }
  const auto lanes = static_cast<std::uint64_t>(std::popcount(request.lanes));
  const bool follows = last.stretch == now.stretch && last.lanes == now.lanes &&
                       now.first == last.first + 1 && now.last == last.last + 1 &&
                       now.sum == last.sum + lanes;
  last = now;
  return inside && follows;
}

void Recorder::count(WarpRecord& warp, Request& request, bool aligned) {
  const Where where = request.target.where;
  const bool texture = request.step.access == Access::texture;
  if (!texture) {
    // Local accesses are counted per thread, in count_local().
    if (where == Where::nowhere || where == Where::local) return;
    if (request.step.access >= Access::source_done) return;
  }
  SiteCount& site = counts_[request.step.site_index];
  Counters& c = site.counters;
  // Full warps skip popcount, a function call on CPUs without the instruction.
  const bool whole = request.lanes == ~std::uint32_t{0};
  const std::uint64_t lanes =
      whole ? banks : static_cast<std::uint64_t>(std::popcount(request.lanes));
  const std::uint64_t one = request.target.continues ? 0 : 1;
  const std::uint64_t bytes = lanes << request.step.log_size;
  c.active_lanes += lanes;
  // The counts are inexact if a site occurs with different sets of lanes in one list, as in a loop
  // whose lanes have different trip counts.
  if (site.stretch != stretch_) {
    site.stretch = stretch_;
    site.lanes = request.lanes;
  } else if (request.target.continues) {
    site.lanes |= request.lanes;
  } else if (site.lanes != request.lanes) {
    site.exact = false;
  }
  if (request.lanes != warp.launched) {
    // Without hooks at basic blocks, partial warps are the only evidence of divergence.
    warp.diverged |= !follows_ && !request.target.continues;
    site.exact &= aligned;
  }
  if (texture) {
    c.texture_requests += one;
    return;
  }
  switch (where) {
    case Where::global: {
      keep_sectors(warp, request);
      const bool loads = !is_atomic(request.step.access) && !is_counted_write(request.step.access);
      const bool is_new = cover(request, !loads);
      work_.waits.lines += touched(request, line_shift);
      if (loads) warp.waits.load(is_new ? WarpWaits::Load::memory : WarpWaits::Load::cached);
      if (is_atomic(request.step.access)) {
        c.atomic_requests += one;
        c.atomic_sectors += sectors(request);
        c.atomic_bytes += bytes;
        c.atomic_rounds += most_alike(request);
      } else if (is_counted_write(request.step.access)) {
        c.global_store_requests += one;
        c.global_store_sectors += sectors(request);
        c.global_store_bytes += bytes;
        c.global_store_used_bytes += std::uint64_t{distinct_units(request)}
                                     << request.step.log_size;
      } else {
        c.global_load_requests += one;
        const std::uint32_t loaded = sectors(request);
        c.global_load_sectors += loaded;
        work_.waits.load_sectors.add(loaded);
        c.global_load_bytes += bytes;
        c.global_load_used_bytes += std::uint64_t{distinct_units(request)} << request.step.log_size;
      }
      break;
    }
    case Where::shared:
      if (request.step.access == Access::copy) {
        warp.waits.was_asynchronous();
        work_.waits.merged_requests += one;
      } else if (!is_atomic(request.step.access) && !is_counted_write(request.step.access)) {
        warp.waits.load(WarpWaits::Load::shared);
      }
      if (is_atomic(request.step.access)) {
        c.shared_atomic_requests += one;
        c.shared_atomic_wavefronts += wavefronts(request, false).all;
        c.shared_atomic_bytes += bytes;
        c.shared_atomic_rounds += most_alike(request);
      } else if (is_counted_write(request.step.access)) {
        const Wavefronts waves = wavefronts(request, false);
        c.shared_store_requests += one;
        c.shared_store_wavefronts += waves.all;
        c.shared_store_conflicts += waves.all - waves.needed;
        c.shared_store_bytes += bytes;
      } else {
        const Wavefronts waves = wavefronts(request, true);
        c.shared_load_requests += one;
        c.shared_load_wavefronts += waves.all;
        work_.waits.shared_load_wavefronts.add(waves.all);
        const bool merged = continues_vector(request);
        work_.waits.merged_load_wavefronts += merged ? 0 : waves.all;
        work_.waits.merged_requests += merged ? 1 : 0;
        c.shared_load_conflicts += waves.all - waves.needed;
        c.shared_load_bytes += bytes;
      }
      break;
    case Where::constant:
      c.constant_requests += one;
      c.constant_bytes += bytes;
      c.constant_rounds += distinct_units(request);
      break;
    case Where::local:
    case Where::nowhere:
      break;
  }
}

}  // namespace rung::simt::record
