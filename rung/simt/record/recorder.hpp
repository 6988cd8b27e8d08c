// SPDX-License-Identifier: Apache-2.0
// Recorder of one worker (OS thread): aligns the lanes of each warp, groups their accesses into
// requests when the warp synchronizes, and counts and checks the requests. Internal to simt/.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "rung/simt/block.hpp"
#include "rung/simt/record/block_sampling.hpp"
#include "rung/simt/record/cache_trace.hpp"
#include "rung/simt/record/cell.hpp"
#include "rung/simt/record/exchange.hpp"
#include "rung/simt/record/flights.hpp"
#include "rung/simt/record/footprint.hpp"
#include "rung/simt/record/launch_record.hpp"
#include "rung/simt/record/registry.hpp"
#include "rung/simt/record/request_list.hpp"
#include "rung/simt/record/vector_clock.hpp"
#include "rung/simt/record/waits.hpp"

namespace rung::simt {
class Worker;
}

namespace rung::simt::record {

class AtomicOrder;

struct WarpRecord {
  RequestList* list = nullptr;  // null: no accesses since the last synchronization
  std::uint32_t clock = 1;
  std::uint32_t launched = 0;        // lanes that exist
  std::uint32_t fenced = 0;          // lanes after a fence: their next flag write is a release
  std::uint32_t fenced_for_all = 0;  // the subset of these lanes after a device-scope fence
  std::uint32_t ahead = 0;           // lanes that wait for the others because the list is full
  std::uint32_t at_barrier = 0;      // lanes waiting at the block's barrier
  bool compared = false;             // an atomic comparison is in the list
  bool diverged = false;
  std::uint64_t visits = 0;           // number of basic blocks entered
  std::uint64_t requests_so_far = 0;  // counted while fingerprints are taken
  WarpTrace trace;                    // of global memory, if counters are enabled
  WarpWaits waits;
  VectorClockRef remote;                       // clocks acquired from other blocks
  VectorClockRef released;                     // last release by a lane
  VectorClockRef acquired, acquired_in_block;  // clocks released by the flag that was read last
  // `pending`: clocks of flags that `pending_lanes` have read by relaxed or volatile loads, with no
  // fence since; `last_pending`: clocks of the last of these flags.
  VectorClockRef pending, last_pending;
  std::uint32_t pending_lanes = 0;
  bool released_to_all = false;
  Clocks known{};                      // clocks acquired within this block
  std::uint32_t synced[32] = {};       // per lane: clock of its last convergence with other lanes
  std::uint32_t fence_clock[32] = {};  // per lane: the warp's clock at its last fence
  std::uint32_t proxy_clock[32] = {};  // per lane: the warp's clock at its last fence.proxy.async
  // Per lane: the own-warp clock acquired through a synchronization object.
  std::uint32_t told[32] = {};
  bool any_told = false;
  // Clocks acquired by waits for mbarrier phases since the list began, one entry per wait; markers
  // in the list give the positions. `*_before` are the clocks at the start of the list, `known` and
  // `remote` those at its end.
  struct Lesson {
    int lane = 0;
    VectorClockRef from;
  };
  std::vector<Lesson> lessons;
  Clocks known_before{};
  VectorClockRef remote_before;
  std::uintptr_t stale_wait = 0;             // site of a wait that established no ordering; 0: none
  std::uintptr_t early_wait = 0;             // the same, before any phase was complete
  std::unique_ptr<LaneExchanges> exchanges;  // null: no mask has named an absent lane so far
  Step* cursors[32] = {};
  std::uintptr_t entered[32] = {};  // per lane: entered basic block that is not yet recorded
  std::uint16_t together = 0;       // basic block of all lanes, if convergent; 0: see `stands`
  // Per lane: the last basic block that it entered, and the lowest lane that entered it in the same
  // step.
  struct Stand {
    std::uint16_t site = 0;
    std::int8_t first_lane = -1;  // -1: none
  };
  Stand stands[32];
};

/// Mask of the block number's bits in a shadow cell.
inline constexpr std::uint32_t block_number_mask = (1u << 24) - 1;

/// Latest access of a warp to another block's shared memory in its cluster.
struct RemoteUse {
  std::uint32_t block = 0, warp = 0, thread = 0;
  std::uint32_t clock = 0;
  std::uint32_t phase = 0;  // phase of the cluster barrier, counted by the owning block
  std::uintptr_t site = 0;
};

struct BlockRecord {
  std::vector<WarpRecord> warps;
  Block* block = nullptr;
  std::uint32_t number = 0;    // truncated to the bits of a shadow cell
  std::uint32_t interval = 0;  // number of block barriers of all threads so far
  bool partial = false;        // some warps have synchronized since the last block barrier
  bool fenced = false;         // some lanes have executed a fence since the last block barrier
  Clocks proxy_known{};        // clocks acquired before the threads' proxy fences
  Shadow shadow;               // of the block's shared memory
  Initialized initialized;
  std::uint32_t era = 0;
  /// Per bulk copy of the block: the warp clock of its issue.
  std::vector<std::uint32_t> copies;
  std::uint32_t copy_era = 0;  // era of the copy numbers
  Synchronizer barriers[named_barriers + tile_barriers];
  std::unordered_map<const void*, Synchronizer> objects;  // in its shared memory
  std::vector<RemoteUse> remote_uses;
  std::uint32_t cluster_phase = 0;
  std::vector<Flight> flights;                                   // in order of issue
  std::unordered_map<std::uint32_t, FlightOrder> flight_orders;  // by thread
  std::vector<Flight> loads;                                     // bulk loads, in order of issue
  // Sources of cp.async in flight, by address in units of 16 bytes; the address range of all
  // sources so far.
  std::unordered_multimap<std::uintptr_t, SourceRead> sources;
  std::uintptr_t sources_begin = ~std::uintptr_t{0}, sources_end = 0;
  [[nodiscard]] bool has_sources() const { return !sources.empty() || !loads.empty(); }
  BlockFingerprint fingerprint;
};

/// Thread and clock on whose behalf a later access is recorded.
struct Agent {
  BlockRecord* block = nullptr;  // null if there is no session
  WarpRecord* warp = nullptr;
  std::uint8_t lane = 0;
  std::uint32_t clock = 0;  // clock of the warp
  std::uintptr_t site = 0;
  std::uint32_t copy = 0;      // number of the bulk copy in the block; 0: not a bulk copy
  std::uint32_t copy_era = 0;  // era of the copy's number
  bool generic = false;        // accesses by the generic instead of the asynchronous proxy
};

class Recorder {
 public:
  explicit Recorder(Worker& worker);
  ~Recorder();

