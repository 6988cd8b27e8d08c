// SPDX-License-Identifier: Apache-2.0
// Warp operations: the last lane to arrive computes the results of all lanes.
#include <cstring>
#include <iterator>
#include <utility>

#include "rung/simt/record/recorder.hpp"
#include "rung/simt/scheduler.hpp"

namespace rung::simt {
namespace {

std::string hexadecimal(std::uint32_t mask) {
  constexpr const char* digits = "0123456789abcdef";
  std::string text = "0x";
  for (int shift = 28; shift >= 0; shift -= 4) text += digits[mask >> shift & 0xf];
  return text;
}

/// Calls f(lane) for each lane of the mask, lowest first.
template <class F>
void for_each_lane(std::uint32_t lanes, F f) {
  for (; lanes != 0; lanes &= lanes - 1) f(__builtin_ctz(lanes));
}

struct ShuffleRequest {
  record::LaneShuffle values;
  Shuffle kind;
  int operand;
  int width;
};

/// Returns the lane from which `lane` reads; `lane` itself if the source is outside its segment.
int source_lane(const ShuffleRequest& request, int lane) {
  const int first = lane & ~(request.width - 1);
  const int last = first + request.width - 1;
  const int operand = request.operand & 31;  // the hardware uses the low five bits
  int source = lane;
  switch (request.kind) {
    case Shuffle::index:
      return first + (operand & (request.width - 1));
    case Shuffle::up:
      source = lane - operand;
      return source < first ? lane : source;
    case Shuffle::down:
      source = lane + operand;
      break;
    case Shuffle::exclusive_or:
      source = lane ^ operand;
      break;
  }
  return source > last ? lane : source;
}

/// Returns the value of an absent lane, alternating between NaN, which propagates through sums and
/// products, and a huge positive and a huge negative number, which show in maxima and minima.
std::uint64_t undefined_value(int lane) {
  Worker& here = *this_worker;
  Thread& self = here.current();
  const Block& block = *self.block;
  std::uint64_t turn = static_cast<std::uint64_t>(lane) + self.warp->undefined_reads +
                       static_cast<std::uint64_t>(self.warp - block.warps.data()) + block.index.x +
                       block.index.y + block.index.z;
  if (here.order() == ThreadOrder::Kind::reverse) turn += 1;
  if (here.order() == ThreadOrder::Kind::random) turn += 2 + block.random % 3;
  return record::undefined_lane_values[turn % std::size(record::undefined_lane_values)];
}

void resolve_shuffle(void* const* requests, std::uint32_t lanes) {
  bool absent = false;
  for_each_lane(lanes, [&](int lane) {
    auto& mine = *static_cast<ShuffleRequest*>(requests[lane]);
    const int source = source_lane(mine, lane);
    const bool present = (lanes >> source & 1) != 0;
    mine.values.source = source;
    absent |= !present;
    mine.values.got = present ? static_cast<const ShuffleRequest*>(requests[source])->values.given
                              : undefined_value(lane);
  });
  if (absent) ++this_worker->current().warp->undefined_reads;
}

void note_shuffle(record::Recorder& recorder, const Warp& warp, std::uint32_t mask,
                  std::uint32_t lanes) {
  const record::LaneShuffle* shuffles[warp_lanes] = {};
  for_each_lane(lanes, [&](int lane) {
    shuffles[lane] = &static_cast<const ShuffleRequest*>(warp.requests[lane])->values;
  });
  recorder.shuffled(warp, mask, lanes, shuffles);
}

struct VoteRequest {
  std::uint64_t bits;
  std::uint32_t result;
};

void resolve_ballot(void* const* requests, std::uint32_t lanes) {
  std::uint32_t votes = 0;
  for_each_lane(lanes, [&](int lane) {
    if (static_cast<const VoteRequest*>(requests[lane])->bits != 0) votes |= 1u << lane;
  });
  for_each_lane(lanes,
                [&](int lane) { static_cast<VoteRequest*>(requests[lane])->result = votes; });
}

void resolve_match(void* const* requests, std::uint32_t lanes) {
  for_each_lane(lanes, [&](int lane) {
    auto& mine = *static_cast<VoteRequest*>(requests[lane]);
    mine.result = 0;
    for_each_lane(lanes, [&](int other) {
      if (static_cast<const VoteRequest*>(requests[other])->bits == mine.bits) {
        mine.result |= 1u << other;
      }
    });
  });
}

struct ReduceRequest {
  std::uint32_t bits;
  Reduction kind;
  bool is_signed;
  std::uint32_t result;
};

std::uint32_t combine(const ReduceRequest& how, std::uint32_t a, std::uint32_t b) {
  const bool less =
      how.is_signed ? static_cast<std::int32_t>(a) < static_cast<std::int32_t>(b) : a < b;
  switch (how.kind) {
    case Reduction::add:
      return a + b;
    case Reduction::min:
      return less ? a : b;
    case Reduction::max:
      return less ? b : a;
    case Reduction::bit_and:
      return a & b;
    case Reduction::bit_or:
      return a | b;
    case Reduction::bit_xor:
      return a ^ b;
  }
  return 0;
}

void resolve_reduce(void* const* requests, std::uint32_t lanes) {
  const auto& first = *static_cast<const ReduceRequest*>(requests[__builtin_ctz(lanes)]);
  std::uint32_t sum = first.bits;
  for_each_lane(lanes & (lanes - 1), [&](int lane) {
    sum = combine(first, sum, static_cast<const ReduceRequest*>(requests[lane])->bits);
  });
  for_each_lane(lanes,
                [&](int lane) { static_cast<ReduceRequest*>(requests[lane])->result = sum; });
}

[[gnu::noinline, gnu::cold, noreturn]] void fail_foreign_mask(Worker& here, std::uint32_t mask,
                                                              const char* name, Place place) {
  here.fail(std::string(name) + ": the mask " + hexadecimal(mask) +
                " does not name the calling lane " + std::to_string(here.current().lane),
            place);
}

[[gnu::noinline, gnu::cold, noreturn]] void fail_mixed(Worker& here, const Thread& first,
                                                       const Thread& other) {
  here.blame(std::string("simulated GPU: lanes of one mask in different operations: lane ") +
                 std::to_string(first.lane) + " is in " + first.operation + " at " +
                 to_string(first.place) + ", lane " + std::to_string(other.lane) + " in " +
                 other.operation,
             other, &other.place);
  here.abandon();
}

[[gnu::noinline, gnu::cold, noreturn]] void fail_width(const char* name, int width, Place place) {
  running_worker(name).fail(std::string(name) + ": the width is " + std::to_string(width) +
                                ", accepted are powers of two up to 32",
                            place);
}

}  // namespace

void warp_collective(std::uint32_t mask, const char* name, Resolve resolve, void* request,
                     Place place) {
  Worker& here = running_worker(name);
  Thread& self = here.current();
  Warp& warp = *self.warp;
  const std::uint32_t bit = 1u << self.lane;
  if ((mask & bit) == 0) fail_foreign_mask(here, mask, name, place);
  self.mask = mask;
  self.resolve = resolve;
  self.operation = name;
  self.place = place;
  self.wait = Wait::warp;
  warp.requests[self.lane] = request;
  warp.waiting |= bit;
  if ((~warp.waiting & mask & ~warp.exited) == 0) here.try_complete(warp, mask);
  here.wait(self.wait, name, place);
}

void Worker::try_complete(Warp& warp, std::uint32_t mask) {
  const std::uint32_t lanes = mask & ~warp.exited;
  if ((warp.waiting & lanes) != lanes) return;
  // A lane of the mask may still be in another operation, and arrive later.
  const Thread& first = *warp.lanes[__builtin_ctz(lanes)];
  const Thread* other = nullptr;
  bool apart = false;
  for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
    const Thread& lane = *warp.lanes[__builtin_ctz(left)];
    if ((lane.mask & ~warp.exited) != lanes) return;
    // Compares the strings, since equal names may have different addresses.
    if (lane.resolve != first.resolve ||
        (lane.operation != first.operation && std::strcmp(lane.operation, first.operation) != 0)) {
      other = &lane;
    }
    apart |= lane.place.line() != first.place.line();
  }
  if (other != nullptr) fail_mixed(*this, first, *other);
  if (recorder_ != nullptr) {
    if (apart || !warp.partings.empty()) note_parting(warp, mask, lanes, apart);
    // Accesses of the exchange are made by the simulator itself, even in a template compiled with
    // hooks.
    const record::Tracer running = std::exchange(record::tracer, {});
    first.resolve(warp.requests, lanes);
    record::tracer = running;
    const bool checking = recorder_->launch().checking;
    if (checking && lanes != mask) recorder_->met_without(warp, mask, lanes);
    recorder_->lanes_met(warp, lanes, std::strcmp(first.operation, "__syncwarp") != 0);
    if (checking && first.resolve == resolve_shuffle) note_shuffle(*recorder_, warp, mask, lanes);
  } else {
    first.resolve(warp.requests, lanes);
  }
  warp.waiting &= ~lanes;
  std::vector<Thread*>& released = gather();
  for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
    Thread& thread = *warp.lanes[__builtin_ctz(left)];
    thread.wait = Wait::none;
    released.push_back(&thread);
  }
  // Front of the queue: the warp's stacks are still cached.
  release_gathered(*first.block, true);
}

