// SPDX-License-Identifier: Apache-2.0
// Lanes: streams that fork from a context's stream and join it again by events. Kernels of
// different lanes run concurrently, while users of the context see one stream.
//
//   Lanes& lanes = context.memo<Lanes>();
//   lanes.fork_join(context, 4, [&](int lane, Context& on) { launch(on, ...); });  // once per lane
//
// Events order streams on the device: the host never waits, and a CUDA graph that captures the
// context's stream captures the lanes, too. The caller provides all memory: a body must not use the
// workspace of its lane's context, which a graph would not keep alive. In the simulator, lanes run
// one after another.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "rung/device/device.hpp"

#if defined(__CUDACC__)
#include "rung/device/cuda_check.hpp"
#endif

namespace rung::inline RUNG_TARGET {

class Lanes {
 public:
  Lanes() = default;
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  /// Calls body(lane, context of the lane) for lanes 0 to count - 1. Work that the bodies enqueue
  /// runs after all earlier work of the context's stream and before all later work, also if a body
  /// throws.
  template <class Body>
  void fork_join(Context& context, int count, Body&& body);

#if defined(__CUDACC__)
  ~Lanes() {
    all_.clear();
    if (forked_ != nullptr) cudaEventDestroy(forked_);
  }

 private:
  struct Lane {
    Lane(const Context& parent, cudaStream_t own) : stream(own), context(on(parent, own)) {
      check_cuda(cudaEventCreateWithFlags(&done, cudaEventDisableTiming), "making an event");
    }
    Lane(const Lane&) = delete;
    Lane& operator=(const Lane&) = delete;
    ~Lane() {
      if (done != nullptr) cudaEventDestroy(done);
      cudaStreamDestroy(stream);
    }
    static Context on(const Context& parent, cudaStream_t own) {
      return Context::cuda(parent.device().index, own);
    }
    cudaStream_t stream;
    Context context;
    cudaEvent_t done = nullptr;
  };
  static cudaStream_t make_stream() {
    cudaStream_t stream = nullptr;
    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
    return stream;
  }

  std::vector<std::unique_ptr<Lane>> all_;
  cudaEvent_t forked_ = nullptr;
#endif
};

#if defined(__CUDACC__)

template <class Body>
void Lanes::fork_join(Context& context, int count, Body&& body) {
  const CurrentDevice current(context.device().index);
  const auto stream = static_cast<cudaStream_t>(context.stream());
  if (forked_ == nullptr) {
    check_cuda(cudaEventCreateWithFlags(&forked_, cudaEventDisableTiming), "making an event");
  }
  while (all_.size() < static_cast<std::size_t>(count)) {
    all_.push_back(std::make_unique<Lane>(context, make_stream()));
  }
  check_cuda(cudaEventRecord(forked_, stream), "recording where streams fork");
  for (int i = 0; i < count; ++i) {
    Lane& lane = *all_[static_cast<std::size_t>(i)];
    check_cuda(cudaStreamWaitEvent(lane.stream, forked_, 0), "forking a stream");
    // Joins also if body throws: the caller may free its memory then.
    struct Join {
      Lane& lane;
      cudaStream_t stream;
      ~Join() {
        if (cudaEventRecord(lane.done, lane.stream) == cudaSuccess) {
          cudaStreamWaitEvent(stream, lane.done, 0);
        }
      }
    } const join{lane, stream};
    body(i, lane.context);
  }
}

#else

template <class Body>
void Lanes::fork_join(Context& context, int count, Body&& body) {
  for (int i = 0; i < count; ++i) body(i, context);
}

#endif

}  // namespace rung::inline RUNG_TARGET