  void begin(LaunchRecord& launch);
  void end();
  void prepare(Block& block);
  /// Makes `thread` the running thread.
  void show(const Thread& thread);
  void exited(const Thread& thread);

  // Synchronization; in synchronize.cpp and flags.cpp.
  /// Handles a barrier at which all threads of the block that have not exited have arrived.
  void block_met(Block& block, const Place& place);
  /// Handles the running thread's arrival at the block's barrier.
  void block_arrived();
  /// Handles the completion of a named barrier, for the threads that waited at it.
  void named_barrier_met(Block& block, int barrier);
  /// Handles the running thread's arrival at a named barrier without waiting.
  void named_barrier_arrived(Block& block, int barrier, const Place& place);
  /// Handles a warp operation that `lanes` have completed. `exchanges`: it passes values between
  /// the lanes.
  void lanes_met(const Warp& warp, std::uint32_t lanes, bool exchanges);
  /// Handles a warp operation that the callers are about to complete without the other lanes of its
  /// mask.
  void met_without(const Warp& warp, std::uint32_t mask, std::uint32_t callers);
  /// Handles a shuffle that the callers have completed. The arrays are indexed by lane.
  void shuffled(const Warp& warp, std::uint32_t mask, std::uint32_t callers,
                const LaneShuffle* const* shuffles);
  /// Records the operand of the running thread's atomic operation.
  void operand(std::uint64_t bits, int bytes, const Place& place);
  /// Reports a collective that was split in two: the lanes `gone` of its mask called it earlier at
  /// the call site of `first`, while the present callers called it at `elsewhere`.
  void parted(const Thread& first, std::uint32_t gone, const Place& elsewhere);
  /// Reports lanes of one warp that wait at the block's barrier at different call sites.
  void split(const Thread& first, const Thread& other);
  void cluster_met(const Cluster& cluster);
  void grid_met(const std::vector<std::unique_ptr<Cluster>>& clusters);
  /// Handles an arrival of the running thread at an mbarrier or another object in shared memory.
  void arrived(Block& owner, const void* object, const Place& place);
  /// Handles the completion of the object's phase with this parity.
  void completed(Block& owner, const void* object, std::uint32_t parity);
  /// Handles a wait of the running thread for the phase with this parity or, if `exact`, for the
  /// phase that is complete now.
  void waited(Block& owner, const void* object, std::uint32_t parity, bool exact,
              const Place& place);
  /// Handles events of synchronization objects: initialization by the running thread, the fence
  /// that publishes the thread's initializations to the TMA unit, and the start of a copy that
  /// signals its bytes to the object.
  void initialized(Block& owner, const void* object, const Place& place);
  void init_fence();
  void told_by_copy(Block& owner, const void* object, const Place& place);

