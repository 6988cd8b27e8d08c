// SPDX-License-Identifier: Apache-2.0
// The part of oneDNN's C interface, versions 2 and 3, that onednn.cpp uses. Declared here because
// the library is loaded, not linked, so that its development package is not needed.
//
// The versions differ in the description of operations. Both pass descriptors by address: version
// 2's descriptors are structures that the caller owns, here buffers of sufficient size (matmul's
// has 2800 bytes in 2.6), and version 3's are allocated by the library, here pointers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rung/core/dynamic_library.hpp"
#include "rung/cpu/isa.hpp"

namespace rung::onednn {

using Dimension = std::int64_t;
using Handle = void*;             // engine, stream, primitive, memory
using Description = const void*;  // memory descriptor
using Status = int;               // 0: success
struct Argument {
  int role;
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
  Status (*memory_create)(Handle* memory, Description layout, Handle engine, void* data);
  Status (*memory_set)(Handle memory, void* data);
  Status (*memory_destroy)(Handle memory);
  Status (*primitive_create)(Handle* primitive, Handle description);
  Status (*primitive_destroy)(Handle primitive);
  Status (*description_destroy)(Handle description);
  Status (*execute)(Handle primitive, Handle stream, int count, const Argument* arguments);
  Status (*reorder)(Handle* description, Description source, Handle source_engine,
                    Description destination, Handle destination_engine, Handle attributes);
  Description (*query)(Handle description, int what, int index);  // layout of an operand

  struct {  // version 2: an operation is initialized, then described
    Status (*layout)(void* layout, int rank, const Dimension* shape, int type,
                     const Dimension* strides);
    Status (*describe)(Handle* description, const void* operation, Handle attributes, Handle engine,
                       Handle forward);
    Status (*matmul)(void* operation, Description a, Description b, Description bias,
                     Description c);
    Status (*eltwise)(void* operation, int propagation, int algorithm, Description data,
                      float alpha, float beta);
    Status (*binary)(void* operation, int algorithm, Description a, Description b, Description c);
    Status (*softmax)(void* operation, int propagation, int algorithm, Description source,
                      Description destination, int axis);
    Status (*softmax_backward)(void* operation, int algorithm, Description gradient_source,
                               Description gradient_destination, Description destination, int axis);
    Status (*layer_norm)(void* operation, int propagation, Description data, Description statistics,
                         float epsilon, unsigned flags);
    Status (*layer_norm_backward)(void* operation, int propagation, Description gradient,
                                  Description data, Description statistics, float epsilon,
                                  unsigned flags);
    Status (*reduction)(void* operation, int algorithm, Description source, Description destination,
                        float p, float epsilon);
    Status (*any_layout)(void* layout, int rank, const Dimension* shape, int type, int tag);
    Status (*convolution)(void* operation, int propagation, int algorithm, Description source,
                          Description weights, Description bias, Description destination,
                          const Dimension* strides, const Dimension* dilation,
                          const Dimension* front, const Dimension* behind);
    Status (*convolution_data)(void* operation, int algorithm, Description gradient_source,
                               Description weights, Description gradient_destination,
                               const Dimension* strides, const Dimension* dilation,
                               const Dimension* front, const Dimension* behind);
    Status (*convolution_weights)(void* operation, int algorithm, Description source,
                                  Description gradient_weights, Description gradient_bias,
                                  Description gradient_destination, const Dimension* strides,
                                  const Dimension* dilation, const Dimension* front,
                                  const Dimension* behind);
    Status (*pooling)(void* operation, int propagation, int algorithm, Description source,
                      Description destination, const Dimension* strides, const Dimension* kernel,
                      const Dimension* dilation, const Dimension* front, const Dimension* behind);
  } v2;

