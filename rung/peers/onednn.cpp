// SPDX-License-Identifier: Apache-2.0
// Implementation of onednn.hpp.
#include "rung/peers/onednn.hpp"

#include <algorithm>
#include <string_view>

#include "rung/peers/onednn_describe.hpp"
#include "rung/peers/thread_count.hpp"

namespace rung::onednn {
namespace {

bool lie_alike(const ConstTensorRef& a, const ConstTensorRef& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.strides == b.strides;
}

/// Returns whether source and destination must have the same layout: version 2 has one descriptor
/// for both.
bool needs_one_layout(const Operation& operation) {
  return !library().version_3 &&
         (operation.kind == Kind::eltwise || operation.kind == Kind::layer_norm);
}

}  // namespace

Support present() {
  const Support found = library().library.present();
  if (found && library().engine == nullptr) {
    return unsupported("oneDNN has no CPU engine here, or is older than version 2");
  }
  return found;
}

std::string about() {
  const Library& lib = library();
  const Version& version = *lib.version();
  std::string text = "oneDNN " + std::to_string(version.major) + "." +
                     std::to_string(version.minor) + "." + std::to_string(version.patch);
  if (lib.isa_name != nullptr) {
    std::string isa = lib.isa_name(lib.effective_isa());
    constexpr std::string_view prefix = "cpu_isa_";
    if (isa.starts_with(prefix)) isa.erase(0, prefix.size());
    text += ", " + isa;
  }
  return text + ", OpenMP";
}

bool has_broadcast_axis(const ConstTensorRef& tensor) {
  for (int axis = 0; axis < tensor.rank(); ++axis) {
    if (tensor.strides[axis] == 0 && tensor.shape[axis] > 1) return true;
  }
  return false;
}

struct Primitive::Made {
  Operation operation;
  ConstTensorRef tensors[max_operands];
  Role roles[max_operands] = {};
  std::size_t count = 0;
  int threads = 0;
  Handle primitive = nullptr;
  Handle memory[max_operands] = {};
  // For operands in a layout that the library chose: the caller's memory, and the reorder primitive
  // between the two layouts.
  Handle given[max_operands] = {};
  Handle reorder[max_operands] = {};

  Made() = default;
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;
  ~Made() {
    for (std::size_t i = 0; i < max_operands; ++i) {
      if (memory[i] != nullptr) library().memory_destroy(memory[i]);
      if (given[i] != nullptr) library().memory_destroy(given[i]);
      if (reorder[i] != nullptr) library().primitive_destroy(reorder[i]);
    }
    if (primitive != nullptr) library().primitive_destroy(primitive);
  }

  [[nodiscard]] bool serves(const Operation& requested, std::initializer_list<Operand> operands,
                            int thread_count) const {
    if (!(operation == requested) || count != operands.size() || threads != thread_count)
      return false;
    std::size_t i = 0;
    for (const Operand& operand : operands) {
      if (roles[i] != operand.role || !lie_alike(tensors[i], operand.tensor)) return false;
      ++i;
    }
    return true;
  }

  /// Creates the primitive, or leaves `primitive` null if oneDNN does not support it, which is
  /// cached too.
  void make(const Operation& requested, std::initializer_list<Operand> operands, int thread_count) {
    const Library& lib = library();
    operation = requested;
    threads = thread_count;
    Layouts layouts;
    bool any[max_operands] = {};
    bool ok = operands.size() <= max_operands;
    for (const Operand& operand : operands) {
      if (count == max_operands) break;
      tensors[count] = operand.tensor;
      roles[count] = layouts.roles[count] = operand.role;
      any[count] = operand.any;
      ok = ok && layouts.at[count].make(operand.tensor, operand.any);
      layouts.count = ++count;
    }
    if (needs_one_layout(operation)) {
      for (std::size_t i = 1; i < count; ++i) {
        const bool data = roles[i] == destination || roles[i] >= gradient_source;
        if (data && roles[i] <= gradient_destination) ok = ok && lie_alike(tensors[0], tensors[i]);
      }
    }
    if (!ok) return;
    Handle hint = nullptr;
    if (operation.backward) {
      Operation forward = operation;
      forward.backward = false;
      forward.training = true;
      hint = describe(forward, layouts, nullptr);
      if (hint == nullptr) return;
    }
    Handle description = describe(operation, layouts, hint);
    if (hint != nullptr) lib.description_destroy(hint);
    if (description == nullptr) return;
    Handle created = nullptr;
    ok = lib.primitive_create(&created, description) == 0;
    for (std::size_t i = 0; ok && i < count; ++i) {
      ok = any[i] ? make_reordered(i, description)
                  : lib.memory_create(&memory[i], layouts.at[i].get(), lib.engine, nullptr) == 0;
    }
    lib.description_destroy(description);
    if (ok) {
      primitive = created;
    } else if (created != nullptr) {
      lib.primitive_destroy(created);
    }
  }

