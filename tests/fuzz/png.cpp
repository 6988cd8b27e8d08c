// SPDX-License-Identifier: Apache-2.0
// Fuzzer of read_png(): any bytes give a picture or an Error; a picture is unchanged after it has
// been written and read again.
#include "rung/workbench/png.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "rung/core/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const int file = memfd_create("fuzzed.png", MFD_CLOEXEC);
  if (file < 0 || write(file, bytes, size) != static_cast<ssize_t>(size)) std::abort();
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  try {
    const rung::Tensor read = rung::workbench::read_png(path);
    const auto count = static_cast<std::size_t>(read.ref().size());
    const bool is_picture = read.dtype() == rung::DType::u8 || read.dtype() == rung::DType::u16;
    if (!is_picture || read.shape().rank != 3) std::abort();
    constexpr std::size_t worth_writing = 1 << 16;
    if (count <= worth_writing) {
      const int copy = memfd_create("written.png", MFD_CLOEXEC);
      const std::string written = "/proc/self/fd/" + std::to_string(copy);
      rung::workbench::write_png(written, read);
      const rung::Tensor again = rung::workbench::read_png(written);
      if (!(again.shape() == read.shape()) ||
          std::memcmp(again.data<void>(), read.data<void>(), count * rung::size_of(read.dtype())) !=
              0) {
        std::abort();
      }
      close(copy);
    }
  } catch (const rung::Error&) {
    // Rejected with a message.
  }
  close(file);
  return 0;
}
