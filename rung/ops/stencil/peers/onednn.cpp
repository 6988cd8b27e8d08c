// SPDX-License-Identifier: Apache-2.0
// stencil / onednn: the peer oneDNN, its convolution primitive with one channel in and out.
//
// Kernels  of one channel it makes columns of patches, and multiplies matrices.
// Limits   f32; full masks, contiguous; zero edges; no scale; x and y contiguous.
#include <cstddef>
#include <memory>

#include "rung/ops/stencil/op/steps.hpp"
#include "rung/peers/onednn.hpp"
#include "rung/peers/onednn_describe.hpp"
#include "rung/peers/thread_count.hpp"

namespace rung {
namespace {

using Dimensions = onednn::Dimension[12];

/// What oneDNN's convolution takes, beyond what its other primitives do.
struct Functions {
  onednn::Status (*version_2)(void* operation, int propagation, int algorithm,
                              onednn::Description source, onednn::Description weights,
                              onednn::Description bias, onednn::Description destination,
                              const onednn::Dimension* strides,
                              const onednn::Dimension* padding_front,
                              const onednn::Dimension* padding_behind);
  onednn::Status (*version_3)(onednn::Handle* description, onednn::Handle engine, int propagation,
                              int algorithm, onednn::Description source,
                              onednn::Description weights, onednn::Description bias,
                              onednn::Description destination, const onednn::Dimension* strides,
                              const onednn::Dimension* dilation,
                              const onednn::Dimension* padding_front,
                              const onednn::Dimension* padding_behind, onednn::Handle attributes);

  Functions() {
    onednn::library().library.optional(version_2, "dnnl_convolution_forward_desc_init");
    onednn::library().library.optional(version_3, "dnnl_convolution_forward_primitive_desc_create");
  }
};
const Functions& functions() {
  static const Functions loaded;
  return loaded;
}

/// A tensor with `axes` spatial axes behind two others: arrays or channels out, and channels in. Of
/// one channel, channels-first and channels-last are the same memory. oneDNN 2.6.3 does better by
/// the latter in two axes (4096x4096,mask=5x5: 78 ms, 3.7 s), by the former in three.
ConstTensorRef as_batch(const ConstTensorRef& tensor, std::int64_t arrays, int axes,
                        const Stencil::Axis* axis, bool is_mask) {
  Extents shape;
  shape.rank = axes + 2;
  shape[0] = is_mask ? 1 : arrays;
  shape[1] = 1;
  for (int i = 0; i < axes; ++i) {
    const Stencil::Axis& one = axis[3 - axes + i];
    shape[2 + i] = is_mask ? one.taps : one.extent;
  }
  Extents strides = shape.contiguous_strides();
  if (axes < 3 && !is_mask) strides[1] = 1;
  return {tensor.data, tensor.dtype, shape, strides, tensor.device};
}

/// A primitive for one shape of a call and a number of threads.
class Primitive {
 public:
  Primitive(const Stencil::Args& args, int threads) : args_(args), threads_(threads) {
    const onednn::Library& lib = onednn::library();
    // A primitive divides its work when it is made: by the threads that OpenMP then has.
    const peer::ThreadCount count(threads);
    const std::int64_t arrays = args.arrays();
    onednn::Layout layouts[3];
    if (!layouts[0].make(as_batch(args.x, arrays, args.axes, args.axis, false)) ||
        !layouts[1].make(as_batch(args.mask, arrays, args.axes, args.axis, true)) ||
        !layouts[2].make(as_batch(args.y, arrays, args.axes, args.axis, false))) {
      return;
    }
    onednn::Handle description = describe(layouts);
    if (description == nullptr) return;
    onednn::Handle created = nullptr;
    const bool made = lib.primitive_create(&created, description) == 0;
    lib.description_destroy(description);
    if (!made) return;
    bool ok = true;
    for (int i = 0; i < 3; ++i) {
      ok = ok && lib.memory_create(&memory_[i], layouts[i].get(), lib.engine, nullptr) == 0;
    }
    if (ok) {
      primitive_ = created;
    } else {
      lib.primitive_destroy(created);
    }
  }
  Primitive(const Primitive&) = delete;
  Primitive& operator=(const Primitive&) = delete;
  ~Primitive() {
    const onednn::Library& lib = onednn::library();
    for (onednn::Handle memory : memory_) {
      if (memory != nullptr) lib.memory_destroy(memory);
    }
    if (primitive_ != nullptr) lib.primitive_destroy(primitive_);
  }

