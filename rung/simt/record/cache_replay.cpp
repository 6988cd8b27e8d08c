// SPDX-License-Identifier: Apache-2.0
// Replays traces through L1 and L2, round-robin over the SMs.
#include "rung/simt/record/cache_replay.hpp"

#include <algorithm>
#include <bit>
#include <optional>

#include "rung/simt/record/cache.hpp"
#include "rung/simt/record/coverage.hpp"

namespace rung::simt::record {
namespace {

using RunKind = SectorRun::Kind;

constexpr std::size_t l1_sets = 4;   // as measured on Volta
constexpr std::size_t l2_ways = 16;  // as measured on Volta
constexpr std::uint64_t sector_bytes = std::uint64_t{1} << sector_shift;

class Model {
 public:
  Model(const Chip& chip, const CacheShape& shape, std::size_t sites)
      : l1_(static_cast<std::size_t>(chip.multiprocessors)),
        l1_ways_(shape.l1_bytes / line_bytes / l1_sets),
        l2_(std::max<std::size_t>(chip.l2_bytes / line_bytes / l2_ways, 1), l2_ways),
        sites_(sites) {}

  /// Accesses the sectors of a run. `stride`: in sectors.
  void access(std::size_t sm, const SectorRun& run, std::uint64_t stride) {
    Counters& c = sites_[run.site()];
    const std::uint64_t behind = run.first() + run.count() * stride;
    for (std::uint64_t first = run.first(); first < behind;) {
      const std::uint64_t line = first / sectors_per_line;
      unsigned sectors = 0;
      for (; first < behind && first / sectors_per_line == line; first += stride) {
        sectors |= 1u << first % sectors_per_line;
      }
      access(sm, line, static_cast<std::uint8_t>(sectors), run.kind(), c);
    }
  }
  Replayed take() && { return {std::move(sites_), l2_.dirty() * sector_bytes}; }

 private:
  static std::uint64_t count(unsigned sectors) {
    return static_cast<std::uint64_t>(std::popcount(sectors));
  }

  static bool is_store(RunKind kind) {
    return kind == RunKind::store || kind == RunKind::partial_store;
  }
  static Cache::Line* fresh_line(Cache& l1, std::uint64_t line, Counters& c) {
    const Cache::Fresh fresh = l1.add(line);
    c.l1_evictions += fresh.evicts ? 1 : 0;
    return fresh.line;
  }

  /// Accesses L1, which writes through and keeps stored data. `dirty` marks sectors valid in part:
  /// a store hits them, a load does not.
  void access(std::size_t sm, std::uint64_t line, std::uint8_t sectors, RunKind kind, Counters& c) {
    if (kind == RunKind::load) {
      std::optional<Cache>& l1 = l1_[sm];
      if (!l1) l1.emplace(l1_sets, l1_ways_);
      Cache::Line* here = l1->find(line);
      const std::uint8_t hits = here != nullptr ? here->valid & sectors : 0;
      c.l1_load_hits += count(hits);
      if (hits == sectors) return;
      if (here == nullptr) here = fresh_line(*l1, line, c);
      if (here != nullptr) here->valid |= sectors;
      sectors &= static_cast<std::uint8_t>(~hits);
    } else if (is_store(kind)) {
      std::optional<Cache>& l1 = l1_[sm];
      if (!l1) l1.emplace(l1_sets, l1_ways_);
      Cache::Line* here = l1->find(line);
      if (here == nullptr) here = fresh_line(*l1, line, c);
      if (here != nullptr) {
        c.l1_store_hits += count((here->valid | here->dirty) & sectors);
        (kind == RunKind::store ? here->valid : here->dirty) |= sectors;
      }
    } else if (l1_[sm] && kind == RunKind::atomic) {
      // The result of an atomic operation is stored in L2 only.
      if (Cache::Line* const here = l1_[sm]->find(line); here != nullptr) {
        here->valid &= static_cast<std::uint8_t>(~sectors);
        here->dirty &= static_cast<std::uint8_t>(~sectors);
      }
    }
    access_l2(line, sectors, kind, c);
  }

  void access_l2(std::uint64_t line, std::uint8_t sectors, RunKind kind, Counters& c) {
    c.l2_sectors += count(sectors);
    Cache::Line* here = l2_.find(line);
    if (here == nullptr) {
      const Cache::Fresh fresh = l2_.add(line);
      c.l2_evictions += fresh.evicts ? 1 : 0;
      c.dram_write_bytes += count(fresh.dirty) * sector_bytes;
      here = fresh.line;
    }
    const std::uint8_t hits = is_store(kind) ? sectors : here->valid & sectors;
    c.l2_hits += count(hits);
    c.dram_read_bytes += (count(sectors) - count(hits)) * sector_bytes;
    here->valid |= sectors;
    if (is_store(kind) || kind == RunKind::atomic) here->dirty |= sectors;
  }

