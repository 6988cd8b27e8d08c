// SPDX-License-Identifier: Apache-2.0
// oneDNN's C interface as far as the gemm peer uses it, declared here because the library is
// loaded, not linked, and its development package need not be there.
//
// Versions 2 and 3 differ in how a matmul is described. Both pass descriptors by address alone, so
// that version 2's, which are structures of the caller's, may live in a buffer of sufficient size
// (matmul's has 2800 bytes in 2.6), and version 3's, which it allocates, in a pointer.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "rung/core/dynamic_library.hpp"
#include "rung/cpu/isa.hpp"
#include "rung/ops/gemm/peer_call.hpp"

namespace rung::onednn {

using Dimension = std::int64_t;
using Handle = void*;  // engine, stream, primitive, memory
using Status = int;    // 0: success
enum DataType : int { data_bf16 = 2, data_f32 = 3 };
enum ArgumentId : int { source = 1, destination = 17, weights = 33 };
struct Argument {
  int id;
  Handle memory;
};
struct Version {
  int major, minor, patch;
};

struct Library {
  DynamicLibrary library{"RUNG_PEER_ONEDNN", {"libdnnl.so.3", "libdnnl.so.2"}};
  Status (*sgemm)(char transpose_a, char transpose_b, Dimension m, Dimension n, Dimension k,
                  float alpha, const float* a, Dimension lda, const float* b, Dimension ldb,
                  float beta, float* c, Dimension ldc);
  const Version* (*version)();
  Status (*set_max_isa)(int isa);
  int (*effective_isa)();
  const char* (*isa_name)(int isa);
  Status (*engine_create)(Handle* engine, int kind, std::size_t index);
  Status (*stream_create)(Handle* stream, Handle engine, unsigned flags);
  Status (*stream_wait)(Handle stream);
  Status (*memory_create)(Handle* memory, const void* description, Handle engine, void* data);
  Status (*memory_set)(Handle memory, void* data);
  Status (*memory_destroy)(Handle memory);
  Status (*primitive_create)(Handle* primitive, Handle description);
  Status (*primitive_destroy)(Handle primitive);
  Status (*description_destroy)(Handle description);
  Status (*execute)(Handle primitive, Handle stream, int count, const Argument* arguments);
  // Version 2 alone:
  Status (*layout_2)(void* layout, int rank, const Dimension* shape, int type,
                     const Dimension* strides);
  Status (*matmul_2)(void* operation, const void* a, const void* b, const void* bias,
                     const void* c);
  Status (*description_2)(Handle* description, const void* operation, Handle attributes,
                          Handle engine, Handle hint);
  // Version 3 alone:
  Status (*layout_3)(void** layout, int rank, const Dimension* shape, int type,
                     const Dimension* strides);
  Status (*layout_destroy_3)(void* layout);
  Status (*matmul_3)(Handle* description, Handle engine, const void* a, const void* b,
                     const void* bias, const void* c, Handle attributes);
  Handle engine = nullptr;
  Handle stream = nullptr;
  std::atomic<int> threads = 0;

  Library() {
    library.require(sgemm, "dnnl_sgemm");
    library.require(version, "dnnl_version");
    library.require(set_max_isa, "dnnl_set_max_cpu_isa");
    library.require(effective_isa, "dnnl_get_effective_cpu_isa");
    library.optional(isa_name, "dnnl_cpu_isa2str");
    library.require(engine_create, "dnnl_engine_create");
    library.require(stream_create, "dnnl_stream_create");
    library.require(stream_wait, "dnnl_stream_wait");
    library.require(memory_create, "dnnl_memory_create");
    library.require(memory_set, "dnnl_memory_set_data_handle");
    library.require(memory_destroy, "dnnl_memory_destroy");
    library.require(primitive_create, "dnnl_primitive_create");
    library.require(primitive_destroy, "dnnl_primitive_destroy");
    library.require(description_destroy, "dnnl_primitive_desc_destroy");
    library.require(execute, "dnnl_primitive_execute");
    library.optional(layout_2, "dnnl_memory_desc_init_by_strides");
    library.optional(matmul_2, "dnnl_matmul_desc_init");
    library.optional(description_2, "dnnl_primitive_desc_create");
    library.optional(layout_3, "dnnl_memory_desc_create_with_strides");
    library.optional(layout_destroy_3, "dnnl_memory_desc_destroy");
    library.optional(matmul_3, "dnnl_matmul_primitive_desc_create");
    if (!library.present()) return;
    // 0 lifts any DNNL_MAX_CPU_ISA: a peer held back would flatter us. With our own rungs capped at
    // AVX2 (RUNG_CPU_TARGET) like is compared with like.
    constexpr int all = 0;
    constexpr int avx2 = 7;
    set_max_isa(cpu::isa() == cpu::Isa::avx512 ? all : avx2);
    constexpr int cpu_engine = 1;
    constexpr unsigned in_order = 1;
    if (engine_create(&engine, cpu_engine, 0) != 0 ||
        stream_create(&stream, engine, in_order) != 0) {
      engine = nullptr;
    }
  }

