// SPDX-License-Identifier: Apache-2.0
// Names of older toolkits: votes and shuffles without a mask, which apply to the lanes that call
// them, and streams for launches by kernels.
#pragma once

#include "rung_cuda/runtime_types.h"
#include "rung_cuda/warp.h"

// Kernels launched by a kernel run after it has ended, whichever of these streams is given.
#define cudaStreamTailLaunch cudaStreamPerThread
#define cudaStreamFireAndForget cudaStreamPerThread

inline int __any(int predicate, RungPlace place = RungPlace::current()) {
  return __any_sync(__activemask(place), predicate, place);
}
inline int __all(int predicate, RungPlace place = RungPlace::current()) {
  return __all_sync(__activemask(place), predicate, place);
}
inline unsigned __ballot(int predicate, RungPlace place = RungPlace::current()) {
  return __ballot_sync(__activemask(place), predicate, place);
}
template <class T>
inline T __shfl(T value, int lane, int width = 32, RungPlace place = RungPlace::current()) {
  return __shfl_sync(__activemask(place), value, lane, width, place);
}
template <class T>
inline T __shfl_up(T value, unsigned delta, int width = 32,
                   RungPlace place = RungPlace::current()) {
  return __shfl_up_sync(__activemask(place), value, delta, width, place);
}
template <class T>
inline T __shfl_down(T value, unsigned delta, int width = 32,
                     RungPlace place = RungPlace::current()) {
  return __shfl_down_sync(__activemask(place), value, delta, width, place);
}
template <class T>
inline T __shfl_xor(T value, int mask, int width = 32, RungPlace place = RungPlace::current()) {
  return __shfl_xor_sync(__activemask(place), value, mask, width, place);
}