  /// Handles an announcement of bytes by the running thread, and a change of the bytes that the
  /// mbarrier lacks; `word`: the mbarrier's contents.
  void announced(Block& owner, const void* object, const Place& place);
  void balanced(Block& owner, const void* object, std::uint64_t word, std::int64_t lacking);

  /// Records an access on the slow path. Returns true if it is in the list, which excludes accesses
  /// to the thread's own memory. `valued`: the written value is kept.
  bool trace_slowly(std::uintptr_t address, std::uintptr_t site, int log_size, Access access,
                    bool valued = false);
  void before_atomic(std::uintptr_t address, int log_size, Access access, int order,
                     std::uintptr_t site, bool compares, AtomicOrder* in_order);
  /// Marks the thread's next access as one with an index outside the array's type; in bounds.cpp.
  void suspect(const char* file, int line, const char* array, long long index);
  void fence(bool device);
  /// Records a fence.proxy.async of the running thread; in proxy.cpp.
  void proxy_fence();
  /// Returns the agent for accesses by the TMA unit on behalf of the running thread, at its current
  /// clock.
  [[nodiscard]] Agent agent(const Place& place) const;
  void copied(const Agent& agent, const void* address, std::size_t bytes, Access access);
  /// Starts a bulk copy of the running thread. The data is available to threads, including the
  /// issuing one, after a wait for the mbarrier in `owner`'s shared memory that the copy signals.
  /// `from`: its source; empty if the source is not in global memory. `again`: the copy belongs to
  /// the same multicast as the previous one.
  /// `by_threads`: the threads copy by the generic proxy, as cuda::memcpy_async may.
  [[nodiscard]] Agent start_copy(const Place& place, const CopyRange& from, bool again,
                                 bool by_threads);
  void landed(const Agent& agent, Block& owner, const void* barrier);
  /// Returns true if copies at this site are made by threads.
  [[nodiscard]] bool copies_by_threads(std::uint16_t site) const {
    return thread_copies_.contains(site);
  }
  /// Starts a bulk store of the running thread and returns its number. `reduces`: it updates its
  /// destination atomically.
  std::uint32_t take_off(const Place& place, const CopyRange& from, const CopyRange& to,
                         bool reduces);
  /// Ends the thread's stores up to `number`, for which it has waited. `read_only`: ends only their
  /// reads of shared memory.
  void end_flights(std::uint32_t number, bool read_only);
  /// Drops the bulk stores of an exiting thread, except writes that it has not waited for.
  void drop_flights();
  /// Returns true if this worker's blocks have written to the allocation in this launch.
  [[nodiscard]] bool has_written(const void* address) const {
    const Region* const region = written_.empty() ? nullptr : find_region(address);
    return region != nullptr && written_.contains(region);
  }
  /// Returns true if the bytes that this launch accesses are recorded for its launcher.
  [[nodiscard]] bool keeps_footprint() const { return keeps_footprint_; }
  /// Counts a copy issued by a thread, with the bytes it loads from or stores to global memory.
  void count_copy(const Place& place, std::uint64_t loaded, std::uint64_t stored);
  /// Counts a tensor core product of 2 m n k operations.
  void count_product(const Place& place, std::uint64_t operations);
  /// Groups the warp's accesses into requests. `aligned`: all lanes have reached the same point.
  void flush(BlockRecord& block, WarpRecord& warp, bool aligned = true);
  /// Returns true if lanes of a warp wait for its other lanes because the warp's list is full.
  [[nodiscard]] bool any_ahead() const { return !ahead_.empty(); }
  /// Flushes the lists of such warps: all, or those that have waited long enough. Returns true if
  /// there were any.
  bool release_ahead(bool all);
  /// Returns the site of an mbarrier wait of the checked warp that established no ordering; 0:
  /// none. `early`: includes waits before any phase was complete, as producers have them.
  [[nodiscard]] std::uintptr_t stale_wait(bool early) const {
    if (checked_ == nullptr) return 0;
    return checked_->stale_wait != 0 || !early ? checked_->stale_wait : checked_->early_wait;
  }
  [[nodiscard]] LaunchRecord& launch() const { return *launch_; }
  [[nodiscard]] Worker& worker() const { return worker_; }
  [[nodiscard]] const Thread& thread() const { return *thread_; }
  /// Returns true at the first occurrence of this combination in this launch: kind, pair of sites,
  /// memory and variant.
  bool is_news(Kind kind, std::uint16_t site, std::uint16_t other, GuessPlace there = 0,
               std::uint8_t way = 0);

