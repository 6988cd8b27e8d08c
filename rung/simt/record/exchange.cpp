// SPDX-License-Identifier: Apache-2.0
// Detects masks of warp operations that name absent lanes, if this has consequences.
//
// Lanes that have exited need not participate, so a mask that names an absent lane is not an error
// by itself. A lane that skips a call has not exited if it continues to code that callers reach as
// well: it took a branch around the call instead of a return before it. A value read from an absent
// lane is undefined in either case, and harmless until it is used: it is tracked through later
// shuffles to a store or an atomic operation.
#include "rung/simt/record/exchange.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "rung/simt/record/finding_text.hpp"
#include "rung/simt/record/findings.hpp"
#include "rung/simt/record/operations.hpp"
#include "rung/simt/record/source.hpp"
#include "rung/simt/scheduler.hpp"

namespace rung::simt::record {
namespace {

/// Maximum number of tracked values per lane: reductions alternate between a few variables.
constexpr std::size_t kept_doubts = 4;
constexpr std::size_t kept_skips = 8;

/// Compares bit patterns: a NaN equals itself, and -0 differs from 0.
template <class T>
bool is_sum_of(std::uint64_t value, std::uint64_t a, std::uint64_t b) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  const auto of = [](std::uint64_t bits) { return std::bit_cast<T>(static_cast<Bits>(bits)); };
  const auto equals = [&](T number) {
    return std::bit_cast<Bits>(number) == static_cast<Bits>(value);
  };
  return equals(of(a) + of(b)) || equals(of(a) - of(b)) || equals(of(b) - of(a));
}

/// Returns true if `value` is the XOR, OR or product of `a` and `b`, from which an undefined
/// operand is recognizable. Excludes products with 0 or 1, minimums and ANDs, which may equal a
/// defined operand.
template <class Word>
bool is_of_words(std::uint64_t value, std::uint64_t a, std::uint64_t b) {
  const auto word = static_cast<Word>(value), x = static_cast<Word>(a), y = static_cast<Word>(b);
  return word == static_cast<Word>(x ^ y) || word == static_cast<Word>(x | y) ||
         (x > 1 && y > 1 && word == static_cast<Word>(x * y));
}

/// Returns the first doubtful value from which `value` derives; null if there is none.
const LaneExchanges::Doubt* find_doubt(const std::vector<LaneExchanges::Doubt>& doubts,
                                       std::uint64_t value, int bytes) {
  for (const LaneExchanges::Doubt& one : doubts) {
    if (is_made_of(one, value, bytes)) return &one;
  }
  return nullptr;
}

/// Returns the size of a value in bytes; shuffles pass 4-byte values as 64-bit words.
int bytes_of(std::uint64_t value) { return value >> 32 == 0 ? 4 : 8; }

}  // namespace

bool is_made_of(const LaneExchanges::Doubt& doubt, std::uint64_t value, int bytes) {
  const std::uint64_t a = doubt.given, b = doubt.got;
  if (bytes == 4) {
    const auto same = [&](std::uint64_t other) {
      return static_cast<std::uint32_t>(value) == static_cast<std::uint32_t>(other);
    };
    return (doubt.got_doubtful && same(b)) || (doubt.given_doubtful && same(a)) ||
           is_sum_of<std::uint32_t>(value, a, b) || is_sum_of<float>(value, a, b) ||
           is_of_words<std::uint32_t>(value, a, b);
  }
  if (bytes != 8) return false;
  return (doubt.got_doubtful && value == b) || (doubt.given_doubtful && value == a) ||
         is_sum_of<std::uint64_t>(value, a, b) || is_sum_of<double>(value, a, b) ||
         is_of_words<std::uint64_t>(value, a, b);
}