  [[nodiscard]] bool exists() const { return primitive_ != nullptr; }
  [[nodiscard]] bool serves(const Stencil::Args& args, int threads) const {
    if (threads != threads_ || args.axes != args_.axes || args.arrays() != args_.arrays()) {
      return false;
    }
    for (int i = 0; i < 3; ++i) {
      const Stencil::Axis& a = args.axis[i];
      const Stencil::Axis& b = args_.axis[i];
      if (a.extent != b.extent || a.taps != b.taps || a.origin != b.origin) return false;
    }
    return true;
  }
  void run(const Stencil::Args& args) const {
    const onednn::Library& lib = onednn::library();
    const onednn::Argument arguments[] = {{onednn::source, memory_[0]},
                                          {onednn::weights, memory_[1]},
                                          {onednn::destination, memory_[2]}};
    const bool ok = lib.memory_set(memory_[0], const_cast<void*>(args.x.data)) == 0 &&
                    lib.memory_set(memory_[1], const_cast<void*>(args.mask.data)) == 0 &&
                    lib.memory_set(memory_[2], args.y.data) == 0 &&
                    lib.execute(primitive_, lib.stream, 3, arguments) == 0 &&
                    lib.stream_wait(lib.stream) == 0;
    if (!ok) throw Error(ErrorCode::internal, "oneDNN reported a failure");
  }

 private:
  [[nodiscard]] onednn::Handle describe(const onednn::Layout (&layouts)[3]) const {
    constexpr int inference = 96;
    constexpr int direct = 1;
    Dimensions strides = {}, dilation = {}, front = {}, behind = {};
    for (int i = 0; i < args_.axes; ++i) {
      const Stencil::Axis& axis = args_.axis[3 - args_.axes + i];
      strides[i] = 1;
      front[i] = axis.origin;
      behind[i] = axis.taps - 1 - axis.origin;
    }
    const onednn::Library& lib = onednn::library();
    onednn::Handle made = nullptr;
    if (lib.version_3) {
      const bool ok = functions().version_3 != nullptr &&
                      functions().version_3(&made, lib.engine, inference, direct, layouts[0].get(),
                                            layouts[1].get(), nullptr, layouts[2].get(), strides,
                                            dilation, front, behind, nullptr) == 0;
      return ok ? made : nullptr;
    }
    alignas(16) std::byte operation[8192] = {};
    const bool ok =
        functions().version_2 != nullptr &&
        functions().version_2(operation, inference, direct, layouts[0].get(), layouts[1].get(),
                              nullptr, layouts[2].get(), strides, front, behind) == 0 &&
        lib.v2.describe(&made, operation, nullptr, lib.engine, nullptr) == 0;
    return ok ? made : nullptr;
  }

  Stencil::Args args_;
  int threads_;
  onednn::Handle primitive_ = nullptr;
  onednn::Handle memory_[3] = {};
};

/// One a thread: a repeated call finds its primitive made.
const Primitive& prepared(const Stencil::Args& args, int threads) {
  thread_local std::unique_ptr<Primitive> last;
  if (last == nullptr || !last->serves(args, threads)) {
    last = std::make_unique<Primitive>(args, threads);
  }
  return *last;
}

Support supports(const Stencil::Args& args, const Context& context) {
  if (args.y.empty()) return unsupported("nothing to do");
  if (args.weights != Stencil::Weights::mask) return unsupported("full masks only");
  if (args.x.dtype != DType::f32 || args.y.dtype != DType::f32) return unsupported("f32 only");
  if (args.edge != StencilEdge::zero) return unsupported("zero edges only");
  if (args.scale != 1) return unsupported("no scale");
  const auto dense = [](const ConstTensorRef& tensor) {
    const Extents strides = tensor.shape.contiguous_strides();
    for (int axis = 0; axis < tensor.rank(); ++axis) {
      if (tensor.shape[axis] > 1 && tensor.strides[axis] != strides[axis]) return false;
    }
    return true;
  };
  if (!dense(args.x) || !dense(args.y) || !dense(args.mask)) {
    return unsupported("contiguous x, y and mask only");
  }
  return prepared(args, context.threads()).exists()
             ? supported
             : unsupported("oneDNN has no such primitive for this processor and shape");
}

void run(const Stencil::Args& args, Context& context) {
  const peer::ThreadCount threads(context.threads());
  const Primitive& primitive = prepared(args, context.threads());
  stencil_detail::for_each_step(args, context, 0,
                                [&](const Stencil::Args& step, void*) { primitive.run(step); });
}

const Rung<Stencil> self{{.name = "onednn",
                          .peer = true,
                          .about = onednn::about,
                          .present = onednn::present,
                          .supports = supports,
                          .run = run}};

}  // namespace
}  // namespace rung
