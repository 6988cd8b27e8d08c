// SPDX-License-Identifier: Apache-2.0
// Happens-before edges of mbarrier waits.
//
// A wait by parity returns if the last completed phase has that parity. If the thread has already
// acquired such a phase, the wait may have returned because of that phase and establishes no
// ordering, even if more phases are complete in this run. Otherwise the wait acquires the phase
// after the last acquired one. The result is therefore independent of the order of threads, and a
// parity that is flipped too rarely is detected under every order.
#include <algorithm>
#include <cstring>
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

constexpr std::uintptr_t lesson_site = place_bit | 5;
/// Maximum number of kept phases. A thread further behind is assumed to have acquired the older
/// phases.
constexpr std::size_t kept_phases = 8;

}  // namespace

void Recorder::completed(Block& owner, const void* object, std::uint32_t parity) {
  Synchronizer& meeting = owner.record->objects[object];
  for (const auto& [block, warp] : std::exchange(meeting.arrivals, {})) flush(*block, *warp);
  meeting.completed = join(meeting.completed, std::exchange(meeting.released, nullptr));
  if (meeting.phases.size() == kept_phases) {
    meeting.phases.erase(meeting.phases.begin());
    meeting.whole = false;
  }
  meeting.phases.push_back(meeting.completed);
  meeting.last_parity = parity;
}

/// Returns true if the running thread has acquired all of `clock`. Clocks of other lanes of its own
/// warp are acquired by convergence or through a synchronization object.
bool Recorder::knows(const VectorClock& clock, const Clocks& known,
                     const VectorClockRef& remote) const {
  const auto own = static_cast<std::size_t>(warp_ - block_->warps.data());
  for (const auto& [number, clocks] : clock.entries()) {
    const Clocks* const mine = number == block_->number ? &known
                               : remote != nullptr      ? remote->of(number)
                                                        : nullptr;
    if (mine == nullptr || !mine->copies.contains(clocks->copies)) return false;
    for (std::size_t i = 0; i < clocks->size(); ++i) {
      if ((*mine)[i] >= (*clocks)[i]) continue;
      const bool lanes = number == block_->number && i == own;
      if (!lanes) return false;
      const std::uint32_t then = (*clocks)[i];
      if (warp_->told[thread_->lane] < then && warp_->synced[thread_->lane] <= then) return false;
    }
  }
  return true;
}

/// Returns the acquired clocks of the running thread's warp at the start of its list.
const Clocks& Recorder::known_before() const {
  return warp_->lessons.empty() ? warp_->known : warp_->known_before;
}
const VectorClockRef& Recorder::remote_before() const {
  return warp_->lessons.empty() ? warp_->remote : warp_->remote_before;
}

/// Returns true if the running thread has acquired this vector clock by a wait since its list
/// began.
bool Recorder::heard(const VectorClockRef& told) const {
  return std::any_of(
      warp_->lessons.begin(), warp_->lessons.end(),
      [&](const WarpRecord::Lesson& one) { return one.lane == thread_->lane && one.from == told; });
}

void Recorder::waited(Block& owner, const void* object, std::uint32_t parity, bool exact,
                      const Place& place) {
  block_->partial = true;
  if (!checking_) return;
  Synchronizer& meeting = owner.record->objects[object];
  VectorClockRef told = meeting.completed;
  if (told == nullptr) {
    if (!exact) warp_->early_wait = site_of(place);
    return;
  }
  const std::vector<VectorClockRef>& phases = meeting.phases;
  if (!exact && !phases.empty()) {
    std::size_t known = phases.size();  // number of phases that the thread has acquired
    while (known != 0 && phases[known - 1] != nullptr &&
           !knows(*phases[known - 1], warp_->known, warp_->remote)) {
      --known;
    }
    const std::uint32_t known_parity =
        meeting.last_parity ^ static_cast<std::uint32_t>((phases.size() - known) & 1);
    if (known != 0 || meeting.whole) {
      const bool stale = known_parity == (parity & 1);
      if (stale && known == 0) return;
      if (stale) {
        // Another lane of the warp may have just acquired this phase; this lane acquires it too.
        told = phases[known - 1];
      } else if (known < phases.size()) {
        told = phases[known];
      }
      if (told == nullptr) return;
      if (stale && (heard(told) || knows(*told, known_before(), remote_before()))) {
        warp_->stale_wait = site_of(place);
      }
    }
  }
  if (!heard(told) && !knows(*told, known_before(), remote_before())) {
    // Inserts a mark, which may first process the preceding accesses.
    trace_slowly(0, lesson_site, 0, Access::marker);
    if (warp_->lessons.empty()) {
      warp_->known_before = warp_->known;
      warp_->remote_before = warp_->remote;
    }
    warp_->lessons.push_back({thread_->lane, told});
    acquire(*block_, *warp_, told);
  }
  acquire_own_lanes(told);
}

