// SPDX-License-Identifier: Apache-2.0
// __constant__ variables: registered at load time as memory that kernels may only read. The
// variables of one file must fit in a GPU's constant bank.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

#include "rung/emulate/runtime/api.hpp"
#include "rung/simt/record.hpp"

#pragma GCC visibility push(default)
#include "rung_cuda/memory.h"
#pragma GCC visibility pop

namespace rung::cuda {
namespace {

constexpr std::size_t bank_bytes = 64 << 10;

/// Ends the program if its file has more constant data than ptxas accepts.
void count_in_file(const char* file, const char* name, std::size_t bytes) {
  static std::mutex mutex;
  // Sizes are counted per file: several files may include a header's variables, but each constant
  // bank contains them once.
  static auto& files = *new std::map<std::string, std::map<std::string, std::size_t>>;
  const std::lock_guard lock(mutex);
  files[file][name] = bytes;
  std::size_t all = 0;
  for (const auto& [variable, size] : files[file]) all += size;
  if (all <= bank_bytes) return;
  std::fprintf(stderr,
               "rung: %s: its __constant__ variables have %zu bytes up to %s: ptxas refuses more "
               "than %zu (64 KiB)\n",
               file, all, name, bank_bytes);
  std::_Exit(2);
}

}  // namespace

ConstantVariable::ConstantVariable(const volatile void* begin, std::size_t bytes, const char* name,
                                   const char* file) {
  count_in_file(file, name, bytes);
  simt::record::register_memory({.begin = const_cast<const void*>(begin),
                                 .bytes = bytes,
                                 .space = simt::record::Space::constant,
                                 .name = std::string("the constant variable ") + name});
}

}  // namespace rung::cuda
