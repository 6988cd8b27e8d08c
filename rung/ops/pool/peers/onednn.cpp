// SPDX-License-Identifier: Apache-2.0
// pool / onednn: the peer oneDNN, its pooling primitive.
//
// Kernels  generated while running for the processor it finds.
// Limits   f32 and bf16; maximum without indices, average; no bias, no activation; no window that
//          reaches beyond the padded image where padding is counted, for it counts that too. Its
//          answer to a NaN is not ours: it is asked for finite values alone.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>

#include "rung/ops/pool/pool.hpp"
#include "rung/peers/onednn.hpp"
#include "rung/peers/onednn_describe.hpp"
#include "rung/peers/thread_count.hpp"

namespace rung {
namespace {

/// What oneDNN's pooling takes, beyond what its other primitives do.
struct Functions {
  using Dimensions = onednn::Dimension[12];
  onednn::Status (*version_2)(void* operation, int propagation, int algorithm,
                              onednn::Description source, onednn::Description destination,
                              const onednn::Dimension* strides, const onednn::Dimension* kernel,
                              const onednn::Dimension* dilation,
                              const onednn::Dimension* padding_front,
                              const onednn::Dimension* padding_behind);
  onednn::Status (*version_3)(onednn::Handle* description, onednn::Handle engine, int propagation,
                              int algorithm, onednn::Description source,
                              onednn::Description destination, const onednn::Dimension* strides,
                              const onednn::Dimension* kernel, const onednn::Dimension* dilation,
                              const onednn::Dimension* padding_front,
                              const onednn::Dimension* padding_behind, onednn::Handle attributes);

  Functions() {
    onednn::library().library.optional(version_2, "dnnl_pooling_v2_forward_desc_init");
    onednn::library().library.optional(version_3, "dnnl_pooling_forward_primitive_desc_create");
  }
};
const Functions& functions() {
  static const Functions loaded;
  return loaded;
}

/// A primitive for one layout of a call and a number of threads.
class Primitive {
 public:
  Primitive(const Pool::Args& args, int threads) : args_(args), threads_(threads) {
    const onednn::Library& lib = onednn::library();
    // A primitive divides its work when it is made: by the threads that OpenMP then has.
    const peer::ThreadCount count(threads);
    onednn::Layout source;
    onednn::Layout destination;
    if (!source.make(args.x) || !destination.make(args.y)) return;
    onednn::Handle description = describe(source.get(), destination.get());
    if (description == nullptr) return;
    onednn::Handle created = nullptr;
    const bool made = lib.primitive_create(&created, description) == 0;
    lib.description_destroy(description);
    if (!made) return;
    if (lib.memory_create(&source_, source.get(), lib.engine, nullptr) == 0 &&
        lib.memory_create(&destination_, destination.get(), lib.engine, nullptr) == 0) {
      primitive_ = created;
    } else {
      lib.primitive_destroy(created);
    }
  }
  Primitive(const Primitive&) = delete;
  Primitive& operator=(const Primitive&) = delete;
  ~Primitive() {
    const onednn::Library& lib = onednn::library();
    for (onednn::Handle memory : {source_, destination_}) {
      if (memory != nullptr) lib.memory_destroy(memory);
    }
    if (primitive_ != nullptr) lib.primitive_destroy(primitive_);
  }

  [[nodiscard]] bool exists() const { return primitive_ != nullptr; }
  [[nodiscard]] bool serves(const Pool::Args& args, int threads) const {
    const auto lie_alike = [](const ConstTensorRef& a, const ConstTensorRef& b) {
      return a.dtype == b.dtype && a.shape == b.shape && a.strides == b.strides;
    };
    return threads == threads_ && args.options == args_.options && lie_alike(args.x, args_.x) &&
           lie_alike(args.y, args_.y);
  }
  void run(const Pool::Args& args) const {
    const onednn::Library& lib = onednn::library();
    const onednn::Argument arguments[] = {{onednn::source, source_},
                                          {onednn::destination, destination_}};
    const bool ok = lib.memory_set(source_, const_cast<void*>(args.x.data)) == 0 &&
                    lib.memory_set(destination_, args.y.data) == 0 &&
                    lib.execute(primitive_, lib.stream, 2, arguments) == 0 &&
                    lib.stream_wait(lib.stream) == 0;
    if (!ok) throw Error(ErrorCode::internal, "oneDNN reported a failure");
  }