bool Worker::release_active_masks() {
  bool any = false;
  const auto release = [&](Block& block, Warp& warp) {
    const auto waits = [&](int lane, const Place* at) {
      const Thread* thread = warp.lanes[lane];
      return thread != nullptr && thread->wait == Wait::active_mask &&
             (at == nullptr || thread->place.line() == at->line());
    };
    for (int lane = 0; lane < warp_lanes; ++lane) {
      if (!waits(lane, nullptr)) continue;
      const Place at = warp.lanes[lane]->place;
      std::uint32_t together = 0;
      for (int other = lane; other < warp_lanes; ++other) {
        if (waits(other, &at)) together |= 1u << other;
      }
      std::vector<Thread*>& released = gather();
      for_each_lane(together, [&](int other) {
        warp.lanes[other]->answer = together;
        warp.lanes[other]->wait = Wait::none;
        released.push_back(warp.lanes[other]);
      });
      release_gathered(block, false);
      any = true;
    }
  };
  for_each_block([&](Block& block) {
    for (Warp& warp : block.warps) release(block, warp);
  });
  return any;
}

std::uint32_t active_mask(Place place) {
  Worker& here = running_worker("__activemask");
  Thread& self = here.current();
  here.wait(Wait::active_mask, "__activemask", place);
  return self.answer;
}

