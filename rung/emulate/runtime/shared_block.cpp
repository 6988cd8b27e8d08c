// SPDX-License-Identifier: Apache-2.0
// Shared memory blocks, implemented by unnamed files.
#include "rung/emulate/runtime/shared_block.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "rung/simt/limits.hpp"

namespace rung::cuda {
namespace {

constexpr std::uint64_t block_mark = 0x6b636f6c62676e72u;

std::size_t page() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

std::size_t whole_pages(std::size_t bytes) { return (bytes + page() - 1) / page() * page(); }

int make_block(BlockHeader header) {
  header.mark = block_mark;
  const int descriptor = memfd_create("rung", MFD_CLOEXEC);
  if (descriptor < 0) return -1;
  const auto end = static_cast<off_t>(header.bytes + page());
  // Allocates the file's memory immediately, since a later shortage would end the program.
  bool good = posix_fallocate(descriptor, 0, end) == 0 &&
              pwrite(descriptor, &header, sizeof header, static_cast<off_t>(header.bytes)) ==
                  static_cast<ssize_t>(sizeof header);
  if (good && header.bytes != 0) {
    void* memory = map_block(descriptor, header.bytes, PROT_READ | PROT_WRITE);
    good = memory != nullptr;
    if (good) {
      std::memset(memory, simt::poison, header.bytes);
      munmap(memory, header.bytes);
    }
  }
  if (good) return descriptor;
  close(descriptor);
  return -1;
}

bool read_block(int descriptor, BlockHeader& header) {
  struct stat file = {};
  if (fstat(descriptor, &file) != 0 || !S_ISREG(file.st_mode)) return false;
  if (file.st_size < static_cast<off_t>(page())) return false;
  const off_t at = file.st_size - static_cast<off_t>(page());
  return pread(descriptor, &header, sizeof header, at) == static_cast<ssize_t>(sizeof header) &&
         header.mark == block_mark && header.bytes == static_cast<std::uint64_t>(at);
}

void* map_block(int descriptor, std::size_t bytes, int access, void* at) {
  const int how = MAP_SHARED | (at != nullptr ? MAP_FIXED : 0);
  void* memory = mmap(at, bytes, access, how, descriptor, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

BlockHeader* map_header(int descriptor, std::size_t bytes) {
  void* memory = mmap(nullptr, page(), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor,
                      static_cast<off_t>(bytes));
  return memory == MAP_FAILED ? nullptr : static_cast<BlockHeader*>(memory);
}
void unmap_header(BlockHeader* header) { munmap(header, page()); }

BlockName name_of_block(int descriptor) {
  struct stat file = {};
  fstat(descriptor, &file);
  return {block_mark, file.st_ino, getpid(), descriptor};
}

int open_block(const BlockName& name, BlockHeader& header) {
  if (name.mark != block_mark) return -1;
  const std::string path =
      "/proc/" + std::to_string(name.process) + "/fd/" + std::to_string(name.descriptor);
  const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return -1;
  struct stat file = {};
  const bool same = fstat(descriptor, &file) == 0 && file.st_ino == name.file;
  if (same && read_block(descriptor, header)) return descriptor;
  close(descriptor);
  return -1;
}

}  // namespace rung::cuda
