// SPDX-License-Identifier: Apache-2.0
// Lanes: streams that fork from a context's stream and join it again by events, so that kernels of
// different lanes run at the same time, while whoever uses the context sees one stream.
//
//   Lanes& lanes = context.memo<Lanes>();
//   lanes.fork_join(context, 4, [&](int lane, Context& on) { launch(on, ...); });  // once a lane
//
// Events order streams on the device: the host never waits, and a CUDA graph that captures the
// context's stream captures the lanes, too. Memory is the caller's: a lane must not use its own
// workspace, which a graph would not keep. In the simulator lanes run one after another.
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

  /// body(lane, its context) for lanes 0 to count - 1. What they enqueue comes after all that the
  /// context's stream holds, and before all that it gets from here on; also if body throws.
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
    // Joins whatever happens: the caller's memory must not be in use behind its back.
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