 private:
  static Step* no_list();
  void attach(WarpRecord& warp);
  void wait_for_lanes();
  [[nodiscard]] bool nobody_follows(const Warp& warp) const;
  void release_ahead(BlockRecord& block, WarpRecord& warp);
  void leave();
  /// Returns the clock of the running thread's warp at the thread's position.
  [[nodiscard]] std::uint32_t clock_now() const;
  struct Spot {
    std::uint32_t match = 0;   // matching step; 0: none
    std::uint32_t before = 0;  // if there is no match: the step behind which to insert a new step
  };
  [[nodiscard]] Spot find(const RequestList& list, std::uintptr_t address, std::uintptr_t site,
                          int log_size) const;
  static std::uint32_t behind_lower(const RequestList& list, std::uint32_t here,
                                    std::uintptr_t site);
  [[nodiscard]] bool is_local(std::uintptr_t address) const;
  bool count_local(std::uintptr_t address, std::uintptr_t site, int log_size);
  std::uint32_t insert(RequestList& list, std::uint32_t before, std::uintptr_t address,
                       std::uintptr_t site, int log_size, Access access);
  void place(Step& step, Target& target, std::uintptr_t address, std::uint32_t bytes);
  std::uint16_t site_index(std::uintptr_t site);
  void count(WarpRecord& warp, Request& request, bool aligned);
  /// Returns true if the request touches a sector that no earlier request of this launch touched.
  bool cover(Request& request, bool stores);
  /// Records the request's sectors for the cache model.
  void keep_sectors(WarpRecord& warp, const Request& request);
  void keep_traces(BlockRecord& block);
  /// Returns true if each lane loads the element that follows its previous load at this site,
  /// within the same 16 bytes.
  bool continues_vector(const Request& request);
  /// Checks a request. `position`: its index in the list.
  void check(BlockRecord& block, WarpRecord& warp, Request& request, std::uint32_t position);
  void check_lanes(BlockRecord& block, WarpRecord& warp, Request& request);
  // Bulk stores in flight; in flights.cpp.
  [[nodiscard]] std::uint32_t thread_index() const;
  static void pass_flights(BlockRecord& block, const WarpRecord& warp, const Request& request);
  void check_flights(const BlockRecord& block, const WarpRecord& warp, Request& request);
  void report_flight(const BlockRecord& block, const Request& request, const Flight& flight,
                     std::uintptr_t address, std::uint32_t thread);
  /// Marks the issue of a bulk copy in the list of the running thread.
  void mark_issue();
  [[nodiscard]] Flight flight_of(const Place& place, CopyRange range);
  /// Returns true if the access happens before the issue of another thread's flight.
  static bool precedes(const Flight& flight, const WarpRecord& warp, std::uint32_t thread,
                       std::uint32_t clock);
  // Sources of copies in flight; in sources.cpp.
  void start_load(const Place& place, const CopyRange& from, std::uint32_t copy);
  /// Adds or removes sources of cp.async.
  static void note_sources(BlockRecord& block, const WarpRecord& warp, Request& request);
  void check_sources(const BlockRecord& block, const WarpRecord& warp, Request& request);
  /// Returns true if the running thread has waited for the block's bulk load, or is ordered behind
  /// such a wait.
  [[nodiscard]] bool has_waited_for(const Flight& load) const;
  /// Checks the destination of a bulk store that the running thread issues.
  void check_sources(const Place& place, const CopyRange& to);
  void report_source(const BlockRecord& block, const Request& request, const Flight& source,
                     std::uintptr_t address, std::uint32_t thread);
  // Distributed shared memory; in remote.cpp.
  static bool is_remote(const BlockRecord& block, const Request& request) {
    return request.target.where == Where::shared && request.target.block != &block;
  }
  void note_remote(const BlockRecord& block, const WarpRecord& warp, const Request& request);
  void end_remote(BlockRecord& block);
  void report_remote(const BlockRecord& owner, const RemoteUse& use);
  // Phases of mbarriers; in phases.cpp.
  [[nodiscard]] bool knows(const VectorClock& clock, const Clocks& known,
                           const VectorClockRef& remote) const;
  [[nodiscard]] const Clocks& known_before() const;
  [[nodiscard]] const VectorClockRef& remote_before() const;
  [[nodiscard]] bool heard(const VectorClockRef& told) const;
  static void begin_lessons(WarpRecord& warp, Clocks& known, VectorClockRef& remote);
  void pass_lessons(BlockRecord& block, WarpRecord& warp, const Request& request);
  /// Adds the request to its block's fingerprint; in fingerprint.cpp.
  void fingerprint(BlockRecord& block, WarpRecord& warp, const Request& request);
  void report_init(const Synchronizer& object, const Place& place);
  /// Reports mbarriers whose bytes do not balance at the block's end.
  void end_balances(const BlockRecord& block);
  void find_guesses(const RequestList& list);
  /// Records that the running thread compares and exchanges this word, which it may have read by a
  /// plain load (optimistic_read.cpp).
  void note_guess(const Target& target, std::uintptr_t address);
  // Masks that name absent lanes; in exchange.cpp.
  void watch(BlockRecord& block, WarpRecord& warp, const Request& request);
  void waits_without(const BlockRecord& block, WarpRecord& warp);
  void note_skip(WarpRecord& warp, const Thread& first, std::uint32_t mask, std::uint32_t callers,
                 bool barrier);
  static void end_skip(WarpRecord& warp);
  Finding about_call(Kind kind, const BlockRecord& block, const WarpRecord& warp,
                     const LaneCall& call, int lane, std::uint16_t other);
  void report_skipped(const BlockRecord& block, const WarpRecord& warp,
                      const LaneExchanges::Skip& skip, int lane, std::uint16_t site);
  void report_doubtful(const BlockRecord& block, const WarpRecord& warp,
                       const LaneExchanges::Doubt& doubt, int lane, std::uint16_t site);
  // Branches; in branches.cpp.
  /// Records that `lanes` have entered the basic block at step `index` of the list.
  void follow(WarpRecord& warp, const RequestList& list, std::uint32_t index, std::uint32_t lanes);
  [[nodiscard]] bool tests_on(const RequestList& list, std::uint32_t index, std::uint32_t lanes);
  void go_on(WarpRecord& warp, const RequestList& list, std::uint32_t stand, std::uintptr_t to);
  /// Returns the site number of the basic block at position `stand`.
  [[nodiscard]] std::uint16_t stood_at(const RequestList& list, std::uint32_t stand) const;
  /// Restores the lanes' positions to those at the end of the previous list.
  void stand_as_before(const WarpRecord& warp);
  void remember_stands(const RequestList& list, WarpRecord& warp) const;
  void end_block(BlockRecord& block);
  void arrived_at(Synchronizer& object, const Place& place);
  void acquire(BlockRecord& block, WarpRecord& warp, const VectorClockRef& from);
  /// Acquires clocks released by lanes of the same warp through a copy or a lock.
  void acquire_own_lanes(const VectorClockRef& from);
  /// Records a read of a flag by the running thread. `acquires`: with acquire semantics.
  void read_flag(std::uintptr_t flag, bool acquires);
  /// Returns the vector clock of the running thread's warp, its own accesses included.
  VectorClockRef vector_clock(std::uint32_t clock) const;
  void join_all(BlockRecord& block);
  void heed(BlockRecord& block);
  /// Advances the warp's clock: later accesses are not covered by earlier releases.
  void tick(BlockRecord& block, WarpRecord& warp);
  // Races and uninitialized reads; in check.cpp and check_write.cpp.
  struct Reach;
  struct Cells;
  struct Together;
  struct Common;
  /// Returns true if all blocks read these adjacent units and none writes them.
  static bool only_reads(const Reach& reach, std::size_t window, std::uint32_t first_unit,
                         std::uint32_t last_unit);
  /// Checks consecutive lanes that access contiguous memory.
  void check_row(const Reach& reach, std::size_t offset, std::uint32_t lane, std::uint32_t lanes);
  void check_lane(const Reach& reach, std::size_t offset, std::uint32_t lane);
  // Vectorized variants; in check_row.cpp. Return false if each lane must be checked separately.
  static bool check_at_once(const Reach& reach, std::size_t offset, std::uint32_t lane,
                            std::uint32_t lanes);
  static bool initialized_at_once(const Reach& reach, std::size_t offset, std::size_t bytes);
  static bool after_writes(const Reach& reach, const Together& some, const Common& writes);
  static bool after_reads(const Reach& reach, const Common& reads);
  static bool add_readers(const Reach& reach, const Together& some, const Common& reads,
                          bool written);
  static bool keep_overwritten(const Reach& reach, const Together& some, const Common& writes);
  static std::uint32_t known_to_all(const BlockRecord& block, const WarpRecord& warp);
  /// Checks an access to the bytes of a word that are set in the mask `bytes`.
  void check_word(const Reach& reach, std::size_t word, std::uint32_t bytes, std::uint32_t thread,
                  std::size_t part);
  /// Checks an access to a part of a word.
  void check_bytes(const Reach& reach, std::size_t word, std::uint32_t bytes, const Cell& me,
                   std::size_t part);
  void check_cells(const Reach& reach, const Cells& cells, const Cell& me, std::size_t part);
  void check_read(const Reach& reach, const Cells& cells, const Cell& me);
  void check_write(const Reach& reach, const Cells& cells, const Cell& me, std::uint32_t value);
  void check_overwritten(const Reach& reach, const Cells& cells, const Cell& me);
  /// Returns true if a bulk copy or a tensor core accesses memory that a thread wrote, without a
  /// proxy fence after the write.
  [[nodiscard]] bool lacks_fence(const Request& request, const BlockRecord& block,
                                 const Cell& write) const;
  void check_initialized(const Reach& reach, std::uint32_t thread, std::size_t offset);

