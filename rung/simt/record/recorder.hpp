// SPDX-License-Identifier: Apache-2.0
// The recorder of one OS thread's worker: it follows the lanes of each warp, makes requests of
// their accesses at each point where the warp synchronizes, counts them and checks them. Internal
// to simt/.
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
  RequestList* list = nullptr;  // null: no accesses since it last synchronized
  std::uint32_t clock = 1;
  std::uint32_t launched = 0;        // lanes that exist
  std::uint32_t fenced = 0;          // lanes behind a fence: their next flag publishes
  std::uint32_t fenced_for_all = 0;  // of those, behind one that reaches beyond the block
  std::uint32_t ahead = 0;           // lanes that wait for the others because the list is full
  std::uint32_t at_barrier = 0;      // lanes that wait at the block's barrier
  bool compared = false;             // an atomic comparison is in the list
  bool diverged = false;
  std::uint64_t visits = 0;           // basic blocks that it has entered
  std::uint64_t requests_so_far = 0;  // while fingerprints are taken
  WarpTrace trace;                    // of global memory, while it is counted
  WarpWaits waits;
  VectorClockRef remote;                       // of other blocks
  VectorClockRef released;                     // what a lane published last
  VectorClockRef acquired, acquired_in_block;  // of the flag that was read last
  // Of flags that were read relaxed or volatile, by these lanes, that have had no fence since; and
  // of the last of those flags.
  VectorClockRef pending, last_pending;
  std::uint32_t pending_lanes = 0;
  bool released_to_all = false;
  Clocks known{};                      // of this block
  std::uint32_t synced[32] = {};       // by lane: the clock at which it last met others of the warp
  std::uint32_t fence_clock[32] = {};  // by lane: the warp's clock at its last fence
  std::uint32_t proxy_clock[32] = {};  // by lane: the warp's clock at its last fence.proxy.async
  std::uint32_t told[32] = {};  // by lane: the clock of its own warp that an object told it of
  bool any_told = false;
  // Of mbarriers that its lanes have waited for since its list began: in the list stand marks where
  // they did. What it knew before that; `known` and `remote` are what it knows behind all of them.
  struct Lesson {
    int lane = 0;
    VectorClockRef from;
  };
  std::vector<Lesson> lessons;
  Clocks known_before{};
  VectorClockRef remote_before;
  std::uintptr_t stale_wait = 0;             // the site of one that told nothing new; 0: none
  std::unique_ptr<LaneExchanges> exchanges;  // null: no mask has named an absent lane
  Step* cursors[32] = {};
  std::uintptr_t entered[32] = {};  // by lane: the block that it has entered and not told
  std::uint16_t together = 0;       // the block at which all lanes stand; 0: look at each
  // By lane: the last block it entered, and the first of the lanes that entered with it.
  struct Stand {
    std::uint16_t site = 0;
    std::int8_t first_lane = -1;  // -1: none
  };
  Stand stands[32];
};

/// Blocks by number, as far as a shadow cell can tell them apart.
inline constexpr std::uint32_t block_number_mask = (1u << 24) - 1;

/// Bytes that a bulk store reads or writes, until its thread has waited for that.
struct Flight {
  std::uint32_t thread = 0;  // that has started it, within the block
  std::uint32_t number = 0;  // among its stores, from 1
  std::uint32_t waited = 0;  // the number of the wait that ended it; 0: none has
  bool writes = false;
  std::uintptr_t site = 0;
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  // What the thread knew of others then, and of its own warp's lanes.
  Clocks known{};
  std::uint32_t synced = 0, told = 0;
};
/// A thread's stores and waits so far, and those that its list has told of.
struct FlightOrder {
  std::uint32_t issued = 0, waits = 0;
  std::uint32_t passed_issues = 0, passed_waits = 0;
};

/// The latest access of a warp to the shared memory of another block of its cluster.
struct RemoteUse {
  std::uint32_t block = 0, warp = 0, thread = 0;
  std::uint32_t clock = 0;
  std::uint32_t phase = 0;  // of the cluster's barrier, as the owner counts
  std::uintptr_t site = 0;
};

