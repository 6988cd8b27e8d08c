// SPDX-License-Identifier: Apache-2.0
// Static shared memory: variables are registered at load time and placed separately for each
// kernel.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "rung/emulate/runtime/kernels.hpp"
#include "rung/emulate/runtime/model.hpp"
#include "rung/simt/limits.hpp"
#include "rung/simt/sync.hpp"

namespace rung::cuda {
namespace {

struct Variable {
  std::size_t bytes, alignment;
  const char* scope;   // Z <function> E <type>: mangled name of a type local to the function
  const char* type;    // mangled type of the variable
  const void* object;  // the program or library that declares it
};

std::mutex variables_mutex;
std::vector<Variable>& variables() {
  static auto& all = *new std::vector<Variable>;
  return all;
}

/// Returns the function in the mangled name of a local type: Z <function> E.
std::string_view function_of(const char* local) {
  std::string_view name = local;
  if (const std::size_t tag = name.rfind("E11rung_kernel"); tag != std::string_view::npos) {
    return name.substr(0, tag + 1);
  }
  return name;
}
/// Selects the variables that are declared in a kernel's function. Excludes variables of a kernel
/// with the same name in another program or library of the process.
class Declared {
 public:
  explicit Declared(const char* kernel) {
    if (kernel == nullptr) return;
    function_ = function_of(kernel);
    object_ = object_of(kernel);
  }
  bool operator()(const Variable& one) const {
    return !function_.empty() && one.object == object_ &&
           std::string_view(one.scope).starts_with(function_);
  }

 private:
  std::string_view function_;
  const void* object_ = nullptr;
};

}  // namespace

int register_shared(std::size_t bytes, std::size_t alignment, const char* scope, const char* type) {
  const std::lock_guard lock(variables_mutex);
  variables().push_back({bytes, alignment, scope, type, object_of(scope)});
  return static_cast<int>(variables().size()) - 1;
}

std::size_t all_shared_bytes() {
  const std::lock_guard lock(variables_mutex);
  std::size_t bytes = 0;
  // The bound holds for any order of placement.
  for (const Variable& one : variables())
    bytes += one.bytes + std::max<std::size_t>(one.alignment, 16);
  return bytes;
}

std::size_t max_shared_alignment() {
  const std::lock_guard lock(variables_mutex);
  std::size_t alignment = 1;
  for (const Variable& one : variables()) alignment = std::max(alignment, one.alignment);
  return alignment;
}

std::size_t own_shared_bytes(const char* kernel) {
  const std::lock_guard lock(variables_mutex);
  const Declared declared(kernel);
  std::size_t bytes = 0;
  for (const Variable& one : variables()) {
    if (declared(one)) bytes = align_up(bytes, one.alignment) + one.bytes;
  }
  return bytes;
}

KernelLayout::KernelLayout() {
  const std::lock_guard lock(variables_mutex);
  table_.assign(variables().size(), unknown);
  offsets = table_.data();
}

unsigned KernelLayout::place(
    int variable, const char* kernel,
    const std::function<void(std::size_t before, std::size_t after)>& grown) {
  const std::lock_guard lock(mutex_);
  const std::lock_guard all_lock(variables_mutex);
  const std::size_t before = used_;
  std::vector<std::pair<std::size_t, unsigned>> placed;
  const auto add = [&](std::size_t which) {
    const Variable& one = variables()[which];
    // Aligns large variables for wide accesses, as ptxas does.
    const std::size_t alignment =
        one.bytes >= 16 ? std::max<std::size_t>(one.alignment, 16) : one.alignment;
    const std::size_t offset = align_up(used_, alignment);
    used_ = offset + one.bytes;
    placed.emplace_back(which, static_cast<unsigned>(offset));
  };
  const auto wanted = static_cast<std::size_t>(variable);
  if (used_ == 0) {
    const Declared declared(kernel);
    for (std::size_t i = 0; i < table_.size(); ++i) {
      if (declared(variables()[i])) add(i);
    }
  }
  const auto is_wanted = [&](const auto& one) { return one.first == wanted; };
  if (offsets[variable] == unknown && std::ranges::none_of(placed, is_wanted)) add(wanted);
  if (!placed.empty()) grown(before, used_);
  for (const auto& [which, offset] : placed) {
    __atomic_store_n(&offsets[which], offset, __ATOMIC_RELEASE);
  }
  return offsets[variable];
}

bool KernelLayout::variable_at(std::size_t offset, SharedName& found) const {
  const std::lock_guard lock(variables_mutex);
  for (std::size_t i = 0; i < table_.size(); ++i) {
    const unsigned begin = __atomic_load_n(&table_[i], __ATOMIC_ACQUIRE);
    const Variable& one = variables()[i];
    if (begin == unknown || offset < begin || offset - begin >= one.bytes) continue;
    // Mangled names end in 16rung_shared_tile, possibly with a number.
    constexpr std::string_view mark = "rung_shared_";
    const std::string_view scope = one.scope;
    const std::size_t at = scope.rfind(mark);
    if (at == std::string_view::npos) return false;
    std::size_t digits = at;
    while (digits > 0 && scope[digits - 1] >= '0' && scope[digits - 1] <= '9') --digits;
    const auto length = static_cast<std::size_t>(std::atoi(scope.data() + digits));
    if (length <= mark.size()) return false;
    found = {scope.substr(at + mark.size(), length - mark.size()), one.type, one.bytes, begin};
    return true;
  }
  return false;
}

unsigned place_shared(int variable) {
  const Unwatched unwatched;
  auto& layout = *static_cast<KernelLayout*>(const_cast<SharedLayout*>(launch_data->layout));
  std::size_t all = 0;
  const auto grown = [&](std::size_t before, std::size_t after) {
    all = after;
    // Poisons the variable's bytes, as at the start of a launch.
    std::memset(shared_base + launch_data->static_begin + before, simt::poison, after - before);
    size_t& end = const_cast<LaunchData*>(launch_data)->shared_end;
    __atomic_store_n(&end, launch_data->static_begin + after, __ATOMIC_RELAXED);
  };
  const unsigned offset = layout.place(variable, launch_data->kernel, grown);
  if (all > shared_without_asking) {
    const std::string message =
        "the kernel declares " + std::to_string(all) +
        " bytes of static shared memory: ptxas refuses more than 49152 (48 KiB)";
    simt::fail(message.c_str());
  }
  return offset;
}

}  // namespace rung::cuda
