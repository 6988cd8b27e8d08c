// SPDX-License-Identifier: Apache-2.0
// Residency of blocks: admits and retires clusters, and cleans up after a launch.
#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include "rung/core/error.hpp"
#include "rung/simt/random.hpp"
#include "rung/simt/record/recorder.hpp"
#include "rung/simt/scheduler.hpp"

namespace rung::simt {
Block::Block() = default;
// Upper bound of the alignment of a program's shared variables.
constexpr std::align_val_t arena_alignment{16 * shared_alignment};

Block::~Block() { ::operator delete(shared, arena_alignment); }

void Worker::prepare(Block& block, uint3 index) {
  const dim3 extent = launch_->block;
  block.index = index;
  const std::size_t count = std::size_t{extent.x} * extent.y * extent.z;
  block.threads.resize(count);
  block.warps.assign((count + warp_lanes - 1) / warp_lanes, Warp{});
  for (Barrier& barrier : block.barriers) barrier = Barrier{};
  block.live = static_cast<int>(count);
  block.mbarrier_waiters.clear();
  block.bulk_loads = 0;
  block.warpgroups.clear();
  uint3 position{};
  for (std::size_t i = 0; i < count; ++i) {
    Thread& thread = block.threads[i];
    thread.fiber = nullptr;
    thread.block = &block;
    thread.warp = &block.warps[i / warp_lanes];
    thread.index = position;
    thread.lane = static_cast<std::uint8_t>(i % warp_lanes);
    thread.wait = Wait::none;
    thread.operation = "";
    thread.at_cluster = thread.met_block = false;
    thread.polled[0] = thread.polled[1] = nullptr;
    thread.volatile_reads = 0;
    thread.copies.clear();
    thread.copy_group = 0;
    thread.bulk_group = 0;
    thread.bulk_stores = 0;
    thread.warp->lanes[thread.lane] = &thread;
    if (++position.x == extent.x) {
      position.x = 0;
      if (++position.y == extent.y) {
        position.y = 0;
        ++position.z;
      }
    }
  }
  // Missing lanes of a partial last warp count as exited.
  if (const std::size_t rest = count % warp_lanes; rest != 0) {
    block.warps.back().exited = ~((1u << rest) - 1);
  }

  // Grown in multiples of the alignment, and never empty, so that shared_address() has a base.
  const std::size_t need = (shared_room(*launch_) / shared_alignment + 1) * shared_alignment;
  if (need > block.shared_capacity) {
    ::operator delete(block.shared, arena_alignment);
    block.shared = nullptr;
    block.shared_capacity = 0;
    block.shared = static_cast<std::byte*>(::operator new(need, arena_alignment));
    block.shared_capacity = need;
  }
  std::memset(block.shared, poison, poisoned_bytes(*launch_));
  if (recorder_ != nullptr) recorder_->prepare(block);
}

void Worker::prepare(Cluster& cluster, std::uint64_t position) {
  const dim3 grid = launch_->grid;
  const auto size = static_cast<std::size_t>(state_->cluster_size);
  cluster.position = position;
  cluster.live = 0;
  cluster.arrived = 0;
  cluster.phase = 0;
  while (cluster.blocks.size() < size) cluster.blocks.push_back(std::make_unique<Block>());
  cluster.blocks.resize(size);
  for (std::size_t rank = 0; rank < size; ++rank) {
    Block& block = *cluster.blocks[rank];
    const uint3 index = state_->block_index(position, static_cast<int>(rank));
    prepare(block, index);
    const std::uint64_t linear =
        index.x + std::uint64_t{grid.x} * (index.y + std::uint64_t{grid.y} * index.z);
    block.random = mix(order_.seed + mix(linear + 1));
    block.cluster = &cluster;
    block.rank = static_cast<int>(rank);
    cluster.live += block.live;
  }
}

void Worker::reserve_ready(std::uint64_t threads) {
  if (threads <= ready_.size()) return;
  std::uint64_t capacity = std::max<std::uint64_t>(ready_.size(), 1);
  while (capacity < threads) capacity *= 2;
  std::vector<Thread*> larger(capacity);
  const std::uint64_t count = ready_count();
  for (std::uint64_t i = 0; i < count; ++i) larger[i] = ready_[(ready_begin_ + i) & ready_mask_];
  ready_ = std::move(larger);
  ready_begin_ = 0;
  ready_end_ = count;
  ready_mask_ = capacity - 1;
}

bool Worker::admit() {
  std::uint64_t position = 0;
  if (!state_->claim(claim_, !resident_.empty(), position)) return false;
  if (state_->record != nullptr && state_->record->sampling.possible()) choose_recording(position);
  if (idle_.empty()) idle_.push_back(std::make_unique<Cluster>());
  resident_.push_back(std::move(idle_.back()));
  idle_.pop_back();
  Cluster& cluster = *resident_.back();
  prepare(cluster, position);
  shown_block_ = nullptr;  // the cached block index may belong to a retired block
  live_ += static_cast<std::uint64_t>(cluster.live);
  threads_ += static_cast<std::uint64_t>(cluster.live);
  reserve_ready(live_);
  gather();
  for (const auto& block : cluster.blocks) {
    for (Thread& thread : block->threads) gathered_.push_back(&thread);
  }
  release_gathered(*cluster.blocks.front(), false);
  return true;
}

void Worker::end_block(Block& block) {
  if (block.bulk_loads != 0) {
    const LateLoad* const load = copies().load_into(block);
    const bool by_threads = load->by_threads || load->thread != nullptr;
    fail(std::string("the block exits while ") + (by_threads ? "an asynchronous" : "a bulk") +
             " copy is on its way into its shared memory",
         load->place);
  }
  Cluster& cluster = *block.cluster;
  if (cluster.live != 0) {
    // Poison exposes reads of an exited block's memory by other blocks of the cluster.
    std::memset(block.shared, poison, poisoned_bytes(*launch_));
    return;
  }
  const auto at = std::find_if(resident_.begin(), resident_.end(),
                               [&](const auto& one) { return one.get() == &cluster; });
  idle_.push_back(std::move(*at));
  *at = std::move(resident_.back());
  resident_.pop_back();
  state_->release_cluster();
  note_progress();
}

void Worker::run(LaunchState& state) {
  if (busy()) throw Error(ErrorCode::internal, "simulated GPU: a kernel cannot launch a kernel");
  struct Running {  // detaches the worker on every exit path
    Worker& worker;
    explicit Running(Worker& here, LaunchState& launch_state) : worker(here) {
      worker.state_ = &launch_state;
      worker.launch_ = &launch_state.launch;
      launch_state.join();
      if (launch_state.record != nullptr) worker.begin_recording(*launch_state.record);
    }
    ~Running() {
      if (worker.state_->record != nullptr) worker.own_recorder_->end();
      worker.recorder_ = nullptr;
      for (auto& cluster : worker.resident_) worker.idle_.push_back(std::move(cluster));
      worker.resident_.clear();
      worker.state_->leave(worker.waiting_);
      worker.launch_ = nullptr;
    }
  } running(*this, state);
  order_ = state.order;
  block_extent = launch_->block;
  grid_extent = launch_->grid;
  launch_data = launch_->data;
  claim_ = {};
  live_ = grid_arrived_ = 0;
  ready_begin_ = ready_end_ = 0;
  asleep_.clear();
  in_step_.clear();
  sliced_begin_ = sliced_count_ = 0;
  sliced_full_ = false;
  slice_trials_ = nullptr;
  current_ = nullptr;
  entry_ = launch_->entry;
  failed_ = false;
  escaped_ = nullptr;
  failure_.clear();
  copies_.clear();
  atomics_left = atomics_before_yield;
  yields_early_ = false;

  for (;;) {
    threads_ = 0;
    if (!admit()) break;
    // All blocks of a cooperative grid are resident before its first thread runs.
    while (launch_->cooperative && admit()) {
    }
    note_progress();
    begin_slices();
    switch_to(main_, *next_ready());
    end_slices();
    // All threads have exited, or one has failed.
    if (failed_) {
      fibers_.restart_all();
      record_failure();
      return;
    }
  }
  check_stacks();
}

void Worker::choose_recording(std::uint64_t position) {
  record::BlockSampling& sampling = state_->record->sampling;
  if (!resident_.empty()) {
    // Blocks of this launch wait for each other, so sampling ends. The new block is recorded if the
    // resident blocks are.
    sampling.give_up();
    if (recorder_ == nullptr) sampling.leave_out();
    return;
  }
  const bool recorded = sampling.records(state_->block_index(position, 0));
  recorder_ = recorded ? own_recorder_.get() : nullptr;
  entry_ = recorded ? launch_->entry : launch_->unrecorded_entry;
}

void Worker::begin_recording(record::LaunchRecord& record) {
  if (own_recorder_ == nullptr) own_recorder_ = std::make_unique<record::Recorder>(*this);
  own_recorder_->begin(record);
  recorder_ = own_recorder_.get();
}

void Worker::record_failure() {
  // A worker that was abandoned because another worker failed has nothing to report.
  std::exception_ptr failure = take_escaped();
  if (failure == nullptr && !failure_.empty()) {
    failure = std::make_exception_ptr(Error(ErrorCode::device, failure_));
  }
  if (failure != nullptr) state_->failure.record(failed_position_, failure);
}

std::exception_ptr Worker::take_escaped() {
  const std::exception_ptr escaped = std::exchange(escaped_, nullptr);
  if (escaped == nullptr) return nullptr;
  std::string what = " an exception that is no std::exception";
  try {
    std::rethrow_exception(escaped);
  } catch (const std::exception& exception) {
    what = std::string(": ") + exception.what();
  } catch (...) {  // NOLINT(bugprone-empty-catch): the exception has no text
  }
  try {
    std::rethrow_exception(escaped);
  } catch (...) {
    try {
      std::throw_with_nested(Error(ErrorCode::device, "simulated GPU: the kernel threw" + what +
                                                          where(*launch_, *current_, nullptr)));
    } catch (...) {
      return std::current_exception();
    }
  }
}

void Worker::check_stacks() {
  if (fibers_.intact()) return;
  fibers_.restart_all();
  // Lowest priority: every other failure is more specific than a stack overflow.
  state_->failure.record(
      state_->clusters,
      std::make_exception_ptr(
          Error(ErrorCode::device,
                "simulated GPU: stack overflow: the kernel's local variables do not fit the stack "
                "of a simulated thread\n  kernel " +
                    kernel_name(*launch_))));
}

}  // namespace rung::simt
