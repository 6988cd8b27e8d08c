// SPDX-License-Identifier: Apache-2.0
// Memory that can be mapped at several places, and by several processes: a file without a name,
// which the system takes away with its last user, whatever way that ends.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rung::cuda {

/// What is known of a block wherever it is mapped. It is behind the block's own bytes.
struct BlockHeader {
  std::uint64_t mark = 0;
  std::uint64_t bytes = 0;  // of the block itself, a multiple of the system's pages
  std::uint64_t asked = 0;  // of them, by the program
  std::uint64_t pool = 0;   // the exported pool that it belongs to; 0: none
  std::int32_t device = 0;
  std::uint32_t compression = 0;
  // Of an event: how often it was recorded, and how many of those records have been reached.
  std::uint64_t recorded = 0, reached = 0;
};

/// A descriptor of a new block; -1: the system has no room. Its bytes are poison.
int make_block(BlockHeader header);
/// Whether the descriptor is of such a block. Others than ours may be given.
bool read_block(int descriptor, BlockHeader& header);
/// All of it, at this place or anywhere; null: no room. `access`: of mmap.
void* map_block(int descriptor, std::size_t bytes, int access, void* at = nullptr);
/// The header itself, shared by all who have the block; null: no room.
BlockHeader* map_header(int descriptor, std::size_t bytes);
void unmap_header(BlockHeader* header);

/// How a process tells others of a block of its own.
struct BlockName {
  std::uint64_t mark = 0;
  std::uint64_t file = 0;  // its number, so that a descriptor that was reused is noticed
  pid_t process = 0;
  std::int32_t descriptor = -1;
};
BlockName name_of_block(int descriptor);
/// The name as it travels in a handle of the runtime's, whose other bytes are zeros.
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
/// A descriptor of this process; -1: there is no such block any more.
int open_block(const BlockName& name, BlockHeader& header);

std::size_t whole_pages(std::size_t bytes);

}  // namespace rung::cuda
