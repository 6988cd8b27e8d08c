// SPDX-License-Identifier: Apache-2.0
// histogram / shared, privatized: the host side of 040_shared_privatized.cl.
#include "rung/ops/histogram/opencl/040_shared_privatized.cl.hpp"

#include <algorithm>

#include "rung/core/integer.hpp"
#include "rung/ops/histogram/op/bins.hpp"

namespace rung {
namespace {

/// The kernel's Range for integers.
struct WholeRange {
  std::int64_t low;
  std::uint64_t span, bins;
};

/// Returns the kernel's VALUE; null for types that the kernel does not support.
const char* value_type(DType x) {
  switch (x) {
    case DType::f32:
      return "float";
    case DType::u8:
      return "uchar";
    case DType::u16:
      return "ushort";
    case DType::i32:
      return "int";
    case DType::i64:
      return "long";
    default:
      return nullptr;
  }
}

std::size_t table_bytes(const Histogram::Args& args) {
  return static_cast<std::size_t>(args.bins()) * sizeof(std::uint32_t);
}

Support supports(const Histogram::Args& args, const Context& context) {
  if (value_type(args.x.dtype) == nullptr) return unsupported("takes integers and f32");
  if (args.counts.dtype != DType::i32) return unsupported("takes i32 counts");
  if (!args.even()) return unsupported("takes bins of equal width");
  if (args.size() > 0 && !args.dense()) return unsupported("x must be contiguous");
  return table_bytes(args) <= opencl::limits(context).local_bytes
             ? supported
             : unsupported("the bins do not fit in the device's local memory");
}

void count(const Histogram::Args& args, const Context& context, const opencl::Kernel& kernel,
           const auto& range) {
  constexpr std::int64_t elements_per_item = 8, groups_per_unit = 8;
  const std::int64_t items = opencl::largest_group(context, 256);
  const std::int64_t groups = std::min(ceil_div(args.size(), items * elements_per_item),
                                       opencl::limits(context).compute_units * groups_per_unit);
  opencl::launch(context, kernel, {.groups = {groups}, .items = {items}},
                 opencl::pointer_to(args.x), args.size(), range, opencl::pointer_to(args.counts),
                 args.counts.strides[0], static_cast<std::uint32_t>(args.bins()),
                 opencl::Local{table_bytes(args)});
}

void run(const Histogram::Args& args, Context& context) {
  const bool floats = args.x.dtype == DType::f32;
  opencl::Kernel kernel{
      .source = source,
      .name = "histogram_clear",
      .options = std::string("-DVALUE=") + value_type(args.x.dtype) + (floats ? " -DFLOATS" : "")};
  if (!args.accumulate) {
    const std::int64_t items = opencl::largest_group(context, 256);
    opencl::launch(context, kernel, {.groups = {ceil_div(args.bins(), items)}, .items = {items}},
                   opencl::pointer_to(args.counts), args.counts.strides[0],
                   static_cast<std::uint32_t>(args.bins()));
  }
  if (args.size() == 0) return;
  kernel.name = "histogram_shared_privatized";
  if (floats) {
    count(args, context, kernel, EvenBins<float>::make(args));
  } else {
    const auto low = static_cast<std::int64_t>(args.low);
    count(args, context, kernel,
          WholeRange{low, static_cast<std::uint64_t>(static_cast<std::int64_t>(args.high) - low),
                     static_cast<std::uint64_t>(args.bins())});
  }
}

const Rung<Histogram> self{{.name = "shared_privatized",
                            .step = 40,
                            .backend = Backend::opencl,
                            .supports = supports,
                            .passes = {.loads = 1, .stores = 1},
                            .run = run},
                           source.path};

}  // namespace
}  // namespace rung