std::string lanes_text(std::uint32_t lanes) {
  const int count = std::popcount(lanes);
  const int first = std::countr_zero(lanes), last = 31 - std::countl_zero(lanes);
  if (count == 1) return "lane " + std::to_string(first);
  if (count > 2 && last - first + 1 == count) {
    return "lanes " + std::to_string(first) + " to " + std::to_string(last);
  }
  std::string text = "lanes ";
  for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    text += lane == first ? "" : lane == last ? " and " : ", ";
    text += std::to_string(lane);
  }
  return text;
}

void Recorder::met_without(const Warp& lanes, std::uint32_t mask, std::uint32_t callers) {
  const Thread& first = *lanes.lanes[std::countr_zero(callers)];
  BlockRecord& block = *first.block->record;
  WarpRecord& warp = block.warps[static_cast<std::size_t>(&lanes - first.block->warps.data())];
  note_skip(warp, first, mask, callers, false);
}

void Recorder::waits_without(const BlockRecord& block, WarpRecord& warp) {
  if (!checking_ || warp.list == nullptr) return;
  const Warp& lanes = block.block->warps[static_cast<std::size_t>(&warp - block.warps.data())];
  if ((lanes.exited & warp.launched) == 0) return;
  std::uint32_t callers = 0;
  const Thread* first = nullptr;
  for (int lane = warp_lanes - 1; lane >= 0; --lane) {
    const Thread* const thread = lanes.lanes[lane];
    if (thread == nullptr || thread->wait != Wait::barrier || thread->barrier != 0) continue;
    callers |= 1u << lane;
    first = thread;
  }
  if (first != nullptr) note_skip(warp, *first, warp.launched, callers, true);
}

/// Records the lanes of the mask that are missing at the callers' call; `first` is one of the
/// callers.
void Recorder::note_skip(WarpRecord& warp, const Thread& first, std::uint32_t mask,
                         std::uint32_t callers, bool barrier) {
  const std::uint32_t missing = mask & ~callers & warp.launched;
  bool seen = false;  // the path of a lane without accesses is unknown
  for (std::uint32_t left = missing; left != 0; left &= left - 1) {
    seen |= warp.cursors[std::countr_zero(left)] != nullptr;
  }
  if (!seen) return;
  const LaneCall call{first.operation, site_index(site_of(first.place)), mask};
  const Kind kind = barrier ? Kind::barrier : Kind::warp_sync;
  if (told_.contains({kind, call.site, 0, 0, 0})) return;
  if (warp.exchanges == nullptr) warp.exchanges = std::make_unique<LaneExchanges>();
  warp.exchanges->skips.push_back({call, barrier, true, callers, missing, {}});
}

/// Completes the records of skipped calls when the list that precedes the call has been processed.
void Recorder::end_skip(WarpRecord& warp) {
  if (warp.exchanges == nullptr || warp.exchanges->skips.empty()) return;
  std::vector<LaneExchanges::Skip>& skips = warp.exchanges->skips;
  skips.back().fresh = false;
  if (skips.back().sites.empty()) skips.pop_back();
  if (skips.size() > kept_skips) skips.erase(skips.begin());
}