  std::vector<std::optional<Cache>> l1_;  // by SM; constructed at the SM's first load
  std::size_t l1_ways_;
  Cache l2_;
  std::vector<Counters> sites_;
};

/// The resident warps of one SM.
class Multiprocessor {
 public:
  void start(const BlockTrace& block) {
    const std::size_t own = blocks_.size();
    blocks_.push_back({block.warps.size(), 0});
    for (const WarpTrace& warp : block.warps) warps_.push_back({&warp, 0, own, false});
  }
  [[nodiscard]] bool busy() const { return !warps_.empty(); }

  /// Replays one request of the next warp that does not wait at a barrier. Returns the number of
  /// blocks that ended.
  std::size_t step(Model& model, std::size_t sm) {
    std::size_t ended = 0;
    for (std::size_t tries = warps_.size(); tries != 0 && busy(); --tries) {
      next_ %= warps_.size();
      Warp& warp = warps_[next_];
      if (warp.waits) {
        ++next_;
        continue;
      }
      if (warp.at == warp.trace->size()) {
        ended += end(next_);
        continue;
      }
      if ((*warp.trace)[warp.at].kind() == RunKind::barrier) {
        ++warp.at;
        warp.waits = true;
        ++next_;
        const std::size_t block = warp.block;
        ++blocks_[block].waiting;
        release(block);
        continue;
      }
      do {
        const SectorRun& run = (*warp.trace)[warp.at++];
        model.access(sm, run, run.strided() ? (*warp.trace)[warp.at++].as_stride() : 1);
      } while (warp.at != warp.trace->size() && (*warp.trace)[warp.at].continues());
      ++next_;
      return ended;
    }
    return ended;
  }

 private:
  struct Warp {
    const WarpTrace* trace;
    std::size_t at;
    std::size_t block;
    bool waits;
  };
  struct Resident {
    std::size_t live, waiting;
  };

  void release(std::size_t block) {
    if (blocks_[block].waiting != blocks_[block].live) return;
    blocks_[block].waiting = 0;
    for (Warp& warp : warps_) warp.waits &= warp.block != block;
  }
  std::size_t end(std::size_t index) {
    const std::size_t block = warps_[index].block;
    warps_.erase(warps_.begin() + static_cast<std::ptrdiff_t>(index));
    if (--blocks_[block].live == 0) return 1;
    release(block);
    return 0;
  }

  std::vector<Warp> warps_;
  std::vector<Resident> blocks_;
  std::size_t next_ = 0;
};

}  // namespace

CacheShape cache_shape(const Chip& chip, std::uint64_t block_threads, std::uint64_t shared_bytes) {
  const std::uint64_t warps = (block_threads + warp_lanes - 1) / warp_lanes;
  CacheShape shape;
  shape.resident = std::min<std::uint64_t>(
      static_cast<std::uint64_t>(chip.threads) / std::max<std::uint64_t>(warps * warp_lanes, 1),
      static_cast<std::uint64_t>(chip.blocks));
  const std::uint64_t each = shared_bytes + chip.shared_reserved;
  const std::size_t most = chip.carveouts.empty() ? 0 : chip.carveouts.back();
  if (each != 0) shape.resident = std::min<std::uint64_t>(shape.resident, most / each);
  std::size_t taken = most;
  for (const std::size_t carveout : chip.carveouts) {
    if (carveout < shape.resident * each) continue;
    taken = carveout;
    break;
  }
  shape.resident = std::max<std::uint64_t>(shape.resident, 1);
  shape.l1_bytes = chip.l1_bytes > taken ? chip.l1_bytes - taken : 0;
  return shape;
}

Replayed replay(std::vector<BlockTrace>& blocks, std::size_t sites, const Chip& chip,
                const CacheShape& shape) {
  std::sort(blocks.begin(), blocks.end(),
            [](const BlockTrace& a, const BlockTrace& b) { return a.number < b.number; });
  Model model(chip, shape, sites);
  std::vector<Multiprocessor> all(static_cast<std::size_t>(chip.multiprocessors));
  std::size_t next = 0;
  for (std::uint64_t round = 0; round < shape.resident; ++round) {
    for (Multiprocessor& one : all) {
      if (next < blocks.size()) one.start(blocks[next++]);
    }
  }
  for (bool busy = true; busy;) {
    busy = false;
    for (std::size_t sm = 0; sm < all.size(); ++sm) {
      if (!all[sm].busy()) continue;
      for (std::size_t ended = all[sm].step(model, sm); ended != 0; --ended) {
        if (next < blocks.size()) all[sm].start(blocks[next++]);
      }
      busy = true;
    }
  }
  return std::move(model).take();
}

}  // namespace rung::simt::record
