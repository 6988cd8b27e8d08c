// SPDX-License-Identifier: Apache-2.0
// histogram / cub: the peer CUB, DeviceHistogram::HistogramEven.
//
// Bins of bytes, and of f32 by our formula, but without the upper edge: a value equal to `high` is
// not counted. To keep checks from reporting this, f32 is supported from 2^20 elements on, the size
// of timing problems.
// Memory   temporary storage comes from the context's workspace.
#include <cub/device/device_histogram.cuh>
#include <cub/version.cuh>

#include <string>

#include "rung/device/cuda_check.hpp"
#include "rung/device/device.hpp"
#include "rung/ops/histogram/peers/call.hpp"

namespace rung {
namespace {

constexpr std::int64_t min_floats = 1 << 20;

std::string about() {
  return "CUB " + std::to_string(CUB_MAJOR_VERSION) + "." + std::to_string(CUB_MINOR_VERSION) +
         "." + std::to_string(CUB_SUBMINOR_VERSION);
}

Support supports(const Histogram::Args& args, const Context&) {
  if (args.size() == 0) return unsupported("x is empty");
  if (args.x.dtype == DType::f32 && args.size() < min_floats) {
    return unsupported("f32 from 2^20 elements on: the upper edge is not counted");
  }
  return histogram_peer::supports_plain(args);
}

template <class T, class Level>
void count(const Histogram::Args& args, Context& context) {
  const auto stream = static_cast<cudaStream_t>(context.stream());
  const auto call = [&](void* memory, std::size_t& bytes) {
    check_cuda(
        cub::DeviceHistogram::HistogramEven(
            memory, bytes, static_cast<const T*>(args.x.data), static_cast<int*>(args.counts.data),
            static_cast<int>(args.bins()) + 1, static_cast<Level>(args.low),
            static_cast<Level>(args.high), static_cast<int>(args.size()), stream),
        "cub::DeviceHistogram::HistogramEven");
  };
  std::size_t bytes = 0;
  call(nullptr, bytes);
  call(context.workspace(bytes), bytes);
}

void run(const Histogram::Args& args, Context& context) {
  const CurrentDevice current(context.device().index);  // CUB launches on the current device
  if (args.x.dtype == DType::u8) {
    count<std::uint8_t, int>(args, context);
  } else {
    count<float, float>(args, context);
  }
}

const Rung<Histogram> self{{.name = "cub",
                            .backend = Backend::cuda,
                            .peer = true,
                            .about = about,
                            .supports = supports,
                            .run = run}};

}  // namespace
}  // namespace rung
