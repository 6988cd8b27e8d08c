// SPDX-License-Identifier: Apache-2.0
// Sources of copies in flight: memory that a copy to shared memory may still read. A write to it by
// any thread races with the copy until the copy has been waited for.
//
// A cp.async adds its source at the step of the list where it is issued, and removes it at the step
// where its thread waits; writes are checked in the order of the list, so that only those in
// between see the source. A bulk copy is known when it is issued. It counts as landed once the
// writing warp has acquired the copy's number from an mbarrier (copies.cpp).
#include <algorithm>
#include <string>
#include <utility>

#include "rung/simt/record/finding_text.hpp"
#include "rung/simt/record/findings.hpp"
#include "rung/simt/record/operations.hpp"
#include "rung/simt/record/recorder.hpp"
#include "rung/simt/record/source.hpp"
#include "rung/simt/scheduler.hpp"

namespace rung::simt::record {
namespace {

constexpr std::uintptr_t granule = 16;  // widest access: none spans two granules

std::uint32_t first_thread(const BlockRecord& block, const WarpRecord& warp) {
  return static_cast<std::uint32_t>(&warp - block.warps.data()) *
         static_cast<std::uint32_t>(warp_lanes);
}

std::uintptr_t address_of(const Request& request, std::uint32_t lane) {
  return request.step.base + (std::uintptr_t{request.units[lane]} << request.step.log_size);
}

Flight as_flight(const SourceRead& source) {
  Flight flight;
  flight.thread = source.thread;
  flight.site = source.site;
  flight.range.begin = source.begin;
  flight.range.bytes = source.bytes;
  return flight;
}

/// Returns true if the set has a copy of the load: a multicast has read its source once one of its
/// copies has landed.
bool has_landed(const CopySet& copies, const Flight& load) {
  for (std::uint32_t i = 0; i < load.copies; ++i) {
    if (copies.has(load.copy + i)) return true;
  }
  return false;
}

}  // namespace

std::string source_message(const char* who, const char* starter, bool bulk,
                           const std::string& object) {
  return std::string(who) + " overwrites the source of " +
         (bulk ? "a bulk copy" : "an asynchronous copy") + " that " + starter +
         " has started, while the copy is in flight: " + object;
}

std::string source_advice(bool bulk) {
  return bulk ? "wait for the copy's mbarrier before its source is written: a barrier behind the "
                "thread that starts the copy is no wait"
              : "wait for the copy before its source is written, in the thread that starts it, and "
                "then a barrier: cp.async.wait_group, __pipeline_wait_prior(), cg::wait() or a "
                "pipeline's consumer_wait()";
}

void Recorder::start_load(const Place& place, const CopyRange& from, std::uint32_t copy) {
  // Copies 256 or more numbers behind the latest are assumed to have landed (CopySet).
  constexpr std::size_t kept_loads = 256;
  if (block_->loads.size() >= kept_loads) block_->loads.erase(block_->loads.begin());
  Flight flight = flight_of(place, from);
  flight.copy = copy;
  block_->loads.push_back(flight);
}

void Recorder::note_sources(BlockRecord& block, const WarpRecord& warp, Request& request) {
  request.spread();
  const std::uint32_t bytes = 1u << request.step.log_size;
  const bool starts = request.step.access == Access::source;
  for_each_lane(request.lanes, [&](int lane) {
    const auto number = static_cast<std::uint32_t>(lane);
    const std::uintptr_t at = address_of(request, number);
    const std::uint32_t thread = first_thread(block, warp) + number;
    if (starts) {
      block.sources.insert({at / granule, {at, bytes, thread, request.step.site}});
      block.sources_begin = std::min(block.sources_begin, at);
      block.sources_end = std::max(block.sources_end, at + bytes);
      return;
    }
    auto [one, end] = block.sources.equal_range(at / granule);
    while (one != end && (one->second.begin != at || one->second.thread != thread)) ++one;
    if (one != end) block.sources.erase(one);
  });
}

void Recorder::check_sources(const BlockRecord& block, const WarpRecord& warp, Request& request) {
  const Access access = request.step.access;
  if (!writes(access) || access == Access::landed || is_by_engine(access)) return;
  request.spread();
  const std::uintptr_t bytes = std::uintptr_t{1} << request.step.log_size;
  std::uintptr_t begin = ~std::uintptr_t{0}, end = 0;
  for_each_lane(request.lanes, [&](int lane) {
    const std::uintptr_t at = address_of(request, static_cast<std::uint32_t>(lane));
    begin = std::min(begin, at);
    end = std::max(end, at + bytes);
  });
  const std::uint32_t first = first_thread(block, warp);
  if (!block.sources.empty() && begin < block.sources_end && block.sources_begin < end) {
    for (std::uint32_t left = request.lanes; left != 0; left &= left - 1) {
      const auto lane = static_cast<std::uint32_t>(__builtin_ctz(left));
      const std::uintptr_t at = address_of(request, lane);
      const auto [one, last] = block.sources.equal_range(at / granule);
      const auto read = std::find_if(one, last, [&](const auto& entry) {
        return entry.second.begin < at + bytes && at < entry.second.begin + entry.second.bytes;
      });
      if (read == last) continue;
      report_source(block, request, as_flight(read->second), at, first + lane);
      break;
    }
  }
  const std::uint32_t clock = warp.clock + request.step.clock;
  for (const Flight& load : block.loads) {
    if (!load.range.overlaps(begin, end) || has_landed(warp.known.copies, load)) continue;
    for (std::uint32_t left = request.lanes; left != 0; left &= left - 1) {
      const auto lane = static_cast<std::uint32_t>(__builtin_ctz(left));
      const std::uintptr_t at = address_of(request, lane);
      if (!load.range.overlaps(at, at + bytes)) continue;
      const std::uint32_t thread = first + lane;
      const bool before = thread == load.thread
                              ? block.flight_orders.at(thread).passed_issues < load.number
                              : precedes(load, warp, thread, clock);
      if (before) continue;
      report_source(block, request, load, at, thread);
      return;
    }
  }
}

bool Recorder::has_waited_for(const Flight& load) const {
  if (has_landed(known_before().copies, load)) return true;
  return std::any_of(
      warp_->lessons.begin(), warp_->lessons.end(), [&](const WarpRecord::Lesson& one) {
        const Clocks* const told = one.from->of(block_->number);
        return one.lane == thread_->lane && told != nullptr && has_landed(told->copies, load);
      });
}

void Recorder::check_sources(const Place& place, const CopyRange& to) {
  const auto report = [&](const Flight& source) {
    Step step;
    Target target;
    step.site = site_of(place);
    step.site_index = site_index(step.site);
    step.access = Access::engine_write;
    const std::uintptr_t at = to.first_common(source.range);
    this->place(step, target, at, 1);
    report_source(*block_, Request{step, target}, source, at, thread_index());
  };
  if (to.overlaps(block_->sources_begin, block_->sources_end)) {
    for (const auto& [number, source] : block_->sources) {
      if (!to.overlaps(source.begin, source.begin + source.bytes)) continue;
      report(as_flight(source));
      break;
    }
  }
  for (const Flight& load : block_->loads) {
    if (!to.overlaps(load.range) || has_waited_for(load)) continue;
    report(load);
    break;
  }
}

void Recorder::report_source(const BlockRecord& block, const Request& request, const Flight& source,
                             std::uintptr_t address, std::uint32_t thread) {
  if (!is_news(Kind::race, request.step.site_index, site_index(source.site))) return;
  Finding finding =
      describe(Kind::race, *this, request.step, request.target.where, block.number, thread);
  const Source& other = source_of(source.site);
  finding.other_file = other.file;
  finding.other_line = other.line;
  finding.other_block = finding.block;
  finding.other_thread = index_in(launch_->launch.block, source.thread);
  const Region* const region = request.target.region;
  name_object(launch_->launch, finding, address, region,
              region != nullptr || request.target.block == nullptr ? *block.block
                                                                   : *request.target.block->block);
  const bool bulk = source.copy != 0;
  finding.message =
      source_message(is_by_engine(request.step.access) ? "a bulk store" : "one thread",
                     thread == source.thread ? "it" : "another thread", bulk, finding.object_text);
  finding.advice = source_advice(bulk);
  // Highest rank: this finding has better advice than the race with the copy's access that is found
  // when the copy lands.
  finding.racers.across_blocks = true;
  add(std::move(finding));
}

}  // namespace rung::simt::record