struct BlockRecord {
  std::vector<WarpRecord> warps;
  Block* block = nullptr;
  std::uint32_t number = 0;    // cut to what a cell holds
  std::uint32_t interval = 0;  // barriers of all threads so far
  bool partial = false;        // some warps have met others since
  bool fenced = false;         // some lanes have fenced since
  Clocks proxy_known{};        // what threads knew of at a fence.proxy.async of theirs
  Shadow shadow;               // of its shared memory
  Initialized initialized;
  std::uint32_t era = 0;
  /// Of each bulk copy that it has started: its thread's warp's clock then.
  std::vector<std::uint32_t> copies;
  std::uint32_t copy_era = 0;  // of their numbers
  Synchronizer barriers[named_barriers + tile_barriers];
  std::unordered_map<const void*, Synchronizer> objects;  // in its shared memory
  std::vector<RemoteUse> remote_uses;
  std::uint32_t cluster_phase = 0;
  std::vector<Flight> flights;                                   // in order of issue
  std::unordered_map<std::uint32_t, FlightOrder> flight_orders;  // by thread
  BlockFingerprint fingerprint;
};

/// A thread for which something is done later.
struct Agent {
  BlockRecord* block = nullptr;  // null: nobody records
  WarpRecord* warp = nullptr;
  std::uint8_t lane = 0;
  std::uint32_t clock = 0;  // of its warp
  std::uintptr_t site = 0;
  std::uint32_t copy = 0;      // its number among the block's bulk copies; 0: none of those
  std::uint32_t copy_era = 0;  // by which it is counted
  bool generic = false;        // it comes by the way of threads, not by the engines' own
};

class Recorder {
 public:
  explicit Recorder(Worker& worker);
  ~Recorder();

  void begin(LaunchRecord& launch);
  void end();
  void prepare(Block& block);
  /// The thread runs now, the one before does not.
  void show(const Thread& thread);
  void exited(const Thread& thread);

  // Who synchronizes; in synchronize.cpp and flags.cpp.
  /// All threads of the block that have not exited have come to a barrier.
  void block_met(Block& block, const Place& place);
  /// The running thread waits at the block's barrier.
  void block_arrived();
  /// A named barrier completes for those that wait there.
  void named_barrier_met(Block& block, int barrier);
  /// The running thread arrives at a named barrier without waiting.
  void named_barrier_arrived(Block& block, int barrier, const Place& place);
  /// `exchanges`: they have passed values to each other.
  void lanes_met(const Warp& warp, std::uint32_t lanes, bool exchanges);
  /// The callers of a warp operation are about to meet; their mask names other lanes, too.
  void met_without(const Warp& warp, std::uint32_t mask, std::uint32_t callers);
  /// The callers of a shuffle have met; by lane.
  void shuffled(const Warp& warp, std::uint32_t mask, std::uint32_t callers,
                const LaneShuffle* const* shuffles);
  /// The running thread's atomic operation has this operand.
  void operand(std::uint64_t bits, int bytes, const Place& place);
  /// Lanes are at a place without those of their mask that were there when these were elsewhere.
  void parted(const Thread& first, std::uint32_t gone, const Place& elsewhere);
  /// Lanes of one warp wait at the block's barrier in different calls.
  void split(const Thread& first, const Thread& other);
  void cluster_met(const Cluster& cluster);
  void grid_met(const std::vector<std::unique_ptr<Cluster>>& clusters);
  /// An object in the shared memory of a block, an mbarrier: the running thread arrives there ...
  void arrived(Block& owner, const void* object, const Place& place);
  /// ... its phase of this parity is over ...
  void completed(Block& owner, const void* object, std::uint32_t parity);
  /// ... and the running thread has waited for that: for a phase of this parity, or (`exact`) for
  /// the one that is over now.
  void waited(Block& owner, const void* object, std::uint32_t parity, bool exact,
              const Place& place);
  /// The running thread initializes it; a fence makes its inits so far known to the engines; and it
  /// starts a copy that will tell it of its bytes.
  void initialized(Block& owner, const void* object, const Place& place);
  void init_fence();
  void told_by_copy(Block& owner, const void* object, const Place& place);