 private:
  [[nodiscard]] onednn::Handle describe(onednn::Description source,
                                        onednn::Description destination) const {
    constexpr int inference = 96;
    constexpr int max = 0x1ff;
    constexpr int average_with_padding = 0x2ff;
    constexpr int average_without = 0x3ff;
    const int algorithm = args_.kind() == Pooling::max  ? max
                          : args_.options.count_padding ? average_with_padding
                                                        : average_without;
    Functions::Dimensions strides = {}, kernel = {}, dilation = {}, front = {}, behind = {};
    const PoolAxis* axes[] = {&args_.rows, &args_.columns};
    for (int i = 0; i < 2; ++i) {
      const PoolAxis& axis = *axes[i];
      strides[i] = axis.stride;
      kernel[i] = axis.kernel;
      dilation[i] = axis.dilation - 1;
      front[i] = axis.padding;
      const std::int64_t end = axis.start(axis.out - 1) + (axis.kernel - 1) * axis.dilation + 1;
      behind[i] = std::max<std::int64_t>(0, end - axis.in);
    }
    const onednn::Library& lib = onednn::library();
    onednn::Handle made = nullptr;
    if (lib.version_3) {
      const bool ok =
          functions().version_3 != nullptr &&
          functions().version_3(&made, lib.engine, inference, algorithm, source, destination,
                                strides, kernel, dilation, front, behind, nullptr) == 0;
      return ok ? made : nullptr;
    }
    alignas(16) std::byte operation[8192] = {};
    const bool ok = functions().version_2 != nullptr &&
                    functions().version_2(operation, inference, algorithm, source, destination,
                                          strides, kernel, dilation, front, behind) == 0 &&
                    lib.v2.describe(&made, operation, nullptr, lib.engine, nullptr) == 0;
    return ok ? made : nullptr;
  }

  Pool::Args args_;
  int threads_;
  onednn::Handle primitive_ = nullptr;
  onednn::Handle source_ = nullptr;
  onednn::Handle destination_ = nullptr;
};

/// One a thread: a repeated call finds its primitive made.
const Primitive& prepared(const Pool::Args& args, int threads) {
  thread_local std::unique_ptr<Primitive> last;
  if (last == nullptr || !last->serves(args, threads)) {
    last = std::make_unique<Primitive>(args, threads);
  }
  return *last;
}

bool has_broadcast(const ConstTensorRef& tensor) {
  for (int axis = 0; axis < tensor.rank(); ++axis) {
    if (tensor.strides[axis] == 0 && tensor.shape[axis] > 1) return true;
  }
  return false;
}

/// Looking through large ones would take longer than timing them: those are ordinary numbers.
bool is_finite(const ConstTensorRef& x) {
  constexpr std::int64_t worth_looking = std::int64_t{1} << 22;
  if (x.size() > worth_looking) return true;
  for (std::int64_t i = 0; i < x.size(); ++i) {
    std::int64_t rest = i;
    std::int64_t offset = 0;
    for (int axis = 3; axis >= 0; --axis) {
      offset += rest % x.shape[axis] * x.strides[axis];
      rest /= x.shape[axis];
    }
    const auto bytes = static_cast<std::int64_t>(size_of(x.dtype));
    const auto* element = static_cast<const std::byte*>(x.data) + offset * bytes;
    if (!std::isfinite(load_as_double(x.dtype, element))) return false;
  }
  return true;
}

Support supports(const Pool::Args& args, const Context& context) {
  if (args.y.empty()) return unsupported("nothing to do");
  if (args.kind() != Pooling::max && args.kind() != Pooling::average) {
    return unsupported("maximum and average only");
  }
  if (args.has_indices() || args.has_epilogue()) {
    return unsupported("no indices, no bias, no activation");
  }
  if (has_broadcast(args.x)) return unsupported("no strides of 0");
  const bool beyond = args.rows.padded_taps(args.rows.out - 1) < args.rows.kernel ||
                      args.columns.padded_taps(args.columns.out - 1) < args.columns.kernel;
  if (beyond && args.kind() == Pooling::average && args.options.count_padding) {
    return unsupported("counts places beyond the padding, too");
  }
  if (!is_finite(args.x)) return unsupported("answers infinities and NaN otherwise than we do");
  return prepared(args, context.threads()).exists()
             ? supported
             : unsupported("oneDNN has no such primitive for this processor, type and layout");
}

void run(const Pool::Args& args, Context& context) {
  const peer::ThreadCount threads(context.threads());
  prepared(args, context.threads()).run(args);
}

const Rung<Pool> self{{.name = "onednn",
                       .peer = true,
                       .about = onednn::about,
                       .present = onednn::present,
                       .supports = supports,
                       .run = run}};

}  // namespace
}  // namespace rung
