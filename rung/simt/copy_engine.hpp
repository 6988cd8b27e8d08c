// SPDX-License-Identifier: Apache-2.0
// Model of the TMA unit: the queue of bulk and tensor copies that the blocks of one worker have
// issued and that have not been performed yet. Internal to simt/.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rung/simt/block.hpp"
#include "rung/simt/bulk_copy.hpp"
#include "rung/simt/record/recorder.hpp"
#include "rung/simt/tensor_copy.hpp"

namespace rung::simt {

class Worker;

/// Shape of a copy: `bytes` contiguous bytes, or a box of a tensor.
struct CopyShape {
  std::uint32_t bytes = 0;
  bool is_box = false;
  TensorMapFields map{};
  int at[5] = {};
  int offsets[3] = {};  // for an im2col box only
};

/// A copy into `target`'s shared memory from global memory, from another block, or of a sent value.
struct LateLoad {
  CopyShape shape;
  Block* target;
  std::byte* to;
  const std::byte* from;  // unused for a box; null: `value` is the source
  std::uint64_t* barrier;
  Place place;
  record::Agent agent = {};
  std::array<std::byte, 16> value{};
  // Counted and checked as accesses by the threads instead of the TMA unit.
  bool by_threads = false;
  bool again = false;  // not the first destination of its multicast
  // cp.async copies of a thread that are tracked by an mbarrier; empty: a copy of the TMA unit.
  std::vector<AsyncCopy> copies{};
  const Thread* thread = nullptr;  // the thread that issued `copies`
};

/// A copy from shared to global memory.
struct LateStore {
  CopyShape shape;
  Thread* thread;
  std::uint32_t group;
  std::byte* to;  // unused for a box
  const std::byte* from;
  BulkReduce reduce;
  std::vector<std::byte> data;  // contents of `from` after the read
  bool waited = false;          // its thread has waited for the read
  Place place = {};
  std::uint32_t flight = 0;  // number of the store, while a session checks
};

class CopyEngine {
 public:
  void clear();
  void issue(Worker& worker, LateLoad load);
  void issue(Worker& worker, LateStore store);
  /// Performs the next load in the launch's order. Returns false if there is none.
  bool land_one(Worker& worker);
  /// Queues copies of the running thread that an mbarrier tracks.
  void issue_copies(Worker& worker, LateLoad load);
  /// Performs this thread's copies in groups before `group`.
  void land_copies(Worker& worker, const Thread& thread, std::uint32_t group);
  /// Performs the reads and, unless `read_only`, the writes of the thread's stores in groups before
  /// `group`.
  void complete_stores(Thread& thread, std::uint32_t group, bool read_only);
  /// Completes a thread's stores when it ends: writes the stores that have read shared memory, and
  /// fails the launch if others are pending.
  void finish_stores(Worker& worker, Thread& thread);

  /// Returns the oldest pending load into the block's shared memory; null if there is none.
  [[nodiscard]] const LateLoad* load_into(const Block& block) const;

 private:
  void land(Worker& worker, std::size_t index);
  std::vector<LateLoad> loads_;
  int told_copies_ = 0;  // number of queued copies that an mbarrier tracks
  std::vector<LateStore> stores_;
};

/// Loads a box of the tensor into shared memory; in tensor_copy.cpp. `block_memory` is the base of
/// the block's shared memory, since the swizzle depends on addresses relative to it.
void load_box(const CopyShape& shape, std::byte* to, const std::byte* block_memory);
/// Returns the global memory of a box; empty for an im2col box.
record::CopyRange range_of(const CopyShape& shape);
/// Records a box's reads of global memory, if this launch has written to the tensor's allocation or
/// the launch's footprint is kept.
void note_box_read(record::Recorder& recorder, const record::Agent& agent, const CopyShape& shape);
/// Records a box's writes to global memory.
void note_box_write(record::Recorder& recorder, const record::Agent& agent, const CopyShape& shape,
                    bool reduces);
/// Stores a box; a plain store if `reduce` is null.
void store_box(const CopyShape& shape, const std::byte* from, std::size_t offset_in_block,
               BulkReduce reduce);
/// Loads the pixels of an im2col box; in im2col.cpp.
void load_pixels(const CopyShape& shape, std::byte* to, const std::byte* block_memory);
/// Returns the swizzled offset of the chunk at this offset in the block's shared memory.
inline std::size_t swizzled_offset(const TensorMapFields& map, std::size_t offset) {
  return offset ^ ((offset >> 3) & map.swizzle_chunks);
}
/// Performs one cp.async; in async_copy.cpp.
void carry_out(const AsyncCopy& copy);
/// Returns the function that combines elements atomically, one by one; null if the TMA unit does
/// not support the combination. In tensor_reduce.cpp.
BulkReduce reduction_of(DType dtype, TensorReduction reduction);
/// Signals the arrival of `bytes` bytes at the barrier in `owner`'s shared memory; in mbarrier.cpp.
void complete_bytes(Worker& worker, Block& owner, std::uint64_t* barrier, std::uint32_t bytes);

}  // namespace rung::simt
