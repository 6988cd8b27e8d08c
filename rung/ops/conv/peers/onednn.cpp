// SPDX-License-Identifier: Apache-2.0
// conv / onednn: the peer oneDNN, its convolution primitive on images as they lie, and on filters
// in whichever layout it prefers, to which each call reorders them.
//
// Kernels  generated while running for the processor it finds; with `winograd` the choice between
//          direct and Winograd is the library's (2.6: "auto").
// Limits   f32 and bf16; no bias, no activation. With images, too, in its own blocked layouts it is
//          faster, but a program that calls us does not have those; reordering to them and back is
//          not tried here.
#include <cstddef>
#include <cstdint>
#include <memory>

#include "rung/ops/conv/conv.hpp"
#include "rung/peers/onednn.hpp"
#include "rung/peers/onednn_describe.hpp"
#include "rung/peers/thread_count.hpp"

namespace rung {
namespace {

/// What oneDNN's convolution takes, beyond what its other primitives do.
struct ConvFunctions {
  using Dimensions = onednn::Dimension[12];
  onednn::Status (*version_2)(void* operation, int propagation, int algorithm,
                              onednn::Description source, onednn::Description weights,
                              onednn::Description bias, onednn::Description destination,
                              const onednn::Dimension* strides, const onednn::Dimension* dilation,
                              const onednn::Dimension* padding_front,
                              const onednn::Dimension* padding_behind);
  onednn::Status (*version_3)(onednn::Handle* description, onednn::Handle engine, int propagation,
                              int algorithm, onednn::Description source,
                              onednn::Description weights, onednn::Description bias,
                              onednn::Description destination, const onednn::Dimension* strides,
                              const onednn::Dimension* dilation,
                              const onednn::Dimension* padding_front,
                              const onednn::Dimension* padding_behind, onednn::Handle attributes);

  onednn::Status (*any_2)(void* layout, int rank, const onednn::Dimension* shape, int type,
                          int tag);
  onednn::Status (*any_3)(void** layout, int rank, const onednn::Dimension* shape, int type,
                          int tag);
  onednn::Description (*query)(onednn::Handle description, int what, int index);

  ConvFunctions() {
    onednn::library().library.optional(any_2, "dnnl_memory_desc_init_by_tag");
    onednn::library().library.optional(any_3, "dnnl_memory_desc_create_with_tag");
    onednn::library().library.optional(query, "dnnl_primitive_desc_query_md");
    onednn::library().library.optional(version_2, "dnnl_dilated_convolution_forward_desc_init");
    onednn::library().library.optional(version_3, "dnnl_convolution_forward_primitive_desc_create");
  }
};
const ConvFunctions& conv_functions() {
  static const ConvFunctions loaded;
  return loaded;
}

/// A tensor with the axes that its caller gave it, channels first, and of w the groups in front.
ConstTensorRef layer_tensor(const ConstTensorRef& tensor, int axes, std::int64_t groups) {
  ConstTensorRef made = tensor;
  made.shape = {};
  made.strides = {};
  const auto add = [&](std::int64_t extent, std::int64_t stride) {
    made.shape.at[made.shape.rank++] = extent;
    // A stride of an axis of one element means nothing, and oneDNN takes no zeros.
    made.strides.at[made.strides.rank++] = stride == 0 ? 1 : stride;
  };
  if (groups > 1) add(groups, tensor.shape[0] / groups * tensor.strides[0]);
  add(tensor.shape[0] / groups, tensor.strides[0]);
  add(tensor.shape[1], tensor.strides[1]);
  for (int axis = 7 - axes; axis < 5; ++axis) add(tensor.shape[axis], tensor.strides[axis]);
  return made;
}

/// A layout that is the library's choice.
class AnyLayout {
 public:
  AnyLayout() = default;
  AnyLayout(const AnyLayout&) = delete;
  AnyLayout& operator=(const AnyLayout&) = delete;
  ~AnyLayout() {
    if (made_ != nullptr) onednn::library().v3.layout_destroy(made_);
  }
  bool make(const ConstTensorRef& tensor) {
    constexpr int any = 1;
    const int type = tensor.dtype == DType::f32 ? 3 : tensor.dtype == DType::bf16 ? 2 : 0;
    const ConvFunctions& f = conv_functions();
    if (type == 0 || f.query == nullptr) return false;
    if (onednn::library().version_3) {
      return f.any_3 != nullptr && f.any_3(&made_, tensor.rank(), tensor.shape.at, type, any) == 0;
    }
    return f.any_2 != nullptr && f.any_2(buffer_, tensor.rank(), tensor.shape.at, type, any) == 0;
  }
  [[nodiscard]] onednn::Description get() const {
    return made_ != nullptr ? made_ : static_cast<onednn::Description>(buffer_);
  }

