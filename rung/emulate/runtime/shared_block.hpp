// SPDX-License-Identifier: Apache-2.0
// Memory that can be mapped several times, also by several processes: an unnamed file, which the
// system deletes when its last user exits.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rung::cuda {

/// Header of a block. It follows the block's bytes, so that every mapping includes it.
struct BlockHeader {
  std::uint64_t mark = 0;
  std::uint64_t bytes = 0;      // size of the block, a multiple of the page size
  std::uint64_t requested = 0;  // size that the program requested
  std::uint64_t pool = 0;       // number of the exported pool that contains the block; 0: none
  std::int32_t device = 0;
  std::uint32_t compression = 0;
  // For an event: numbers of its latest record and of its latest completed record.
  std::uint64_t recorded = 0, reached = 0;
};

/// Creates a block filled with poison and returns its descriptor; -1 on failure.
int make_block(BlockHeader header);
/// Reads the header of the descriptor's block. Returns false if it is not one of rung's blocks.
bool read_block(int descriptor, BlockHeader& header);
/// Maps a whole block at address `at` (null: anywhere); null on failure. `access`: as for mmap.
void* map_block(int descriptor, std::size_t bytes, int access, void* at = nullptr);
/// Maps the header, which all users of the block share; null on failure.
BlockHeader* map_header(int descriptor, std::size_t bytes);
void unmap_header(BlockHeader* header);

/// Name by which a process gives other processes access to a block.
struct BlockName {
  std::uint64_t mark = 0;
  std::uint64_t file = 0;  // inode number, to detect a reused descriptor
  pid_t process = 0;
  std::int32_t descriptor = -1;
};
BlockName name_of_block(int descriptor);
/// Stores the name in a handle of the runtime API; fills the rest of the handle with zeros.
template <class Handle>
void put_name(Handle& handle, const BlockName& name) {
  static_assert(sizeof name <= sizeof handle.reserved);
  handle = {};
  std::memcpy(handle.reserved, &name, sizeof name);
}
template <class Handle>
BlockName name_in(const Handle& handle) {
  BlockName name;
  std::memcpy(&name, handle.reserved, sizeof name);
  return name;
}
/// Opens a block of another process and returns its descriptor; -1 if the block no longer exists.
int open_block(const BlockName& name, BlockHeader& header);

std::size_t whole_pages(std::size_t bytes);

}  // namespace rung::cuda
