// SPDX-License-Identifier: Apache-2.0
// Static shared memory: every variable is registered while the program is loaded; where it lies is
// found for each kernel.
#include <cstring>

#include "rung/emulate/runtime/kernels.hpp"
#include "rung/emulate/runtime/model.hpp"
#include "rung/simt/limits.hpp"
#include "rung/simt/sync.hpp"

namespace rung::cuda {
namespace {

struct Variable {
  std::size_t bytes, alignment;
  const char* scope;  // Z <function> E <type>: the mangled name of a type within the function
};

std::mutex variables_mutex;
std::vector<Variable>& variables() {
  static auto& all = *new std::vector<Variable>;
  return all;
}

std::size_t align_up(std::size_t value, std::size_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

/// The part of a local type's mangled name that stands for its function: Z <function> E.
std::string_view function_of(const char* local) {
  std::string_view name = local;
  if (const std::size_t tag = name.rfind("E11rung_kernel"); tag != std::string_view::npos) {
    return name.substr(0, tag + 1);
  }
  return name;
}
bool declared_in(const Variable& variable, const char* kernel) {
  return kernel != nullptr && std::string_view(variable.scope).starts_with(function_of(kernel));
}

}  // namespace

int register_shared(std::size_t bytes, std::size_t alignment, const char* scope) {
  const std::lock_guard lock(variables_mutex);
  variables().push_back({bytes, alignment, scope});
  return static_cast<int>(variables().size()) - 1;
}

std::size_t all_shared_bytes() {
  const std::lock_guard lock(variables_mutex);
  std::size_t bytes = 0;
  for (const Variable& one : variables()) bytes = align_up(bytes, one.alignment) + one.bytes;
  return bytes + 1024;  // placed in another order it may need more padding
}

std::size_t own_shared_bytes(const char* kernel) {
  const std::lock_guard lock(variables_mutex);
  std::size_t bytes = 0;
  for (const Variable& one : variables()) {
    if (declared_in(one, kernel)) bytes = align_up(bytes, one.alignment) + one.bytes;
  }
  return bytes;
}

KernelLayout::KernelLayout() {
  const std::lock_guard lock(variables_mutex);
  table_.assign(variables().size(), unknown);
  offsets = table_.data();
}

unsigned KernelLayout::place_one(int variable) {
  const Variable& one = variables()[static_cast<std::size_t>(variable)];
  std::size_t alignment = one.alignment;
  // As ptxas does: what is large enough for wide accesses is aligned for them.
  if (one.bytes >= 16 && alignment < 16) alignment = 16;
  const std::size_t offset = align_up(used_, alignment);
  used_ = offset + one.bytes;
  __atomic_store_n(&offsets[variable], static_cast<unsigned>(offset), __ATOMIC_RELEASE);
  return static_cast<unsigned>(offset);
}

unsigned KernelLayout::place(int variable, const char* kernel) {
  const std::lock_guard lock(mutex_);
  const std::lock_guard all_lock(variables_mutex);
  if (used_ == 0) {
    for (std::size_t i = 0; i < table_.size(); ++i) {
      if (declared_in(variables()[i], kernel)) place_one(static_cast<int>(i));
    }
  }
  const unsigned known = offsets[variable];
  return known != unknown ? known : place_one(variable);
}

unsigned place_shared(int variable) {
  const Unwatched unwatched;
  auto& layout = *static_cast<KernelLayout*>(const_cast<SharedLayout*>(launch_data->layout));
  const std::size_t before = layout.used();
  const unsigned offset = layout.place(variable, launch_data->kernel);
  const std::size_t after = layout.used();
  if (after > shared_without_asking) {
    simt::fail("the kernel declares more than 48 KiB of static shared memory: ptxas refuses that");
  }
  // Poisoned as it would have been had it been known before the launch.
  char* begin = shared_base + launch_data->static_begin;
  if (after > before) std::memset(begin + before, simt::poison, after - before);
  size_t& end = const_cast<LaunchData*>(launch_data)->shared_end;
  const std::size_t end_now = launch_data->static_begin + after;
  if (end_now > __atomic_load_n(&end, __ATOMIC_RELAXED)) {
    __atomic_store_n(&end, end_now, __ATOMIC_RELAXED);
  }
  return offset;
}

}  // namespace rung::cuda
