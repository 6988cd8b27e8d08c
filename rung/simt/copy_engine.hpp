// SPDX-License-Identifier: Apache-2.0
// The copies of bulk_copy.hpp and tensor_copy.hpp that one worker's blocks have issued and that
// have not been done. Internal to simt/.
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

/// What is copied: `bytes` in a row, or a box of a tensor.
struct CopyShape {
  std::uint32_t bytes = 0;
  bool is_box = false;
  TensorMapFields map{};
  int at[5] = {};
  int offsets[3] = {};  // of an im2col box
};

/// Global memory, another block's, or a value sent, to `target`'s shared memory.
struct LateLoad {
  CopyShape shape;
  Block* target;
  std::byte* to;
  const std::byte* from;  // of a box: unused; null: `value`
  std::uint64_t* barrier;
  Place place;
  record::Agent agent = {};
  std::array<std::byte, 16> value{};
  bool by_threads = false;  // its bytes are read, and counted, as those of the threads
  // Copies of a thread that has told a barrier of them; empty: it is one of the engine's.
  std::vector<AsyncCopy> copies{};
  const Thread* thread = nullptr;  // likewise
};

/// Shared to global memory.
struct LateStore {
  CopyShape shape;
  Thread* thread;
  std::uint32_t group;
  std::byte* to;  // of a box: unused
  const std::byte* from;
  BulkReduce reduce;
  std::vector<std::byte> data;  // of `from`, once that was read
  bool waited = false;          // for the reading
  Place place = {};
  std::uint32_t flight = 0;  // its number, where somebody checks
};

class CopyEngine {
 public:
  void clear();
  void issue(Worker& worker, LateLoad load);
  void issue(Worker& worker, LateStore store);
  /// Does the load whose turn comes in the launch's order; false: there is none.
  bool land_one(Worker& worker);
  /// Copies that the running thread has told a barrier of.
  void issue_copies(Worker& worker, LateLoad load);
  /// Lands those of a thread whose groups are before `group`.
  void land_copies(Worker& worker, const Thread& thread, std::uint32_t group);
  /// Reads, and unless `read_only` writes, what the thread's groups before `group` store.
  void complete_stores(Thread& thread, std::uint32_t group, bool read_only);
  /// At a thread's end: what has read shared memory is written; what has not is a failure.
  void finish_stores(Worker& worker, Thread& thread);

 private:
  void land(Worker& worker, std::size_t index);
  std::vector<LateLoad> loads_;
  int told_copies_ = 0;  // of those, a thread's that has told a barrier of them
  std::vector<LateStore> stores_;
};

/// Copies a box between shared memory and the tensor, in tensor_copy.cpp. `block_memory` is where
/// the block's shared memory begins: the swizzle goes by addresses within it.
void load_box(const CopyShape& shape, std::byte* to, const std::byte* block_memory);
/// Tells what of global memory a box is read from, where this launch has written there.
void note_box_read(record::Recorder& recorder, const record::Agent& agent, const CopyShape& shape);
/// `reduce`: null for a plain store.
void store_box(const CopyShape& shape, const std::byte* from, std::size_t offset_in_block,
               BulkReduce reduce);
/// The pixels of an im2col box, in im2col.cpp.
void load_pixels(const CopyShape& shape, std::byte* to, const std::byte* block_memory);
/// Where the chunk that is at this offset in the block's memory goes.
inline std::size_t swizzled_offset(const TensorMapFields& map, std::size_t offset) {
  return offset ^ ((offset >> 3) & map.swizzle_chunks);
}
/// Does what a cp.async does; in async_copy.cpp.
void carry_out(const AsyncCopy& copy);
/// Adds, compares or combines elements, each atomically; null where the engine does not. In
/// tensor_reduce.cpp.
BulkReduce reduction_of(DType dtype, TensorReduction reduction);
/// Bytes of `bytes` arrive for the barrier in `owner`'s shared memory; in mbarrier.cpp.
void complete_bytes(Worker& worker, Block& owner, std::uint64_t* barrier, std::uint32_t bytes);

}  // namespace rung::simt
