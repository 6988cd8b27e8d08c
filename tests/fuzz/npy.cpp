// SPDX-License-Identifier: Apache-2.0
// Fuzzer of read_npy(): any bytes give a tensor or an Error. A tensor has exactly the bytes after
// the header.
#include "rung/harness/npy.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "rung/core/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const int file = memfd_create("fuzzed.npy", MFD_CLOEXEC);
  if (file < 0 || write(file, bytes, size) != static_cast<ssize_t>(size)) std::abort();
  try {
    const rung::Tensor read = rung::read_npy("/proc/self/fd/" + std::to_string(file));
    const std::size_t claimed =
        static_cast<std::size_t>(read.ref().size()) * rung::size_of(read.dtype());
    if (claimed > size) std::abort();
    volatile std::uint8_t last = 0;
    for (std::size_t i = 0; i < claimed; ++i) last = read.data<std::uint8_t>()[i];
    static_cast<void>(last);
  } catch (const rung::Error&) {
    // Rejected with a message.
  }
  close(file);
  return 0;
}