  /// Returns whether it is in the list: a thread's own memory is not. `valued`: what is written is
  /// kept.
  bool trace_slowly(std::uintptr_t address, std::uintptr_t site, int log_size, Access access,
                    bool valued = false);
  void before_atomic(std::uintptr_t address, int log_size, Access access, int order,
                     std::uintptr_t site, bool compares, AtomicOrder* in_order);
  /// Its next access has an index that the array's type does not have; in bounds.cpp.
  void suspect(const char* file, int line, const char* array, long long index);
  void fence(bool device);
  /// fence.proxy.async by the running thread; in proxy.cpp.
  void proxy_fence();
  /// The copy engine reads or writes for this thread, under the clock at which it was told to.
  [[nodiscard]] Agent agent(const Place& place) const;
  void copied(const Agent& agent, const void* address, std::size_t bytes, Access access);
  /// The running thread starts a bulk copy. Nobody may use what it writes, not even that thread,
  /// who has not waited for the mbarrier in the shared memory of `owner` that it lands for.
  [[nodiscard]] Agent start_copy(const Place& place);
  void landed(const Agent& agent, Block& owner, const void* barrier);
  /// The running thread starts a bulk store: its number. `to`: null where it is no row of bytes.
  std::uint32_t take_off(const Place& place, const void* from, const void* to, std::size_t bytes);
  /// It has waited for its stores up to this number; `read_only`: to have read alone.
  void end_flights(std::uint32_t number, bool read_only);
  /// It ends.
  void drop_flights();
  /// Returns whether this worker's blocks have written in that allocation in this launch.
  [[nodiscard]] bool has_written(const void* address) const {
    const Region* const region = written_.empty() ? nullptr : find_region(address);
    return region != nullptr && written_.contains(region);
  }
  /// A copy that a thread starts, and the bytes that it moves from or to global memory.
  void count_copy(const Place& place, std::uint64_t loaded, std::uint64_t stored);
  /// A product by tensor cores; of 2 m n k operations.
  void count_product(const Place& place, std::uint64_t operations);
  /// Makes requests of what the warp has accessed. `aligned`: its lanes have all come as far as
  /// they will.
  void flush(BlockRecord& block, WarpRecord& warp, bool aligned = true);
  /// Returns whether lanes wait for the others of their warps because a list is full ...
  [[nodiscard]] bool any_ahead() const { return !ahead_.empty(); }
  /// ... flushes those warps: all of them, or those that have been waited for long enough; whether
  /// there was any.
  bool release_ahead(bool all);
  /// Of the warp that is checked: the site of a wait for an mbarrier that told it nothing new; 0:
  /// none.
  [[nodiscard]] std::uintptr_t stale_wait() const {
    return checked_ != nullptr ? checked_->stale_wait : 0;
  }
  [[nodiscard]] LaunchRecord& launch() const { return *launch_; }
  [[nodiscard]] Worker& worker() const { return worker_; }
  [[nodiscard]] const Thread& thread() const { return *thread_; }
  /// Returns whether this is the first time in this launch that these two sites are to blame for
  /// that, there, in this of several ways.
  bool is_news(Kind kind, std::uint16_t site, std::uint16_t other, GuessPlace there = 0,
               std::uint8_t way = 0);