 private:
  void* made_ = nullptr;
  alignas(16) std::byte buffer_[2048] = {};
};

/// A primitive for one layout of a call and a number of threads.
class ConvPrimitive {
 public:
  ConvPrimitive(const Conv::Args& args, int threads) : args_(args), threads_(threads) {
    const onednn::Library& lib = onednn::library();
    // A primitive divides its work when it is made: by the threads that OpenMP then has.
    const peer::ThreadCount count(threads);
    onednn::Layout layouts[3];
    if (!layouts[0].make(layer_tensor(args.x, args.axes, 1)) ||
        !layouts[1].make(layer_tensor(args.w, args.axes, args.geometry.groups)) ||
        !layouts[2].make(layer_tensor(args.y, args.axes, 1))) {
      return;
    }
    AnyLayout any;
    if (!any.make(layer_tensor(args.w, args.axes, args.geometry.groups))) return;
    onednn::Handle description = describe(layouts[0].get(), any.get(), layouts[2].get());
    if (description == nullptr) return;
    constexpr int of_weights = 131;
    onednn::Description preferred = conv_functions().query(description, of_weights, 0);
    onednn::Handle created = nullptr;
    onednn::Handle reordering = nullptr;
    // What the library calls DNNL_MEMORY_ALLOCATE.
    void* const allocate = reinterpret_cast<void*>(~std::uintptr_t{0});
    const bool made = preferred != nullptr && lib.primitive_create(&created, description) == 0 &&
                      lib.memory_create(&memory_[0], layouts[0].get(), lib.engine, nullptr) == 0 &&
                      lib.memory_create(&memory_[1], layouts[1].get(), lib.engine, nullptr) == 0 &&
                      lib.memory_create(&memory_[2], layouts[2].get(), lib.engine, nullptr) == 0 &&
                      lib.memory_create(&memory_[3], preferred, lib.engine, allocate) == 0 &&
                      lib.reorder(&reordering, layouts[1].get(), lib.engine, preferred, lib.engine,
                                  nullptr) == 0 &&
                      lib.primitive_create(&reorder_, reordering) == 0;
    lib.description_destroy(description);
    if (reordering != nullptr) lib.description_destroy(reordering);
    if (made) {
      primitive_ = created;
    } else if (created != nullptr) {
      lib.primitive_destroy(created);
    }
  }
  ConvPrimitive(const ConvPrimitive&) = delete;
  ConvPrimitive& operator=(const ConvPrimitive&) = delete;
  ~ConvPrimitive() {
    const onednn::Library& lib = onednn::library();
    for (onednn::Handle memory : memory_) {
      if (memory != nullptr) lib.memory_destroy(memory);
    }
    if (primitive_ != nullptr) lib.primitive_destroy(primitive_);
    if (reorder_ != nullptr) lib.primitive_destroy(reorder_);
  }