void warp_barrier(std::uint32_t mask, Place place) {
  warp_collective(
      mask, "__syncwarp", [](void* const*, std::uint32_t) {}, nullptr, place);
}

std::uint64_t shuffle(std::uint32_t mask, std::uint64_t bits, Shuffle kind, int operand, int width,
                      Place place) {
  static constexpr const char* names[] = {"__shfl_sync", "__shfl_up_sync", "__shfl_down_sync",
                                          "__shfl_xor_sync"};
  const char* name = names[static_cast<int>(kind)];
  if (width <= 0 || width > warp_lanes || (width & (width - 1)) != 0)
    fail_width(name, width, place);
  ShuffleRequest request{{.given = bits}, kind, operand, width};
  warp_collective(mask, name, resolve_shuffle, &request, place);
  return request.values.got;
}

std::uint32_t ballot(std::uint32_t mask, bool predicate, Place place) {
  VoteRequest request{predicate ? 1u : 0u, 0};
  warp_collective(mask, "__ballot_sync", resolve_ballot, &request, place);
  return request.result;
}

std::uint32_t match_any(std::uint32_t mask, std::uint64_t bits, Place place) {
  VoteRequest request{bits, 0};
  warp_collective(mask, "__match_any_sync", resolve_match, &request, place);
  return request.result;
}

std::uint32_t reduce(std::uint32_t mask, std::uint32_t bits, Reduction kind, bool is_signed,
                     Place place) {
  static constexpr const char* names[] = {"__reduce_add_sync", "__reduce_min_sync",
                                          "__reduce_max_sync", "__reduce_and_sync",
                                          "__reduce_or_sync",  "__reduce_xor_sync"};
  ReduceRequest request{bits, kind, is_signed, 0};
  warp_collective(mask, names[static_cast<int>(kind)], resolve_reduce, &request, place);
  return request.result;
}

}  // namespace rung::simt
