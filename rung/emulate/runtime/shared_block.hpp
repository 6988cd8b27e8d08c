// SPDX-License-Identifier: Apache-2.0
// Memory that can be mapped at several places, and by several processes: a file without a name,
// which the system takes away with its last user, whatever way that ends.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rung::cuda {

/// Facts about a block, behind the block's own bytes and so known wherever it is mapped.
struct BlockHeader {
  std::uint64_t mark = 0;
  std::uint64_t bytes = 0;  // size of the block itself, a multiple of the system's pages
  std::uint64_t asked = 0;  // size that the program asked for
  std::uint64_t pool = 0;   // exported pool that it belongs to; 0: none
  std::int32_t device = 0;
  std::uint32_t compression = 0;
  // Numbers of an event: its records, and those of them that have been reached.
  std::uint64_t recorded = 0, reached = 0;
};

/// Makes a block whose bytes are poison and returns its descriptor; -1 where the system has no
/// room.
int make_block(BlockHeader header);
/// Reads the header of the block of this descriptor. Returns false where it is no block of ours.
bool read_block(int descriptor, BlockHeader& header);
/// Maps all of it, at this place or anywhere; null where there is no room. `access`: as for mmap.
void* map_block(int descriptor, std::size_t bytes, int access, void* at = nullptr);
/// Maps the header itself, which all users of the block share; null where there is no room.
BlockHeader* map_header(int descriptor, std::size_t bytes);
void unmap_header(BlockHeader* header);

/// The name by which a process tells others of a block of its own.
struct BlockName {
  std::uint64_t mark = 0;
  std::uint64_t file = 0;  // its number, so that a descriptor that was reused is noticed
  pid_t process = 0;
  std::int32_t descriptor = -1;
};
BlockName name_of_block(int descriptor);
/// The name within a handle of the runtime's, whose other bytes are zeros.
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
/// Opens a block of another process and returns a descriptor; -1 where it no longer exists.
int open_block(const BlockName& name, BlockHeader& header);

std::size_t whole_pages(std::size_t bytes);

}  // namespace rung::cuda
