// SPDX-License-Identifier: Apache-2.0
// reduce / cub: the peer CUB, DeviceReduce and DeviceSegmentedReduce.
//
// Kernels  compiled with librung from the CUDA toolkit's headers; CUB tunes for the architecture.
// Limits   contiguous f32: sums, minima and maxima of a whole tensor or of rows of equal length.
//          CUB's temporary storage is queried on each call, as its interface requires, and comes
//          from the context's workspace.
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <cub/cub.cuh>

#include <limits>
#include <string>

#include "rung/device/cuda_check.hpp"
#include "rung/device/device.hpp"
#include "rung/ops/reduce/peers/call.hpp"

namespace rung {
namespace {
using namespace reduce_peer;

/// Functor that returns the start of row r, for CUB's segments.
struct RowBegin {
  std::int64_t length;
  __host__ __device__ std::int64_t operator()(std::int64_t row) const { return row * length; }
};

void check(cudaError_t status) {
  if (status == cudaSuccess) return;
  throw Error(ErrorCode::device, std::string("CUB: ") + cudaGetErrorString(status));
}

std::string about() {
  return "CUB " + std::to_string(CUB_MAJOR_VERSION) + "." + std::to_string(CUB_MINOR_VERSION) +
         "." + std::to_string(CUB_SUBMINOR_VERSION);
}

Support supports(const Reduce::Args& args, const Context&) {
  if (args.x.dtype != DType::f32) return unsupported("f32 only");
  if (args.operation != Reduction::sum && args.operation != Reduction::min &&
      args.operation != Reduction::max) {
    return unsupported("sum, min and max");
  }
  const Shape shape = shape_of(args);
  if (!shape.fits || shape.inner != 1) return unsupported("contiguous rows");
  return shape.outer <= std::numeric_limits<int>::max() ? supported
                                                        : unsupported("up to 2^31 - 1 rows");
}

/// Calls CUB twice: first for the size of its temporary storage, then to reduce.
template <class Call>
void in_two_steps(Context& context, const Call& call) {
  std::size_t bytes = 0;
  check(call(nullptr, bytes));
  // Must not be null: CUB would query the size again.
  void* memory = context.workspace(bytes == 0 ? 1 : bytes);
  check(call(memory, bytes));
}

void run(const Reduce::Args& args, Context& context) {
  const CurrentDevice current(context.device().index);  // CUB launches on the current device
  const Shape shape = shape_of(args);
  const float* x = static_cast<const float*>(args.x.data);
  float* y = static_cast<float*>(args.y.data);
  const auto stream = static_cast<cudaStream_t>(context.stream());
  const std::int64_t n = shape.length;
  const int rows = static_cast<int>(shape.outer);
  in_two_steps(context, [&](void* memory, std::size_t& bytes) {
    if (rows == 1) {
      switch (args.operation) {
        case Reduction::min:
          return cub::DeviceReduce::Min(memory, bytes, x, y, n, stream);
        case Reduction::max:
          return cub::DeviceReduce::Max(memory, bytes, x, y, n, stream);
        default:
          return cub::DeviceReduce::Sum(memory, bytes, x, y, n, stream);
      }
    }
    const auto begin =
        thrust::make_transform_iterator(thrust::counting_iterator<std::int64_t>(0), RowBegin{n});
    switch (args.operation) {
      case Reduction::min:
        return cub::DeviceSegmentedReduce::Min(memory, bytes, x, y, rows, begin, begin + 1, stream);
      case Reduction::max:
        return cub::DeviceSegmentedReduce::Max(memory, bytes, x, y, rows, begin, begin + 1, stream);
      default:
        return cub::DeviceSegmentedReduce::Sum(memory, bytes, x, y, rows, begin, begin + 1, stream);
    }
  });
}

const Rung<Reduce> self{{.name = "cub",
                         .backend = device_backend,
                         .peer = true,
                         .about = about,
                         .supports = supports,
                         .run = run}};

}  // namespace
}  // namespace rung