void Recorder::shuffled(const Warp& lanes, std::uint32_t mask, std::uint32_t callers,
                        const LaneShuffle* const* shuffles) {
  const Thread& first = *lanes.lanes[std::countr_zero(callers)];
  BlockRecord& block = *first.block->record;
  WarpRecord& warp = block.warps[static_cast<std::size_t>(&lanes - first.block->warps.data())];
  bool absent = false;
  for (std::uint32_t left = callers; left != 0; left &= left - 1) {
    absent |= (callers >> shuffles[std::countr_zero(left)]->source & 1) == 0;
  }
  if (!absent && warp.exchanges == nullptr) return;
  if (warp.exchanges == nullptr) warp.exchanges = std::make_unique<LaneExchanges>();
  LaneExchanges& exchanges = *warp.exchanges;
  const LaneExchanges::Doubt* given[32] = {};  // per lane: doubt about the value it sends
  for (std::uint32_t left = callers; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const std::uint64_t value = shuffles[lane]->given;
    given[lane] = find_doubt(exchanges.doubts[lane], value, bytes_of(value));
  }
  std::vector<std::pair<int, LaneExchanges::Doubt>> fresh;
  for (std::uint32_t left = callers; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const LaneShuffle& one = *shuffles[lane];
    const bool here = (callers >> one.source & 1) != 0;
    const LaneExchanges::Doubt* const origin = !here                          ? nullptr
                                               : given[one.source] != nullptr ? given[one.source]
                                                                              : given[lane];
    if (here && origin == nullptr) continue;
    LaneExchanges::Doubt doubt;
    if (origin != nullptr) doubt = *origin;
    doubt.given = one.given;
    doubt.got = one.got;
    doubt.given_doubtful = given[lane] != nullptr;
    doubt.got_doubtful = !here || given[one.source] != nullptr;
    if (!here) {
      doubt.call = {first.operation, site_index(site_of(lanes.lanes[lane]->place)), mask};
      doubt.reader = static_cast<std::uint8_t>(lane);
      doubt.source = static_cast<std::uint8_t>(one.source);
    }
    fresh.emplace_back(lane, doubt);
  }
  for (const auto& [lane, doubt] : fresh) {
    auto& doubts = exchanges.doubts[lane];
    if (doubts.size() == kept_doubts) doubts.erase(doubts.begin());
    doubts.push_back(doubt);
  }
}

void Recorder::watch(BlockRecord& block, WarpRecord& warp, const Request& request) {
  LaneExchanges& exchanges = *warp.exchanges;
  for (LaneExchanges::Skip& skip : exchanges.skips) {
    const std::uint16_t site = request.step.site_index;
    const std::uint32_t callers = request.lanes & skip.callers;
    if (skip.fresh) {
      if (callers == 0 && (request.lanes & skip.missing) != 0) skip.sites.push_back(site);
    } else if (callers != 0 &&
               std::find(skip.sites.begin(), skip.sites.end(), site) != skip.sites.end()) {
      report_skipped(block, warp, skip, std::countr_zero(callers), site);
      skip.sites.clear();
    }
  }
  if (request.values == nullptr || request.target.where == Where::local) return;
  const int bytes = 1 << request.step.log_size;
  if (bytes != 4 && bytes != 8) return;
  for (std::uint32_t left = request.lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    if (exchanges.doubts[lane].empty()) continue;
    std::uint64_t value = 0;
    std::memcpy(&value, request.values + static_cast<std::size_t>(lane) * RequestList::value_row(),
                static_cast<std::size_t>(bytes));
    const LaneExchanges::Doubt* const doubt = find_doubt(exchanges.doubts[lane], value, bytes);
    if (doubt != nullptr) report_doubtful(block, warp, *doubt, lane, request.step.site_index);
  }
}

void Recorder::operand(std::uint64_t bits, int bytes, const Place& place) {
  if (!checking_ || warp_ == nullptr || warp_->exchanges == nullptr) return;
  const LaneExchanges::Doubt* const doubt =
      find_doubt(warp_->exchanges->doubts[thread_->lane], bits, bytes);
  if (doubt == nullptr) return;
  report_doubtful(*block_, *warp_, *doubt, thread_->lane, site_index(site_of(place)));
}

void note_operand(std::uint64_t bits, int bytes, const Place& place) noexcept {
  this_worker->recorder()->operand(bits, bytes, place);
}

namespace {

std::string hexadecimal(std::uint32_t mask) {
  constexpr const char* digits = "0123456789abcdef";
  std::string text = "0x";
  for (int shift = 28; shift >= 0; shift -= 4) text += digits[mask >> shift & 0xf];
  return text;
}

}  // namespace

