// SPDX-License-Identifier: Apache-2.0
// transfer: access to the link between host and device: streams with a context each, page-locked
// memory, asynchronous copies. In the simulator all memory is the host's: copies are synchronous.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "rung/core/bounds.hpp"
#include "rung/core/tensor.hpp"
#include "rung/device/device.hpp"
#include "rung/ops/transfer/op/host_copy.hpp"
#include "rung/ops/transfer/op/transfer.hpp"

#if defined(__CUDACC__)
#include "rung/device/cuda_check.hpp"
#endif

namespace rung::transfer_cuda::inline RUNG_TARGET {

/// Host memory, page-locked on CUDA; grows on demand and is kept.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;
  ~PinnedBuffer() { release(); }

  std::byte* reserve(std::int64_t bytes) {
    if (bytes <= capacity_) return data_;
    release();
#if defined(__CUDACC__)
    void* memory = nullptr;
    check_cuda(cudaMallocHost(&memory, static_cast<std::size_t>(bytes)),
               "page-locking " + std::to_string(bytes) + " bytes");
    data_ = static_cast<std::byte*>(memory);
#else
    data_ = new std::byte[static_cast<std::size_t>(bytes)];
#endif
    capacity_ = bytes;
    return data_;
  }

 private:
  void release() {
    capacity_ = 0;
#if defined(__CUDACC__)
    if (data_ != nullptr) cudaFreeHost(data_);
#else
    delete[] data_;
#endif
    data_ = nullptr;
  }

  std::byte* data_ = nullptr;
  std::int64_t capacity_ = 0;
};

/// Copies in either direction, on the context's stream. Copies from and to pageable memory are
/// synchronous: the driver stages them.
inline void copy_async(const Context& context, void* to, const void* from, std::int64_t bytes) {
#if defined(__CUDACC__)
  check_cuda(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault,
                             static_cast<cudaStream_t>(context.stream())),
             "copying " + std::to_string(bytes) + " bytes");
#else
  (void)context;
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
#endif
}

/// Returns whether host memory is page-locked, so that copies need no staging.
inline bool is_page_locked(const void* memory) {
#if defined(__CUDACC__)
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, memory) != cudaSuccess) {
    cudaGetLastError();  // clears the error: old drivers report one for pageable memory
    return false;
  }
  return attributes.type == cudaMemoryTypeHost;
#else
  (void)memory;
  return false;
#endif
}

/// A stream, and a context that computes on it.
class Lane {
 public:
  explicit Lane(const Context& parent) : device_(parent.device()), context_(make(parent)) {}
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  ~Lane() {
#if defined(__CUDACC__)
    cudaStreamSynchronize(stream_);
    cudaStreamDestroy(stream_);
#endif
  }

  [[nodiscard]] Context& context() { return context_; }
  /// Returns `count` elements of device memory, which grows on demand and is kept.
  TensorRef device_memory(DType dtype, std::int64_t count) {
    const std::int64_t bytes = count * static_cast<std::int64_t>(size_of(dtype));
    if (memory_.ref().data == nullptr || memory_.shape()[0] < bytes) {
      memory_ = Tensor();  // frees the old memory first: old and new together might not fit
      memory_ = Tensor(DType::u8, Extents{bytes}, device_);
    }
    return {memory_.ref().data, dtype, Extents{count}, device_};
  }

  PinnedBuffer in;   // staging for copies to the device
  PinnedBuffer out;  // staging for copies from the device
 private:
#if defined(__CUDACC__)
  Context make(const Context& parent) {
    const CurrentDevice current(parent.device().index);
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
    return Context::cuda(parent.device().index, stream_);
  }
  cudaStream_t stream_ = nullptr;  // declared before context_, which uses it
#else
  static Context make(const Context&) { return Context::simt(); }
#endif
  Device device_;
  Context context_;
  Tensor memory_;
};

/// Lanes of a context, created on first use and owned by this object.
struct Lanes {
  std::vector<std::unique_ptr<Lane>> all;
  int host_threads = Context::cpu().threads();
  Lane& get(const Context& parent, std::size_t index) {
    while (all.size() <= index) all.push_back(std::make_unique<Lane>(parent));
    return *all[index];
  }
};

/// Returns the address of element `first` of a host tensor.
template <class Void>
Void* at(const BasicTensorRef<Void>& tensor, std::int64_t first) {
  using Byte = std::conditional_t<std::is_const_v<Void>, const std::byte, std::byte>;
  return static_cast<Byte*>(tensor.data) + first * static_cast<std::int64_t>(size_of(tensor.dtype));
}

inline double bytes_one_way(const Transfer::Args& args) { return Transfer::cost(args).bytes / 2; }

/// Returns the work of copies that move `bytes` in sequence, as rounds of 32 KiB.
inline Work turns_work(double bytes, std::int64_t launches) {
  constexpr double piece = 32 << 10;
  return {.launches = launches, .rounds = bytes / piece, .path = "link"};
}

}  // namespace rung::transfer_cuda::inline RUNG_TARGET