  [[nodiscard]] bool has_matmul() const {
    const bool version_2 = layout_2 != nullptr && matmul_2 != nullptr && description_2 != nullptr;
    const bool version_3 =
        layout_3 != nullptr && matmul_3 != nullptr && layout_destroy_3 != nullptr;
    return engine != nullptr && (version_2 || version_3);
  }
};

inline Library& onednn() {
  static Library loaded;
  return loaded;
}

/// One matmul primitive, made for a call's sizes, types, strides and threads.
class Matmul {
 public:
  struct Key {
    Dimension m = -1, n = 0, k = 0, a_leading = 0, b_leading = 0, c_leading = 0;
    bool a_transposed = false, b_transposed = false;
    int in = 0, out = 0, threads = 0;
    bool operator==(const Key&) const = default;
  };

  Matmul() = default;
  Matmul(const Matmul&) = delete;
  Matmul& operator=(const Matmul&) = delete;
  ~Matmul() { clear(); }

  /// False when oneDNN has no such primitive here (bf16 on an old processor, say).
  bool prepare(const Key& key) {
    if (key == key_) return primitive_ != nullptr;
    clear();
    key_ = key;
    Library& lib = onednn();
    const auto strides = [](Dimension leading, bool transposed) {
      return transposed ? std::array{Dimension{1}, leading} : std::array{leading, Dimension{1}};
    };
    const std::array<Dimension, 2> shapes[3] = {{key.m, key.k}, {key.k, key.n}, {key.m, key.n}};
    const std::array<Dimension, 2> steps[3] = {strides(key.a_leading, key.a_transposed),
                                               strides(key.b_leading, key.b_transposed),
                                               strides(key.c_leading, false)};
    const int types[3] = {key.in, key.in, key.out};
    Layout layouts[3];
    bool ok = true;
    for (int i = 0; i < 3; ++i) {
      ok = ok && layouts[i].make(lib, shapes[i].data(), types[i], steps[i].data());
    }
    Handle description = nullptr;
    if (ok && lib.matmul_3 != nullptr) {
      ok = lib.matmul_3(&description, lib.engine, layouts[0].get(), layouts[1].get(), nullptr,
                        layouts[2].get(), nullptr) == 0;
    } else if (ok) {
      alignas(16) std::byte operation[8192] = {};
      ok = lib.matmul_2(operation, layouts[0].get(), layouts[1].get(), nullptr, layouts[2].get()) ==
               0 &&
           lib.description_2(&description, operation, nullptr, lib.engine, nullptr) == 0;
    }
    ok = ok && lib.primitive_create(&primitive_, description) == 0;
    if (description != nullptr) lib.description_destroy(description);
    for (int i = 0; ok && i < 3; ++i) {
      ok = lib.memory_create(&memory_[i], layouts[i].get(), lib.engine, nullptr) == 0;
    }
    if (!ok) {
      clear();
      key_ = key;  // remembered as impossible
    }
    return ok;
  }

  /// After a prepare() that said true. False when oneDNN reports a failure.
  bool run(void* a, void* b, void* c) {
    Library& lib = onednn();
    lib.memory_set(memory_[0], a);
    lib.memory_set(memory_[1], b);
    lib.memory_set(memory_[2], c);
    const Argument arguments[] = {
        {source, memory_[0]}, {weights, memory_[1]}, {destination, memory_[2]}};
    return lib.execute(primitive_, lib.stream, 3, arguments) == 0 &&
           lib.stream_wait(lib.stream) == 0;
  }

 private:
  /// A memory descriptor of either version.
  class Layout {
   public:
    Layout() = default;
    Layout(const Layout&) = delete;
    Layout& operator=(const Layout&) = delete;
    ~Layout() {
      if (made_ != nullptr) onednn().layout_destroy_3(made_);
    }
    bool make(Library& lib, const Dimension* shape, int type, const Dimension* strides) {
      if (lib.layout_3 != nullptr) return lib.layout_3(&made_, 2, shape, type, strides) == 0;
      return lib.layout_2(buffer_, 2, shape, type, strides) == 0;
    }
    [[nodiscard]] const void* get() const { return made_ != nullptr ? made_ : buffer_; }

   private:
    void* made_ = nullptr;
    alignas(16) std::byte buffer_[2048] = {};  // 696 bytes in 2.6
  };

  void clear() {
    for (Handle& memory : memory_) {
      if (memory != nullptr) onednn().memory_destroy(memory);
      memory = nullptr;
    }
    if (primitive_ != nullptr) onednn().primitive_destroy(primitive_);
    primitive_ = nullptr;
    key_ = Key{};
  }

  Key key_;
  Handle primitive_ = nullptr;
  Handle memory_[3] = {};
};

}  // namespace rung::onednn