  /// Creates operand i in the layout that the primitive prefers, in memory that oneDNN owns.
  bool make_reordered(std::size_t i, Handle description) {
    const Library& lib = library();
    constexpr int of_weights = 131;
    constexpr int of_their_gradient = 132;
    if (lib.query == nullptr || (roles[i] != weights && roles[i] != gradient_weights)) return false;
    const bool is_result = roles[i] == gradient_weights;
    Description preferred = lib.query(description, is_result ? of_their_gradient : of_weights, 0);
    Layout as_given;
    if (preferred == nullptr || !as_given.make(tensors[i])) return false;
    // DNNL_MEMORY_ALLOCATE.
    void* const allocate = reinterpret_cast<void*>(~std::uintptr_t{0});
    Handle reordering = nullptr;
    const bool ok = lib.memory_create(&memory[i], preferred, lib.engine, allocate) == 0 &&
                    lib.memory_create(&given[i], as_given.get(), lib.engine, nullptr) == 0 &&
                    lib.reorder(&reordering, is_result ? preferred : as_given.get(), lib.engine,
                                is_result ? as_given.get() : preferred, lib.engine, nullptr) == 0 &&
                    lib.primitive_create(&reorder[i], reordering) == 0;
    if (reordering != nullptr) lib.description_destroy(reordering);
    return ok;
  }

  /// Runs the reorders: of results after the primitive, or of inputs before it.
  [[nodiscard]] bool run_reorders(bool results) const {
    const Library& lib = library();
    bool ok = true;
    for (std::size_t i = 0; i < count; ++i) {
      if (reorder[i] == nullptr || (roles[i] == gradient_weights) != results) continue;
      const Argument arguments[] = {{source, results ? memory[i] : given[i]},
                                    {destination, results ? given[i] : memory[i]}};
      ok = ok && lib.execute(reorder[i], lib.stream, 2, arguments) == 0;
    }
    return ok;
  }
};

Primitive::Primitive() = default;
Primitive::~Primitive() = default;

bool Primitive::prepare(const Operation& operation, std::initializer_list<Operand> operands,
                        int threads) {
  if (!present()) return false;
  if (made_ == nullptr || !made_->serves(operation, operands, threads)) {
    // A primitive partitions its work at creation, for OpenMP's current thread count.
    const peer::ThreadCount count(threads);
    made_ = std::make_unique<Made>();
    made_->make(operation, operands, threads);
  }
  return made_->primitive != nullptr;
}

void Primitive::run(std::initializer_list<const void*> data) {
  const Library& lib = library();
  bool ok = made_ != nullptr && made_->primitive != nullptr && data.size() == made_->count;
  Argument arguments[max_operands];
  std::size_t i = 0;
  for (const void* pointer : data) {
    if (!ok) break;
    void* const as_given = made_->given[i] != nullptr ? made_->given[i] : made_->memory[i];
    ok = lib.memory_set(as_given, const_cast<void*>(pointer)) == 0;
    arguments[i] = {made_->roles[i], made_->memory[i]};
    ++i;
  }
  ok = ok && made_->run_reorders(false) &&
       lib.execute(made_->primitive, lib.stream, static_cast<int>(made_->count), arguments) == 0 &&
       made_->run_reorders(true) && lib.stream_wait(lib.stream) == 0;
  if (!ok) throw Error(ErrorCode::internal, "oneDNN reported a failure");
}

int sgemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
          float alpha, const float* a, std::int64_t lda, const float* b, std::int64_t ldb,
          float beta, float* c, std::int64_t ldc) {
  return library().sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k, alpha, a, lda,
                         b, ldb, beta, c, ldc);
}

}  // namespace rung::onednn
