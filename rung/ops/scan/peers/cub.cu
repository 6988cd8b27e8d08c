// SPDX-License-Identifier: Apache-2.0
// scan / cub: the peer CUB, DeviceScan. Temporary storage comes from the context's workspace.
//
// f16 and bf16 are CUDA's own types to CUB, which adds them directly: its tolerance is wider.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cub/device/device_scan.cuh>
#include <cub/version.cuh>
#include <cuda/std/functional>
#include <string>

#include "rung/device/cuda_check.hpp"
#include "rung/device/device.hpp"
#include "rung/ops/scan/op/scan.hpp"

namespace rung {
namespace {

std::string about() {
  return "CUB " + std::to_string(CUB_MAJOR_VERSION) + "." + std::to_string(CUB_MINOR_VERSION) +
         "." + std::to_string(CUB_SUBMINOR_VERSION);
}

Support supports(const Scan::Args& args, const Context&) {
  if (args.y.empty()) return unsupported("nothing to scan");
  if (args.operation != ScanOperation::sum || args.exclusive || args.has_segments()) {
    return unsupported("the peer is called for inclusive sums");
  }
  if (!args.is_contiguous() || args.lines.size() != 1) {
    return unsupported("the peer takes one contiguous line, forward");
  }
  return supported;
}

template <class T>
void inclusive_sum(const Scan::Args& args, Context& context) {
  const auto stream = static_cast<cudaStream_t>(context.stream());
  const auto call = [&](void* memory, std::size_t& bytes) {
    check_cuda(cub::DeviceScan::InclusiveScan(memory, bytes, static_cast<const T*>(args.x.data),
                                              static_cast<T*>(args.y.data), ::cuda::std::plus<>{},
                                              args.length(), stream),
               "cub::DeviceScan::InclusiveScan");
  };
  std::size_t bytes = 0;
  call(nullptr, bytes);
  call(context.workspace(bytes), bytes);
}

void run(const Scan::Args& args, Context& context) {
  const CurrentDevice current(context.device().index);  // CUB launches on the current device
  switch (args.x.dtype) {
    case DType::f32:
      return inclusive_sum<float>(args, context);
    case DType::f64:
      return inclusive_sum<double>(args, context);
    case DType::f16:
      return inclusive_sum<__half>(args, context);
    case DType::bf16:
      return inclusive_sum<__nv_bfloat16>(args, context);
    case DType::i32:
      return inclusive_sum<unsigned>(args, context);
    case DType::i64:
      return inclusive_sum<unsigned long long>(args, context);
    case DType::u16:
      return inclusive_sum<unsigned short>(args, context);
    default:
      return inclusive_sum<unsigned char>(args, context);  // i8 too: the bits are the same
  }
}

const Rung<Scan> self{{.name = "cub",
                       .backend = Backend::cuda,
                       .peer = true,
                       .about = about,
                       .supports = supports,
                       .run = run}};

}  // namespace
}  // namespace rung