/// Returns a finding about this lane's call; its other side is the consequence of the call.
Finding Recorder::about_call(Kind kind, const BlockRecord& block, const WarpRecord& warp,
                             const LaneCall& call, int lane, std::uint16_t other) {
  Step step;
  step.site = counts_[call.site].site;
  step.site_index = call.site;
  const auto first = static_cast<std::uint32_t>(&warp - block.warps.data()) * warp_lanes;
  Finding finding = describe(kind, *this, step, Where::shared, block.number,
                             first + static_cast<std::uint32_t>(lane));
  const Source& source = source_of(counts_[other].site);
  if (source.line != finding.line || source.file != finding.file) {
    finding.other_file = source.file;
    finding.other_line = source.line;
  }
  return finding;
}

void Recorder::report_skipped(const BlockRecord& block, const WarpRecord& warp,
                              const LaneExchanges::Skip& skip, int lane, std::uint16_t site) {
  const Kind kind = skip.barrier ? Kind::barrier : Kind::warp_sync;
  if (!is_news(kind, skip.call.site, 0)) return;
  Finding finding = about_call(kind, block, warp, skip.call, lane, site);
  const auto number = static_cast<std::uint32_t>(&warp - block.warps.data());
  const bool one = std::popcount(skip.missing) == 1;
  const std::string skips = lanes_text(skip.missing) + (one ? " skips" : " skip") +
                            " the call and " + (one ? "goes" : "go") + " on";
  if (skip.barrier) {
    finding.message = std::string(skip.call.operation) + "() is called by " +
                      lanes_text(skip.callers) + " of warp " + std::to_string(number) +
                      " alone: " + skips + ", which CUDA leaves undefined";
    finding.advice =
        "let all threads come to the barrier: take it out of the branch, or give the loop as many "
        "rounds for each, and put only the work between barriers into an if";
    finding.other_block = finding.block;
    finding.other_thread =
        index_in(launch_->launch.block,
                 number * warp_lanes + static_cast<std::uint32_t>(std::countr_zero(skip.missing)));
  } else {
    finding.message = std::string(skip.call.operation) + " with the mask " +
                      hexadecimal(skip.call.mask) + " is called by " + lanes_text(skip.callers) +
                      " alone: of the lanes that the mask names " + skips +
                      ", which CUDA leaves undefined";
    finding.advice =
        "call it where all lanes of the mask come by, outside of the branch, or name only those "
        "that call it: __ballot_sync() of the condition, in front of the branch, gives that mask";
  }
  add(std::move(finding));
}

void Recorder::report_doubtful(const BlockRecord& block, const WarpRecord& warp,
                               const LaneExchanges::Doubt& doubt, int lane, std::uint16_t site) {
  if (!is_news(Kind::warp_sync, doubt.call.site, 0)) return;
  Finding finding = about_call(Kind::warp_sync, block, warp, doubt.call, doubt.reader, site);
  const std::string source = "lane " + std::to_string(doubt.source);
  const bool named = (doubt.call.mask >> doubt.source & 1) != 0;
  const bool exists = (warp.launched >> doubt.source & 1) != 0;
  finding.message =
      std::string(doubt.call.operation) + " by lane " + std::to_string(doubt.reader) + " reads " +
      source + ", which " +
      (!exists ? "the block does not have"
       : named ? "the mask " + hexadecimal(doubt.call.mask) + " names, and which does not call it"
               : "is not in the mask " + hexadecimal(doubt.call.mask)) +
      ": that value is undefined, and " +
      (lane == doubt.reader ? "used"
                            : "lane " + std::to_string(lane) + " uses what was made of it");
  finding.advice =
      !exists ? "launch blocks of whole warps, or pass the width: the number of lanes, a power of "
                "two, within which lanes exchange"
      : named ? "let all lanes of the mask call it: no return or branch in front, but a neutral "
                "value for lanes that have none (v = i < n ? in[i] : 0 for a sum)"
              : "read lanes of the mask alone: pass the width within which lanes exchange as the "
                "fourth argument, or begin with a smaller offset";
  add(std::move(finding));
}

}  // namespace rung::simt::record