  Worker& worker_;
  LaunchRecord* launch_ = nullptr;
  bool counting_ = false;
  bool checking_ = false;
  void settle(std::uintptr_t address);
  struct Suspicion {
    const Thread* thread = nullptr;  // null: none
    std::string file, message;
    int line = 0;
  } suspicion_;
  // The running thread.
  const Thread* thread_ = nullptr;
  const WarpRecord* checked_ = nullptr;  // warp whose accesses are checked
  bool generic_ = false;                 // these accesses are a copy's, by the generic proxy
  BlockRecord* block_ = nullptr;
  WarpRecord* warp_ = nullptr;
  std::vector<std::unique_ptr<RequestList>> lists_;
  std::vector<RequestList*> idle_;  // LIFO: the last one released matches most often
  struct Ahead {
    BlockRecord* block = nullptr;
    WarpRecord* warp = nullptr;
    int turns = 0;  // number of turns of yielded threads since the list was full
  };
  std::vector<Ahead> ahead_;
  Region* last_region_ = nullptr;
  std::uint32_t stretch_ = 0;
  /// Cached known_to_all() of the warp whose list is checked.
  std::optional<std::uint32_t> known_;
  /// Per word and lane: the position in the checked list of its last compare-and-exchange.
  std::unordered_map<std::uint64_t, std::uint32_t> guesses_;
  std::unordered_set<std::uint16_t> thread_copies_;  // sites of copies made by threads
  std::unordered_set<GuessPlace> guess_places_;  // reads validated by a comparison in this launch
  // State while a list is flushed. `stands_`: the step of each lane (0: none; beyond all steps: a
  // position in the previous list). `together_`: the step of all lanes, 0 if they differ. `ways_`:
  // the successors of convergent lanes.
  struct Way {
    std::uint32_t stretch = 0;
    std::uintptr_t to = 0;
    bool parted = false;
  };
  std::uint32_t stands_[32] = {};
  std::uint32_t together_ = 0;
  std::uintptr_t tested_[32] = {};  // per lane: the last test of a condition it has reached
  std::vector<Way> ways_;
  std::uint16_t left_at_[32] = {};  // basic blocks at positions in the previous list
  bool follows_ = false;            // a basic block has been recorded
  std::set<std::tuple<Kind, std::uint16_t, std::uint16_t, GuessPlace, std::uint8_t>> told_;
  std::unordered_map<std::uintptr_t, std::uint16_t> numbers_;  // site numbers, by site
  std::vector<SiteCount> counts_;                              // by site number
  // The last shared load of a list, by site number.
  struct LastLoad {
    std::uint32_t stretch = 0, lanes = 0;
    std::uint32_t first = 0, last = 0;  // units of the first and last lanes
    std::uint64_t sum = 0;              // sum of all lanes' units
  };
  std::vector<LastLoad> last_loads_;
  Work work_;
  std::uint64_t requests_ = 0;       // in this launch
  std::set<const Region*> written_;  // in this launch
  Footprint footprint_;              // of this launch
  bool keeps_footprint_ = false;
  bool samples_ = false;  // blocks of this launch may be left unrecorded
  WrittenRanges ranges_;  // ranges written by this launch's recorded blocks
  Overlaps overlaps_;     // overlaps in this launch
};

}  // namespace rung::simt::record