 private:
  static Step* no_list();
  void attach(WarpRecord& warp);
  void wait_for_lanes();
  [[nodiscard]] bool nobody_follows(const Warp& warp) const;
  void release_ahead(BlockRecord& block, WarpRecord& warp);
  void leave();
  /// Of the running thread's warp, where that thread stands.
  [[nodiscard]] std::uint32_t clock_now() const;
  struct Spot {
    std::uint32_t match = 0;   // a step; 0: none fits
    std::uint32_t before = 0;  // then: the step behind which a new one belongs
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
  /// Returns true if it touches a sector that no request of this launch has touched.
  bool cover(Request& request, bool stores);
  /// Keeps which sectors it touches, for the model of the caches.
  void keep_sectors(WarpRecord& warp, const Request& request);
  void keep_traces(BlockRecord& block);
  /// Returns true if each lane loads the element behind its previous load at the same place in the
  /// code, within the same 16 bytes.
  bool continues_vector(const Request& request);
  /// `position`: of the request in its list.
  void check(BlockRecord& block, WarpRecord& warp, Request& request, std::uint32_t position);
  void check_lanes(BlockRecord& block, WarpRecord& warp, Request& request);
  // Bulk stores in flight; in flights.cpp.
  [[nodiscard]] std::uint32_t thread_index() const;
  static void pass_flights(BlockRecord& block, const WarpRecord& warp, const Request& request);
  void check_flights(const BlockRecord& block, const WarpRecord& warp, Request& request);
  void report_flight(const BlockRecord& block, const Request& request, const Flight& flight,
                     std::uintptr_t address, std::uint32_t thread);
  // Shared memory of other blocks; in remote.cpp.
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
  /// Adds the request to the fingerprint of its block; in fingerprint.cpp.
  void fingerprint(BlockRecord& block, WarpRecord& warp, const Request& request);
  void report_init(const Synchronizer& object, const Place& place);
  void find_guesses(const RequestList& list);
  /// The running thread compares this word, which it may have read plainly in a list before.
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
  /// These lanes have entered the block at this step of the list.
  void follow(WarpRecord& warp, const RequestList& list, std::uint32_t index, std::uint32_t lanes);
  [[nodiscard]] bool tests_on(const RequestList& list, std::uint32_t index, std::uint32_t lanes);
  void go_on(WarpRecord& warp, const RequestList& list, std::uint32_t stand, std::uintptr_t to);
  /// The number of the block at which those stand.
  [[nodiscard]] std::uint16_t stood_at(const RequestList& list, std::uint32_t stand) const;
  /// Where a list begins lanes stand where the one before left them.
  void stand_as_before(const WarpRecord& warp);
  void remember_stands(const RequestList& list, WarpRecord& warp) const;
  void end_block(BlockRecord& block);
  void arrived_at(Synchronizer& object, const Place& place);
  void acquire(BlockRecord& block, WarpRecord& warp, const VectorClockRef& from);
  /// The running thread may hear of lanes of its own warp too: of one that had something copied, or
  /// held a lock before.
  void acquire_own_lanes(const VectorClockRef& from);
  /// The running thread has read a flag; `acquires`: and goes by it.
  void read_flag(std::uintptr_t flag, bool acquires);
  /// What the running thread's warp knows, its own accesses so far included.
  VectorClockRef vector_clock(std::uint32_t clock) const;
  void join_all(BlockRecord& block);
  void heed(BlockRecord& block);
  /// The warp's next accesses are news to all that have been told so far.
  void tick(BlockRecord& block, WarpRecord& warp);
  // Races and uninitialized reads; in check.cpp and check_write.cpp.
  struct Reach;
  struct Cells;
  struct Together;
  struct Common;
  /// Returns whether these adjacent units are read by all blocks and written by none.
  static bool only_reads(const Reach& reach, std::size_t window, std::uint32_t first_unit,
                         std::uint32_t last_unit);
  /// Of lanes in a row that access memory in a row.
  void check_row(const Reach& reach, std::size_t offset, std::uint32_t lane, std::uint32_t lanes);
  void check_lane(const Reach& reach, std::size_t offset, std::uint32_t lane);
  // The same at once; in check_row.cpp. False: it takes a closer look.
  static bool check_at_once(const Reach& reach, std::size_t offset, std::uint32_t lane,
                            std::uint32_t lanes);
  static bool initialized_at_once(const Reach& reach, std::size_t offset, std::size_t bytes);
  static bool after_writes(const Reach& reach, const Together& some, const Common& writes);
  static bool after_reads(const Reach& reach, const Common& reads);
  static bool add_readers(const Reach& reach, const Together& some, const Common& reads,
                          bool written);
  static bool keep_overwritten(const Reach& reach, const Together& some, const Common& writes);
  static std::uint32_t known_to_all(const BlockRecord& block, const WarpRecord& warp);
  /// `bytes`: of the word, those that are accessed.
  void check_word(const Reach& reach, std::size_t word, std::uint32_t bytes, std::uint32_t thread,
                  std::size_t part);
  /// Of a word of which some access concerns a part.
  void check_bytes(const Reach& reach, std::size_t word, std::uint32_t bytes, const Cell& me,
                   std::size_t part);
  void check_cells(const Reach& reach, const Cells& cells, const Cell& me, std::size_t part);
  void check_read(const Reach& reach, const Cells& cells, const Cell& me);
  void check_write(const Reach& reach, const Cells& cells, const Cell& me, std::uint32_t value);
  void check_overwritten(const Reach& reach, const Cells& cells, const Cell& me);
  /// A copy or a tensor core comes to what a thread has written, and no fence made that known.
  [[nodiscard]] bool lacks_fence(const Request& request, const BlockRecord& block,
                                 const Cell& write) const;
  void check_initialized(const Reach& reach, std::uint32_t thread, std::size_t offset);

