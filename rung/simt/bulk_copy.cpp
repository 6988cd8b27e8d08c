// SPDX-License-Identifier: Apache-2.0
// Bulk copies: validated at issue, performed later.
#include "rung/simt/bulk_copy.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "rung/simt/address.hpp"
#include "rung/simt/async_copy.hpp"
#include "rung/simt/cluster.hpp"
#include "rung/simt/cluster_send.hpp"
#include "rung/simt/mbarrier.hpp"
#include "rung/simt/random.hpp"
#include "rung/simt/record/operations.hpp"
#include "rung/simt/scheduler.hpp"

namespace rung::simt {
namespace {

constexpr std::size_t granule = 16;
constexpr std::uint32_t every_group = ~std::uint32_t{0};  // used when a thread ends

bool half_the_time(const Worker& worker, Block& block) {
  return worker.order() == ThreadOrder::Kind::random && next_random(block.random) % 2 == 0;
}

void require_granules(const char* operation, const void* to, const void* from, std::uint32_t bytes,
                      Place place) {
  require_aligned(to, granule, operation, place);
  require_aligned(from, granule, operation, place);
  if (bytes % granule == 0) return;
  running_worker(operation).fail(std::string(operation) + " of " + std::to_string(bytes) +
                                     " bytes, accepted are multiples of 16",
                                 place);
}

/// Returns the access kind of a load's writes: values sent from registers count as plain writes by
/// the thread.
record::Access written_by(const LateLoad& load) {
  const bool sent = !load.shape.is_box && load.from == nullptr;
  return sent ? record::Access::write : record::Access::engine_write;
}

CopyShape bytes_of(std::uint32_t bytes) {
  CopyShape shape;
  shape.bytes = bytes;
  return shape;
}

/// Fails the launch if it has no clusters: the instruction is then illegal on an H200, even if a
/// block sends to itself.
void require_cluster(const char* name, Worker& here, Place place) {
  if (here.current().block->cluster->blocks.size() > 1) return;
  here.fail(std::string(name) + ": launched without clusters; an illegal instruction on a chip",
            place);
}

}  // namespace

void CopyEngine::clear() {
  loads_.clear();
  told_copies_ = 0;
  stores_.clear();
}

void CopyEngine::issue(Worker& worker, LateLoad load) {
  if (record::Recorder* const recorder = worker.recorder()) {
    // No thread may access the bytes before they arrive; a thread that waits for the mbarrier may
    // access them then.
    const bool sent = written_by(load) == record::Access::write;
    const Block& sender = *worker.current().block;
    const bool from_block =
        load.from >= sender.shared && load.from < sender.shared + sender.shared_capacity;
    const bool global = load.shape.is_box || (load.from != nullptr && !from_block);
    const record::CopyRange source = !global ? record::CopyRange()
                                     : load.shape.is_box
                                         ? range_of(load.shape)
                                         : record::CopyRange(load.from, load.shape.bytes);
    load.agent = sent ? recorder->agent(load.place)
                      : recorder->start_copy(load.place, source, load.again, load.by_threads);
    load.agent.generic = load.by_threads;
    if (!sent && !load.by_threads) {
      recorder->count_copy(load.place, global ? load.shape.bytes : 0, 0);
    }
    recorder->copied(load.agent, load.to, load.shape.bytes, written_by(load));
    if (!sent && !load.by_threads) {
      recorder->told_by_copy(*load.target, load.barrier, load.place);
    }
    recorder->arrived(*load.target, load.barrier, load.place);
  }
  ++load.target->bulk_loads;
  loads_.push_back(load);
  if (half_the_time(worker, *load.target)) land(worker, loads_.size() - 1);
}

void CopyEngine::issue(Worker& worker, LateStore store) {
  Thread& thread = *store.thread;
  ++thread.bulk_stores;
  if (record::Recorder* const recorder = worker.recorder()) {
    recorder->count_copy(store.place, 0, store.shape.bytes);
    const record::CopyRange source(store.from, store.shape.bytes);
    const record::CopyRange target =
        store.shape.is_box ? range_of(store.shape) : record::CopyRange(store.to, store.shape.bytes);
    store.flight = recorder->take_off(store.place, source, target, store.reduce != nullptr);
  }
  const bool early = half_the_time(worker, *thread.block);
  stores_.push_back(std::move(store));
  if (!early) return;
  LateStore& issued = stores_.back();
  issued.data.assign(issued.from, issued.from + issued.shape.bytes);
}

void CopyEngine::issue_copies(Worker& worker, LateLoad load) {
  load.thread = &worker.current();
  if (record::Recorder* const recorder = worker.recorder()) {
    load.agent = recorder->agent(load.place);
  }
  ++load.target->bulk_loads;
  ++told_copies_;
  loads_.push_back(std::move(load));
}

void CopyEngine::land_copies(Worker& worker, const Thread& thread, std::uint32_t group) {
  for (std::size_t i = 0; told_copies_ != 0 && i < loads_.size();) {
    const LateLoad& load = loads_[i];
    if (load.thread == &thread && load.copies.back().group < group) {
      land(worker, i);
    } else {
      ++i;
    }
  }
}

const LateLoad* CopyEngine::load_into(const Block& block) const {
  const auto load = std::find_if(loads_.begin(), loads_.end(),
                                 [&](const LateLoad& one) { return one.target == &block; });
  return load == loads_.end() ? nullptr : &*load;
}

bool CopyEngine::land_one(Worker& worker) {
  if (loads_.empty()) return false;
  std::size_t index = 0;
  if (worker.order() == ThreadOrder::Kind::reverse) {
    index = loads_.size() - 1;
  } else if (worker.order() == ThreadOrder::Kind::random) {
    index = next_random(loads_.front().target->random) % loads_.size();
  }
  land(worker, index);
  return true;
}

void CopyEngine::land(Worker& worker, std::size_t index) {
  const LateLoad load = loads_[index];
  loads_.erase(loads_.begin() + static_cast<std::ptrdiff_t>(index));
  --load.target->bulk_loads;
  if (load.thread != nullptr) {
    --told_copies_;
    if (load.agent.block != nullptr) worker.recorder()->flush(*load.agent.block, *load.agent.warp);
    for (const AsyncCopy& copy : load.copies) {
      if (!copy.done) carry_out(copy);
      if (load.agent.block == nullptr) continue;
      worker.recorder()->copied(load.agent, copy.from, static_cast<std::size_t>(copy.valid),
                                record::Access::source_done);
      worker.recorder()->copied(load.agent, copy.to, static_cast<std::size_t>(copy.bytes),
                                record::Access::landed);
    }
    complete_bytes(worker, *load.target, load.barrier, load.shape.bytes);
    return;
  }
  if (load.shape.is_box) {
    load_box(load.shape, load.to, load.target->shared);
  } else {
    const std::byte* from = load.from != nullptr ? load.from : load.value.data();
    std::memcpy(load.to, from, load.shape.bytes);
  }
  if (load.agent.block != nullptr) {
    record::Recorder& recorder = *worker.recorder();
    if (load.shape.is_box) note_box_read(recorder, load.agent, load.shape);
    if (!load.shape.is_box && load.from != nullptr) {
      recorder.copied(load.agent, load.from, load.shape.bytes, record::Access::engine_read);
    }
    recorder.copied(load.agent, load.to, load.shape.bytes, written_by(load));
    recorder.landed(load.agent, *load.target, load.barrier);
  }
  complete_bytes(worker, *load.target, load.barrier, load.shape.bytes);
}

void CopyEngine::complete_stores(Thread& thread, std::uint32_t group, bool read_only) {
  if (record::Recorder* const recorder = this_worker->recorder()) {
    std::uint32_t latest = 0;  // highest number of an ending flight
    for (const LateStore& store : stores_) {
      if (store.thread == &thread && store.group < group) latest = std::max(latest, store.flight);
    }
    if (group != every_group) {
      recorder->end_flights(latest, read_only);
    } else {
      recorder->drop_flights();
    }
  }
  const auto complete = [&](LateStore& store) {
    if (store.thread != &thread || store.group >= group) return false;
    if (store.data.empty()) store.data.assign(store.from, store.from + store.shape.bytes);
    record::Recorder* const recorder = this_worker->recorder();
    if (recorder != nullptr && !store.waited) {
      recorder->copied(recorder->agent(store.place), store.from, store.shape.bytes,
                       record::Access::engine_read);
    }
    if (recorder != nullptr && !read_only && store.shape.is_box) {
      note_box_write(*recorder, recorder->agent(store.place), store.shape, store.reduce != nullptr);
    } else if (recorder != nullptr && !read_only) {
      recorder->copied(recorder->agent(store.place), store.to, store.shape.bytes,
                       store.reduce != nullptr ? record::Access::atomic : record::Access::write);
    }
    // A completed store was made by the asynchronous proxy, and orders the thread's writes for it.
    if (recorder != nullptr && !read_only) recorder->proxy_fence();
    store.waited = true;
    if (read_only) return false;
    if (store.shape.is_box) {
      store_box(store.shape, store.data.data(),
                static_cast<std::size_t>(store.from - thread.block->shared), store.reduce);
    } else if (store.reduce != nullptr) {
      store.reduce(store.to, store.data.data(), store.data.size());
    } else {
      std::memcpy(store.to, store.data.data(), store.data.size());
    }
    --thread.bulk_stores;
    memory_changed = true;
    return true;
  };
  // std::remove_if calls the predicate once per store, in order of issue.
  stores_.erase(std::remove_if(stores_.begin(), stores_.end(), complete), stores_.end());
}

void CopyEngine::finish_stores(Worker& worker, Thread& thread) {
  for (const LateStore& store : stores_) {
    if (store.thread != &thread || store.waited) continue;
    worker.fail(
        "a thread exits without waiting for its bulk store to read shared memory "
        "(bulk_wait_read)",
        Place{});
  }
  complete_stores(thread, every_group, false);
}

void bulk_load(void* to, const void* from, std::uint32_t bytes, std::uint64_t* barrier,
               Place place) {
  Worker& here = running_worker("bulk_load");
  require_granules("bulk_load", to, from, bytes, place);
  require_shared("bulk_load", to, bytes, place);
  require_shared("bulk_load", barrier, sizeof(*barrier), place);
  require_global("bulk_load", from, bytes, place);
  here.copies().issue(here, {bytes_of(bytes), here.current().block, static_cast<std::byte*>(to),
                             static_cast<const std::byte*>(from), barrier, place});
}

void async_load(void* to, const void* from, std::size_t bytes, std::uint64_t* barrier,
                Place place) {
  if (bytes == 0) return;
  Worker& here = running_worker("memcpy_async");
  const auto count = static_cast<std::uint32_t>(bytes);
  mbarrier_expect(barrier, count, place);
  LateLoad load{bytes_of(count),
                here.current().block,
                static_cast<std::byte*>(to),
                static_cast<const std::byte*>(from),
                barrier,
                place};
  load.by_threads = true;
  here.copies().issue(here, load);
}

void bulk_load_multicast(void* to, const void* from, std::uint32_t bytes, std::uint64_t* barrier,
                         std::uint16_t ranks, Place place) {
  Worker& here = running_worker("bulk_load_multicast");
  require_granules("bulk_load_multicast", to, from, bytes, place);
  require_shared("bulk_load_multicast", to, bytes, place);
  require_shared("bulk_load_multicast", barrier, sizeof(*barrier), place);
  require_global("bulk_load_multicast", from, bytes, place);
  bool again = false;
  for_each_rank("bulk_load_multicast", ranks, place, [&](Block& block) {
    LateLoad load{bytes_of(bytes),
                  &block,
                  static_cast<std::byte*>(in(block, to)),
                  static_cast<const std::byte*>(from),
                  static_cast<std::uint64_t*>(in(block, barrier)),
                  place};
    load.again = std::exchange(again, true);
    here.copies().issue(here, load);
  });
}

void bulk_send(void* to, const void* from, std::uint32_t bytes, std::uint64_t* barrier, int rank,
               Place place) {
  Worker& here = running_worker("bulk_send");
  require_granules("bulk_send", to, from, bytes, place);
  require_shared("bulk_send", to, bytes, place);
  require_shared("bulk_send", from, bytes, place);
  require_shared("bulk_send", barrier, sizeof(*barrier), place);
  Block& block = block_of_rank("bulk_send", rank, place);
  require_cluster("bulk_send", here, place);
  here.copies().issue(here, {bytes_of(bytes), &block, static_cast<std::byte*>(in(block, to)),
                             static_cast<const std::byte*>(from),
                             static_cast<std::uint64_t*>(in(block, barrier)), place});
}

void cluster_send(void* to, const void* value, std::uint64_t* barrier, int rank, Place place,
                  std::uint32_t bytes) {
  Worker& here = running_worker("cluster_send");
  require_aligned(to, bytes, "cluster_send", place);
  require_shared("cluster_send", to, bytes, place);
  require_shared("cluster_send", barrier, sizeof(*barrier), place);
  Block& block = block_of_rank("cluster_send", rank, place);
  require_cluster("cluster_send", here, place);
  LateLoad load{bytes_of(bytes),
                &block,
                static_cast<std::byte*>(in(block, to)),
                nullptr,
                static_cast<std::uint64_t*>(in(block, barrier)),
                place};
  std::memcpy(load.value.data(), value, bytes);
  here.copies().issue(here, load);
}

void bulk_store(void* to, const void* from, std::uint32_t bytes, BulkReduce reduce, Place place) {
  Worker& here = running_worker("bulk_store");
  const char* name = reduce == nullptr ? "bulk_store" : "bulk_reduce_add";
  require_granules(name, to, from, bytes, place);
  require_shared(name, from, bytes, place);
  require_global(name, to, bytes, place);
  if (bytes == 0) return;
  Thread& self = here.current();
  here.copies().issue(here, LateStore{bytes_of(bytes),
                                      &self,
                                      self.bulk_group,
                                      static_cast<std::byte*>(to),
                                      static_cast<const std::byte*>(from),
                                      reduce,
                                      {},
                                      false,
                                      place});
}

void bulk_commit() { ++running_worker("bulk_commit").current().bulk_group; }

void bulk_wait_group(int pending, bool read) {
  Worker& here = running_worker("bulk_wait");
  Thread& self = here.current();
  if (self.bulk_stores == 0) return;
  // Groups 0 .. bulk_group - 1 are committed.
  const std::uint32_t keep = static_cast<std::uint32_t>(pending);
  here.copies().complete_stores(self, self.bulk_group > keep ? self.bulk_group - keep : 0, read);
}

void fence_async_proxy() {
  record::proxy_fence();
  fence_mbarrier_init();
}

void bulk_prefetch(const void* from, std::uint32_t bytes, Place place) {
  require_granules("bulk_prefetch", from, from, bytes, place);
  require_global("bulk_prefetch", from, bytes, place);
}

}  // namespace rung::simt