  struct {  // version 3: one call describes an operation
    Status (*layout)(void** layout, int rank, const Dimension* shape, int type,
                     const Dimension* strides);
    Status (*layout_destroy)(void* layout);
    Status (*matmul)(Handle* description, Handle engine, Description a, Description b,
                     Description bias, Description c, Handle attributes);
    Status (*eltwise)(Handle* description, Handle engine, int propagation, int algorithm,
                      Description source, Description destination, float alpha, float beta,
                      Handle attributes);
    Status (*binary)(Handle* description, Handle engine, int algorithm, Description a,
                     Description b, Description c, Handle attributes);
    Status (*softmax)(Handle* description, Handle engine, int propagation, int algorithm,
                      Description source, Description destination, int axis, Handle attributes);
    Status (*softmax_backward)(Handle* description, Handle engine, int algorithm,
                               Description gradient_source, Description gradient_destination,
                               Description destination, int axis, Handle forward,
                               Handle attributes);
    Status (*layer_norm)(Handle* description, Handle engine, int propagation, Description source,
                         Description destination, Description statistics, float epsilon,
                         unsigned flags, Handle attributes);
    Status (*layer_norm_backward)(Handle* description, Handle engine, int propagation,
                                  Description gradient_source, Description gradient_destination,
                                  Description source, Description statistics, float epsilon,
                                  unsigned flags, Handle forward, Handle attributes);
    Status (*reduction)(Handle* description, Handle engine, int algorithm, Description source,
                        Description destination, float p, float epsilon, Handle attributes);
    Status (*any_layout)(void** layout, int rank, const Dimension* shape, int type, int tag);
    Status (*convolution)(Handle* description, Handle engine, int propagation, int algorithm,
                          Description source, Description weights, Description bias,
                          Description destination, const Dimension* strides,
                          const Dimension* dilation, const Dimension* front,
                          const Dimension* behind, Handle attributes);
    Status (*convolution_data)(Handle* description, Handle engine, int algorithm,
                               Description gradient_source, Description weights,
                               Description gradient_destination, const Dimension* strides,
                               const Dimension* dilation, const Dimension* front,
                               const Dimension* behind, Handle forward, Handle attributes);
    Status (*convolution_weights)(Handle* description, Handle engine, int algorithm,
                                  Description source, Description gradient_weights,
                                  Description gradient_bias, Description gradient_destination,
                                  const Dimension* strides, const Dimension* dilation,
                                  const Dimension* front, const Dimension* behind, Handle forward,
                                  Handle attributes);
    Status (*pooling)(Handle* description, Handle engine, int propagation, int algorithm,
                      Description source, Description destination, const Dimension* strides,
                      const Dimension* kernel, const Dimension* dilation, const Dimension* front,
                      const Dimension* behind, Handle attributes);
  } v3;

  bool version_3 = false;
  Handle engine = nullptr;
  Handle stream = nullptr;

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
    library.require(reorder, "dnnl_reorder_primitive_desc_create");
    library.optional(query, "dnnl_primitive_desc_query_md");
    library.optional(v2.any_layout, "dnnl_memory_desc_init_by_tag");
    library.optional(v2.convolution, "dnnl_dilated_convolution_forward_desc_init");
    library.optional(v2.convolution_data, "dnnl_dilated_convolution_backward_data_desc_init");
    library.optional(v2.convolution_weights, "dnnl_dilated_convolution_backward_weights_desc_init");
    library.optional(v2.pooling, "dnnl_pooling_v2_forward_desc_init");
    library.optional(v3.any_layout, "dnnl_memory_desc_create_with_tag");
    library.optional(v3.convolution, "dnnl_convolution_forward_primitive_desc_create");
    library.optional(v3.convolution_data, "dnnl_convolution_backward_data_primitive_desc_create");
    library.optional(v3.convolution_weights,
                     "dnnl_convolution_backward_weights_primitive_desc_create");
    library.optional(v3.pooling, "dnnl_pooling_forward_primitive_desc_create");
    library.optional(v2.layout, "dnnl_memory_desc_init_by_strides");
    library.optional(v2.describe, "dnnl_primitive_desc_create");
    library.optional(v2.matmul, "dnnl_matmul_desc_init");
    library.optional(v2.eltwise, "dnnl_eltwise_forward_desc_init");
    library.optional(v2.binary, "dnnl_binary_desc_init");
    library.optional(v2.softmax, "dnnl_softmax_v2_forward_desc_init");
    library.optional(v2.softmax_backward, "dnnl_softmax_v2_backward_desc_init");
    library.optional(v2.layer_norm, "dnnl_layer_normalization_forward_desc_init");
    library.optional(v2.layer_norm_backward, "dnnl_layer_normalization_backward_desc_init");
    library.optional(v2.reduction, "dnnl_reduction_desc_init");
    library.optional(v3.layout, "dnnl_memory_desc_create_with_strides");
    library.optional(v3.layout_destroy, "dnnl_memory_desc_destroy");
    library.optional(v3.matmul, "dnnl_matmul_primitive_desc_create");
    library.optional(v3.eltwise, "dnnl_eltwise_forward_primitive_desc_create");
    library.optional(v3.binary, "dnnl_binary_primitive_desc_create");
    library.optional(v3.softmax, "dnnl_softmax_forward_primitive_desc_create");
    library.optional(v3.softmax_backward, "dnnl_softmax_backward_primitive_desc_create");
    library.optional(v3.layer_norm, "dnnl_layer_normalization_forward_primitive_desc_create");
    library.optional(v3.layer_norm_backward,
                     "dnnl_layer_normalization_backward_primitive_desc_create");
    library.optional(v3.reduction, "dnnl_reduction_primitive_desc_create");
    if (!library.present()) return;
    version_3 = v3.layout != nullptr && v3.layout_destroy != nullptr;
    if (!version_3 && (v2.layout == nullptr || v2.describe == nullptr)) return;  // version 1
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
};

inline Library& library() {
  static Library loaded;
  return loaded;
}

}  // namespace rung::onednn
