// SPDX-License-Identifier: Apache-2.0
// Text of races, and advice for races whose source code is unknown.
#include <string>
#include <utility>

#include "rung/simt/record/finding_text.hpp"
#include "rung/simt/record/findings.hpp"
#include "rung/simt/record/operations.hpp"
#include "rung/simt/record/source.hpp"
#include "rung/simt/scheduler.hpp"

namespace rung::simt::record {
namespace {

/// Returns a finding of a race between the two sides, with their source locations.
Finding race_between(Recorder& recorder, const Request& request, const Side& here,
                     const Side& there) {
  LaunchRecord& record = recorder.launch();
  Finding finding =
      describe(Kind::race, recorder, request.step, request.target.where, here.block, here.thread);
  const Source& other = source_of(record.site_of(there.site));
  finding.other_file = other.file;
  finding.other_line = other.line;
  finding.other_block = index_in(record.launch.grid, there.block);
  finding.other_thread = index_in(record.launch.block, there.thread);
  return finding;
}

Racers racers_of(const Launch& launch, const Side& here, const Side& there) {
  const bool same_block = here.block == there.block && !there.blocks;
  const bool same_warp = same_block && here.thread / 32 == there.thread / 32 && !there.warps;
  return {.within_warp = same_warp,
          .across_warps = same_block && !same_warp,
          .across_blocks = !same_block,
          .both_write = here.writes && there.writes,
          .same_thread = !same_block && here.thread == there.thread,
          .one_warp = launch.block.x * launch.block.y * launch.block.z <= 32};
}

/// Returns true if a bulk store of the running thread makes this read. A tensor core's reads have
/// the same access kind.
bool stores_in_bulk(const Recorder& recorder, const Request& request) {
  return request.step.access == Access::engine_read && recorder.thread().bulk_stores > 0;
}

/// Returns a distinct nonzero number per combination of racers.
std::uint8_t number_of(const Racers& racers) {
  const unsigned where = racers.across_blocks ? 3 : racers.across_warps ? 2 : 1;
  return static_cast<std::uint8_t>(where | (racers.both_write ? 4u : 0u) |
                                   (racers.same_thread ? 8u : 0u));
}

/// Describes a race in which one or both sides are copies in flight.
void describe_copy(const Recorder& recorder, Finding& finding, const Side& here,
                   const Side& there) {
  const bool own = here.block == there.block && here.thread == there.thread;
  const Side& copy = there.in_flight() ? there : here;
  const bool by_threads = recorder.copies_by_threads(copy.site);
  const std::string kind = copy.copies && !by_threads ? "a bulk copy" : "an asynchronous copy";
  if (here.in_flight() && there.in_flight()) {
    finding.message = kind + " to " + finding.object_text +
                      " is started while an earlier one is still on its way there";
  } else if (there.in_flight()) {
    finding.message = std::string("one thread ") + (here.writes ? "writes " : "reads ") +
                      finding.object_text + " while " + kind + " that " + (own ? "it" : "another") +
                      " has started is on its way there";
  } else {
    finding.message = kind + " to " + finding.object_text + " is started, which another thread " +
                      (there.writes ? "writes" : "reads") + ", in no order";
    return;
  }
  finding.advice =
      there.copies && by_threads
          ? "wait for the copy in each thread that accesses its bytes: by wait() of the barrier, "
            "or "
            "by the pipeline's consumer_wait(); __syncthreads() does not wait for copies"
      : there.copies
          ? "wait for the copy's mbarrier: a barrier behind the thread that starts it is no wait"
          : "wait for the copy in the thread that starts it, before the barrier: "
            "cp.async.wait_group, __pipeline_wait_prior(), cg::wait() or a pipeline's "
            "consumer_wait()";
  if (here.in_flight()) {
    finding.advice += "; no more batches may be on their way than there are stages";
  }
}

}  // namespace

void report_race(Recorder& recorder, const Request& request, std::uintptr_t address, Side here,
                 Side there) {
  const Side& read = here.writes ? there : here;
  const Side& write = here.writes ? here : there;
  // The read may be optimistic (optimistic_read.cpp).
  const bool held = !read.writes && !read.atomic && write.atomic;
  const GuessPlace guess = read.of_many ? 0 : place_of_guess(request.target.region, read.site);
  const GuessPlace where_read = held ? guess : 0;
  const Racers racers = racers_of(recorder.launch().launch, here, there);
  // The advice depends on all racers at the two sites, so each combination of racers is reported.
  if (!recorder.is_news(Kind::race, here.site, there.site, where_read, number_of(racers))) return;
  const bool first = recorder.is_news(Kind::race, here.site, there.site, where_read);
  Finding finding = race_between(recorder, request, here, there);
  finding.times = first ? 1 : 0;
  finding.racers = racers;
  const Region* const region = request.target.region;
  name_object(recorder.launch().launch, finding, address, region,
              region != nullptr ? *recorder.thread().block : *request.target.block->block);
  const auto verb = [](const Side& side) {
    return side.atomic ? "updates atomically" : side.writes ? "writes" : "reads";
  };
  finding.message = std::string("one thread ") + verb(here) + " and another " + verb(there) + " " +
                    finding.object_text + ", in no order";
  if (here.in_flight() || there.in_flight()) describe_copy(recorder, finding, here, there);
  if (!read.writes && (recorder.launch().site_of(read.site) & source_bit) != 0) {
    const bool own = read.block == write.block && read.thread == write.thread;
    finding.message =
        source_message("one thread", own ? "it" : "another thread", false, finding.object_text);
    finding.advice = source_advice(false);
  }
  const std::uintptr_t stale = recorder.stale_wait(there.copies);
  if (stale != 0 && (finding.advice.empty() || there.copies) && region == nullptr) {
    const Source& wait = source_of(stale);
    finding.advice = "wait for the phase that is meant: the wait in line " +
                     std::to_string(wait.line) +
                     " returns at once, since its parity is that of a phase that is over; a "
                     "barrier that completes in each round takes a parity that flips in each";
  }
  if (there.copies && stores_in_bulk(recorder, request)) {
    finding.advice =
        "wait for the store before its memory is refilled: cp.async.bulk.wait_group.read 0, or a "
        "shorter prefetch distance";
  }
  if (held) {
    recorder.launch().hold(std::move(finding), guess, write.site);
  } else {
    add(std::move(finding));
  }
}

void report_proxy(Recorder& recorder, const Request& request, Side here, Side there) {
  if (!recorder.is_news(Kind::race, here.site, there.site)) return;
  Finding finding = race_between(recorder, request, here, there);
  finding.message = std::string("an asynchronous operation ") + (here.writes ? "writes" : "reads") +
                    " a word of " + (request.target.where == Where::global ? "global" : "shared") +
                    " memory that a thread has written, with no fence.proxy.async between";
  finding.advice = std::string("fence") +
                   (request.target.where == Where::global ? ".proxy.async (or .global)"
                                                          : "_async_proxy() (fence.proxy.async)") +
                   " by each thread that writes, before the barrier";
  add(std::move(finding));
}

Racers& Racers::operator|=(const Racers& others) {
  within_warp |= others.within_warp;
  across_warps |= others.across_warps;
  across_blocks |= others.across_blocks;
  both_write |= others.both_write;
  same_thread |= others.same_thread;
  one_warp &= others.one_warp;
  return *this;
}

std::string race_advice(const Finding& race) {
  const bool one_line = race.line == race.other_line && race.file == race.other_file;
  if (one_line && race.racers.both_write) {
    return "let one of them write, or use atomics: whose value stays is left open";
  }
  if (race.racers.across_blocks) {
    return "blocks run in any order: use atomics, a flag behind __threadfence(), or two kernels";
  }
  if (!race.racers.across_warps) {
    return "__syncwarp() between the two: lanes of a warp need not run in step";
  }
  return "__syncthreads() between the two";
}

}  // namespace rung::simt::record