  Worker& worker_;
  LaunchRecord* launch_ = nullptr;
  bool counting_ = false;
  bool checking_ = false;
  void settle(std::uintptr_t address);
  struct Suspicion {
    const Thread* thread = nullptr;  // null: there is none
    std::string file, message;
    int line = 0;
  } suspicion_;
  // The thread that runs.
  const Thread* thread_ = nullptr;
  const WarpRecord* checked_ = nullptr;  // whose accesses are looked at
  bool generic_ = false;                 // those of a copy that comes by the way of threads
  BlockRecord* block_ = nullptr;
  WarpRecord* warp_ = nullptr;
  std::vector<std::unique_ptr<RequestList>> lists_;
  std::vector<RequestList*> idle_;  // the last released on top: it fits best
  struct Ahead {
    BlockRecord* block = nullptr;
    WarpRecord* warp = nullptr;
    int turns = 0;  // of the threads that had given way, since
  };
  std::vector<Ahead> ahead_;
  Region* last_region_ = nullptr;
  std::uint32_t stretch_ = 0;
  /// known_to_all() of the warp whose list is checked, once somebody has asked.
  std::optional<std::uint32_t> known_;
  /// While a list is checked: where a lane's last comparison of a word stands in it.
  std::unordered_map<std::uint64_t, std::uint32_t> guesses_;
  std::unordered_set<GuessPlace> guess_places_;  // that this launch has shown to be some
  // Of the list being flushed: the step at which each lane stands, 0 for none, behind all steps for
  // where the list before has left it; or at which all stand (0: look at each); and where the lanes
  // that stood together went from there.
  struct Way {
    std::uint32_t stretch = 0;
    std::uintptr_t to = 0;
    bool parted = false;
  };
  std::uint32_t stands_[32] = {};
  std::uint32_t together_ = 0;
  std::uintptr_t tested_[32] = {};  // by lane: the test of a condition that it has come to
  std::vector<Way> ways_;
  std::uint16_t left_at_[32] = {};  // sites of what the list before has left, by its first lane
  bool follows_ = false;            // any block so far
  std::set<std::tuple<Kind, std::uint16_t, std::uint16_t, GuessPlace, std::uint8_t>> told_;
  std::unordered_map<std::uintptr_t, std::uint16_t> numbers_;  // of sites
  std::vector<SiteCount> counts_;                              // by that number
  // By that number: the last shared load of a list.
  struct LastLoad {
    std::uint32_t stretch = 0, lanes = 0;
    std::uint32_t first = 0, last = 0;  // units of the first and the last of those lanes
    std::uint64_t sum = 0;              // of all lanes' units
  };
  std::vector<LastLoad> last_loads_;
  Work work_;
  std::uint64_t requests_ = 0;       // of this launch
  std::set<const Region*> written_;  // likewise
  Footprint footprint_;              // likewise
  bool keeps_footprint_ = false;
  bool samples_ = false;  // blocks of this launch may be left out
  WrittenRanges ranges_;  // likewise: what its recorded blocks have written
  Overlaps overlaps_;     // likewise
};

}  // namespace rung::simt::record
