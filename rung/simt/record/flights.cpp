// SPDX-License-Identifier: Apache-2.0
// Bulk stores in flight: from issue until their thread has waited, they read shared memory and
// write global memory, and conflicting accesses race with them.
//
// Only a wait by the issuing thread orders a later access after the store; barriers alone do not.
// Accesses are checked when lists become requests, possibly after the wait: accesses of other
// threads are then checked against the shadow cells that the wait has left, and accesses of the
// issuing thread are ordered by marks in its list.
#include <algorithm>
#include <utility>

#include "rung/simt/record/finding_text.hpp"
#include "rung/simt/record/findings.hpp"
#include "rung/simt/record/operations.hpp"
#include "rung/simt/record/recorder.hpp"
#include "rung/simt/record/source.hpp"
#include "rung/simt/scheduler.hpp"

namespace rung::simt::record {
namespace {

constexpr std::uintptr_t issue_site = place_bit | 7;
constexpr std::uintptr_t wait_site = place_bit | 9;

}  // namespace

CopyRange::CopyRange(ByteRanges box_rows) {
  if (box_rows.empty()) return;
  std::sort(box_rows.begin(), box_rows.end(),
            [](const ByteRange& a, const ByteRange& b) { return a.begin < b.begin; });
  ByteRanges joined;
  for (const ByteRange& row : box_rows) {
    if (!joined.empty() && row.begin <= joined.back().end) {
      joined.back().end = std::max(joined.back().end, row.end);
    } else {
      joined.push_back(row);
    }
  }
  begin = joined.front().begin;
  bytes = joined.back().end - begin;
  if (joined.size() > 1) rows = std::make_shared<const ByteRanges>(std::move(joined));
}

std::uintptr_t CopyRange::first_common(const CopyRange& other) const {
  const auto in_row = [&](std::uintptr_t from, std::uintptr_t to) -> std::uintptr_t {
    if (!other.overlaps(from, to)) return 0;
    if (other.rows == nullptr) return std::max(from, other.begin);
    const auto row = std::find_if(other.rows->begin(), other.rows->end(),
                                  [&](const ByteRange& one) { return from < one.end; });
    return std::max(from, row->begin);
  };
  if (rows == nullptr) return bytes == 0 ? 0 : in_row(begin, begin + bytes);
  for (const ByteRange& row : *rows) {
    if (const std::uintptr_t at = in_row(row.begin, row.end); at != 0) return at;
  }
  return 0;
}

std::uint32_t Recorder::thread_index() const {
  return static_cast<std::uint32_t>(warp_ - block_->warps.data()) * warp_lanes + thread_->lane;
}

void Recorder::mark_issue() { trace_slowly(0, issue_site, 0, Access::marker); }

Flight Recorder::flight_of(const Place& place, CopyRange range) {
  Flight flight;
  flight.thread = thread_index();
  flight.number = ++block_->flight_orders[thread_index()].issued;
  flight.site = site_of(place);
  flight.known = warp_->known;
  flight.synced = warp_->synced[thread_->lane];
  flight.told = warp_->told[thread_->lane];
  flight.range = std::move(range);
  return flight;
}

bool Recorder::precedes(const Flight& flight, const WarpRecord& warp, std::uint32_t thread,
                        std::uint32_t clock) {
  const std::uint32_t own = flight.thread / static_cast<std::uint32_t>(warp_lanes);
  const std::uint32_t other = thread / static_cast<std::uint32_t>(warp_lanes);
  if (other != own) return flight.known[other] >= clock;
  return flight.told >= clock ||
         (flight.synced > clock && warp.synced[thread % warp_lanes] > clock);
}

std::uint32_t Recorder::take_off(const Place& place, const CopyRange& from, const CopyRange& to,
                                 bool reduces) {
  if (!checking_) return 0;
  launch_->sampling.give_up();
  if (block_->has_sources()) check_sources(place, to);
  mark_issue();
  // Limit of the bulk stores kept per block; the oldest are dropped.
  constexpr std::size_t kept_flights = 256;
  if (block_->flights.size() >= kept_flights) block_->flights.erase(block_->flights.begin());
  Flight flight = flight_of(place, from);
  block_->flights.push_back(flight);
  if (!reduces && to.bytes != 0) {
    flight.range = to;
    flight.writes = true;
    block_->flights.push_back(flight);
  }
  return flight.number;
}

void Recorder::end_flights(std::uint32_t number, bool read_only) {
  if (!checking_ || block_->flights.empty()) return;
  const std::uint32_t thread = thread_index();
  FlightOrder& order = block_->flight_orders[thread];
  bool any = false;
  for (const Flight& flight : block_->flights) {
    any |= flight.thread == thread && flight.number <= number && flight.waited == 0 &&
           !(read_only && flight.writes);
  }
  if (!any) return;
  trace_slowly(0, wait_site, 0, Access::marker);
  ++order.waits;
  for (Flight& flight : block_->flights) {
    if (flight.thread != thread || flight.number > number || flight.waited != 0) continue;
    if (!(read_only && flight.writes)) flight.waited = order.waits;
  }
}

void Recorder::drop_flights() {
  // No later access of the block is ordered after the writes of stores that were not waited for.
  const std::uint32_t thread = thread_index();
  std::erase_if(block_->flights, [&](const Flight& one) {
    return one.thread == thread && (!one.writes || one.waited != 0);
  });
}

/// Updates the flights at an issue or wait mark of a warp's list, for the lanes that pass the mark.
void Recorder::pass_flights(BlockRecord& block, const WarpRecord& warp, const Request& request) {
  const bool issues = request.step.site == issue_site;
  if (!issues && (block.flights.empty() || request.step.site != wait_site)) return;
  const auto first = static_cast<std::uint32_t>(&warp - block.warps.data()) *
                     static_cast<std::uint32_t>(warp_lanes);
  for_each_lane(request.lanes, [&](int lane) {
    const std::uint32_t thread = first + static_cast<std::uint32_t>(lane);
    FlightOrder& order = block.flight_orders[thread];
    ++(issues ? order.passed_issues : order.passed_waits);
    if (issues) return;
    std::erase_if(block.flights, [&](const Flight& flight) {
      return flight.thread == thread && flight.waited != 0 && flight.waited <= order.passed_waits;
    });
  });
}

void Recorder::check_flights(const BlockRecord& block, const WarpRecord& warp, Request& request) {
  const Access access = request.step.access;
  const bool reads = is_read(access);
  if (access == Access::touch || access == Access::landed) return;
  const auto first = static_cast<std::uint32_t>(&warp - block.warps.data()) *
                     static_cast<std::uint32_t>(warp_lanes);
  const std::uint32_t clock = warp.clock + request.step.clock;
  const std::size_t bytes = std::size_t{1} << request.step.log_size;
  const bool early = request.copy != 0 || is_by_engine(access);  // not checked from a list
  request.spread();
  for (const Flight& flight : block.flights) {
    if (reads && !flight.writes) continue;
    if (flight.site == request.step.site && is_by_engine(access)) continue;
    for (std::uint32_t left = request.lanes; left != 0; left &= left - 1) {
      const auto lane = static_cast<std::uint32_t>(__builtin_ctz(left));
      const std::uintptr_t at =
          request.step.base + (std::uintptr_t{request.units[lane]} << request.step.log_size);
      if (!flight.range.overlaps(at, at + bytes)) continue;
      const std::uint32_t thread = first + lane;
      if (thread == flight.thread) {
        const FlightOrder& order = block.flight_orders.at(thread);
        if (early ? flight.waited != 0 : order.passed_issues < flight.number) continue;
        if (!early && flight.waited != 0 && flight.waited <= order.passed_waits) continue;
      } else {
        if (flight.waited != 0 || precedes(flight, warp, thread, clock)) continue;
      }
      report_flight(block, request, flight, at, thread);
      return;
    }
  }
}

void Recorder::report_flight(const BlockRecord& block, const Request& request, const Flight& flight,
                             std::uintptr_t address, std::uint32_t thread) {
  if (!is_news(Kind::race, request.step.site_index, site_index(flight.site))) return;
  Finding finding =
      describe(Kind::race, *this, request.step, request.target.where, block.number, thread);
  const Source& other = source_of(flight.site);
  finding.other_file = other.file;
  finding.other_line = other.line;
  finding.other_block = finding.block;
  finding.other_thread = index_in(launch_->launch.block, flight.thread);
  const Region* const region = request.target.region;
  name_object(launch_->launch, finding, address, region,
              region != nullptr ? *block.block : *request.target.block->block);
  const bool is_copy = is_by_engine(request.step.access);
  finding.message = std::string(is_copy ? "a copy " : "one thread ") +
                    (is_read(request.step.access) ? "reads " : "writes ") + finding.object_text +
                    " while a bulk store that " + (thread == flight.thread ? "it" : "another") +
                    " has started " + (flight.writes ? "writes it" : "still reads it");
  if (is_copy && thread == flight.thread) {
    finding.message = "a copy writes " + finding.object_text +
                      " while a bulk store of the same thread still reads it";
  }
  finding.advice =
      flight.writes
          ? "wait for the store by cp.async.bulk.commit_group and cp.async.bulk.wait_group 0 in "
            "the thread that starts it, and then a barrier: wait_group.read is not enough"
          : "wait for the store before its bytes are written again: cp.async.bulk.commit_group "
            "behind it and cp.async.bulk.wait_group.read 0 in the thread that starts it, and then "
            "a barrier; of N stores that may be in flight each needs bytes of its own";
  // Highest rank: this finding has better advice than the race with the copy's access that is found
  // when the copy lands.
  finding.racers.across_blocks = true;
  add(std::move(finding));
}

}  // namespace rung::simt::record