  [[nodiscard]] bool exists() const { return primitive_ != nullptr; }
  [[nodiscard]] bool serves(const Conv::Args& args, int threads) const {
    const auto lie_alike = [](const ConstTensorRef& a, const ConstTensorRef& b) {
      return a.dtype == b.dtype && a.shape == b.shape && a.strides == b.strides;
    };
    return threads == threads_ && args.options == args_.options && lie_alike(args.x, args_.x) &&
           lie_alike(args.w, args_.w) && lie_alike(args.y, args_.y);
  }
  void run(const Conv::Args& args) const {
    const onednn::Library& lib = onednn::library();
    const onednn::Argument arguments[] = {{onednn::source, memory_[0]},
                                          {onednn::weights, memory_[3]},
                                          {onednn::destination, memory_[2]}};
    const onednn::Argument filters[] = {{onednn::source, memory_[1]},
                                        {onednn::destination, memory_[3]}};
    const bool ok = lib.memory_set(memory_[0], const_cast<void*>(args.x.data)) == 0 &&
                    lib.memory_set(memory_[1], const_cast<void*>(args.w.data)) == 0 &&
                    lib.memory_set(memory_[2], args.y.data) == 0 &&
                    lib.execute(reorder_, lib.stream, 2, filters) == 0 &&
                    lib.execute(primitive_, lib.stream, 3, arguments) == 0 &&
                    lib.stream_wait(lib.stream) == 0;
    if (!ok) throw Error(ErrorCode::internal, "oneDNN reported a failure");
  }

 private:
  [[nodiscard]] onednn::Handle describe(onednn::Description source, onednn::Description weights,
                                        onednn::Description destination) const {
    constexpr int inference = 96;
    constexpr int direct = 1;
    constexpr int automatic = 3;
    ConvFunctions::Dimensions strides = {}, dilation = {}, front = {}, behind = {};
    for (int i = 0; i < args_.axes - 2; ++i) {
      const ConvAxis& axis = args_.geometry.axis[5 - args_.axes + i];
      strides[i] = axis.stride;
      dilation[i] = axis.dilation - 1;
      front[i] = axis.padding;
      // What oneDNN computes the extent from is what the last tap reaches, not the padding given.
      behind[i] = (axis.out - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1 - axis.in -
                  axis.padding;
    }
    const onednn::Library& lib = onednn::library();
    const int algorithm = args_.options.winograd ? automatic : direct;
    onednn::Handle made = nullptr;
    if (lib.version_3) {
      const bool ok = conv_functions().version_3 != nullptr &&
                      conv_functions().version_3(&made, lib.engine, inference, algorithm, source,
                                                 weights, nullptr, destination, strides, dilation,
                                                 front, behind, nullptr) == 0;
      return ok ? made : nullptr;
    }
    alignas(16) std::byte operation[8192] = {};
    const bool ok =
        conv_functions().version_2 != nullptr &&
        conv_functions().version_2(operation, inference, algorithm, source, weights, nullptr,
                                   destination, strides, dilation, front, behind) == 0 &&
        lib.v2.describe(&made, operation, nullptr, lib.engine, nullptr) == 0;
    return ok ? made : nullptr;
  }

  Conv::Args args_;
  int threads_;
  onednn::Handle primitive_ = nullptr;
  onednn::Handle reorder_ = nullptr;  // of w to the layout preferred
  onednn::Handle memory_[4] = {};     // x, w, y, w as preferred
};

/// One a thread: a repeated call finds its primitive made.
const ConvPrimitive& prepared(const Conv::Args& args, int threads) {
  thread_local std::unique_ptr<ConvPrimitive> last;
  if (last == nullptr || !last->serves(args, threads)) {
    last = std::make_unique<ConvPrimitive>(args, threads);
  }
  return *last;
}

bool has_broadcast_axis(const ConstTensorRef& tensor) {
  for (int axis = 0; axis < tensor.rank(); ++axis) {
    if (tensor.strides[axis] == 0 && tensor.shape[axis] > 1) return true;
  }
  return false;
}

Support supports(const Conv::Args& args, const Context& context) {
  if (args.y.empty() || args.x.empty()) return unsupported("nothing to do");
  if (args.has_bias() || args.options.activation != Activation::none) {
    return unsupported("no bias, no activation");
  }
  if (has_broadcast_axis(args.x) || has_broadcast_axis(args.w)) {
    return unsupported("no strides of 0");
  }
  return prepared(args, context.threads()).exists()
             ? supported
             : unsupported("oneDNN has no such primitive for this processor, type and layout");
}

void run(const Conv::Args& args, Context& context) {
  const peer::ThreadCount threads(context.threads());
  prepared(args, context.threads()).run(args);
}

const Rung<Conv> self{{.name = "onednn",
                       .peer = true,
                       .about = onednn::about,
                       .present = onednn::present,
                       .supports = supports,
                       .run = run}};

}  // namespace
}  // namespace rung