/// Resets the warp's clocks to those at the list's first step; pass_lessons() then advances them at
/// marks. Returns the clocks at the end of the list in `known` and `remote`.
void Recorder::begin_lessons(WarpRecord& warp, Clocks& known, VectorClockRef& remote) {
  known = std::exchange(warp.known, warp.known_before);
  remote = std::exchange(warp.remote, warp.remote_before);
}

void Recorder::pass_lessons(BlockRecord& block, WarpRecord& warp, const Request& request) {
  if (request.step.site != lesson_site) return;
  const VectorClock* last = nullptr;
  for_each_lane(request.lanes, [&](int lane) {
    const auto of_lane = [&](const WarpRecord::Lesson& one) { return one.lane == lane; };
    const auto at = std::find_if(warp.lessons.begin(), warp.lessons.end(), of_lane);
    if (at == warp.lessons.end()) return;
    if (at->from.get() != last) acquire(block, warp, at->from);
    last = at->from.get();
    warp.lessons.erase(at);
  });
  known_.reset();
}

void Recorder::initialized(Block& owner, const void* object, const Place& place) {
  if (!checking_) return;
  Synchronizer& meeting = owner.record->objects[object];
  meeting = {};
  meeting.whole = true;
  meeting.init = {warp_, thread_->lane, clock_now(), site_of(place)};
}

void Recorder::init_fence() {
  for (auto& [object, meeting] : block_->objects) {
    if (meeting.init.warp == warp_ && meeting.init.lane == thread_->lane) meeting.init = {};
  }
}

void Recorder::told_by_copy(Block& owner, const void* object, const Place& place) {
  if (!checking_) return;
  const auto at = owner.record->objects.find(object);
  if (at == owner.record->objects.end()) return;
  Synchronizer::Init& init = at->second.init;
  // Accesses by other threads are ordered, or are reported as races.
  if (init.warp != warp_ || init.lane != thread_->lane) return;
  if (warp_->synced[thread_->lane] <= init.clock) report_init(at->second, place);
  init = {};
}

void Recorder::report_init(const Synchronizer& object, const Place& place) {
  Step step;
  step.site = object.init.site;
  step.site_index = site_index(step.site);
  const std::uint16_t other = site_index(site_of(place));
  if (!is_news(Kind::race, step.site_index, other)) return;
  Finding finding =
      describe(Kind::race, *this, step, Where::shared, block_->number, linear_thread(*thread_));
  const Source& source = source_of(site_of(place));
  finding.other_file = source.file;
  finding.other_line = source.line;
  finding.other_block = finding.block;
  finding.other_thread = finding.thread;
  finding.message =
      "an asynchronous copy is told to complete on an mbarrier of which it may not see the "
      "initialization: there is no fence between";
  finding.advice =
      "fence.mbarrier_init.release.cluster (or fence.proxy.async) behind mbarrier.init, in the "
      "same thread, and a barrier before other threads use it";
  add(std::move(finding));
}

void Recorder::announced(Block& owner, const void* object, const Place& place) {
  if (!checking_) return;
  owner.record->objects[object].announced = {site_of(place), block_->number, thread_index()};
}

void Recorder::balanced(Block& owner, const void* object, std::uint64_t word,
                        std::int64_t lacking) {
  if (!checking_) return;
  Synchronizer& meeting = owner.record->objects[object];
  meeting.word = word;
  meeting.lacking = lacking;
}

void Recorder::end_balances(const BlockRecord& block) {
  for (const auto& [object, meeting] : block.objects) {
    if (meeting.lacking == 0) continue;
    std::uint64_t word = 0;
    std::memcpy(&word, object, sizeof(word));
    if (word != meeting.word) continue;  // invalidated, or its memory is used for other data
    Step step;
    step.site = meeting.announced.site;
    step.site_index = step.site != 0 ? site_index(step.site) : std::uint16_t{0};
    if (!is_news(Kind::barrier, step.site_index, 0)) continue;
    Finding finding = describe(Kind::barrier, *this, step, Where::shared, meeting.announced.block,
                               meeting.announced.thread);
    name_object(launch_->launch, finding, reinterpret_cast<std::uintptr_t>(object), nullptr,
                *block.block);
    const std::string bytes =
        std::to_string(meeting.lacking < 0 ? -meeting.lacking : meeting.lacking) + " bytes ";
    finding.message = "when its block ends, the mbarrier in " + finding.object_text +
                      (meeting.lacking > 0 ? " lacks " + bytes +
                                                 "that were announced (expect_tx): "
                                                 "no copy has brought them"
                                           : " has received " + bytes +
                                                 "that were not announced "
                                                 "(expect_tx)");
    finding.advice =
        "announce as many bytes as the copies bring that complete on the mbarrier, and wait for "
        "the phase: another wait for it would never return";
    add(std::move(finding));
  }
}

}  // namespace rung::simt::record
