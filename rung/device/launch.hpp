// SPDX-License-Identifier: Apache-2.0
// launch(): runs a kernel on a context's stream, on a GPU or in the simulator. Rungs do not use
// <<<>>>, so that every launch is checked here.
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

#include "rung/core/context.hpp"
#include "rung/core/launch_shape.hpp"
#include "rung/device/target.hpp"

#if !defined(__CUDACC__)
#include "rung/simt/simulator.hpp"
#endif

namespace rung::inline RUNG_TARGET {

#if defined(__CUDACC__)

namespace device_detail {
/// Makes the context's device current, raises the kernel's limit of dynamic shared memory if
/// needed, launches, and throws if the runtime reports an error. Defined in cuda_launch.cu.
void launch_cuda(const Context& context, const LaunchShape& shape, const void* kernel,
                 void** arguments);
}  // namespace device_detail

/// Launches a kernel asynchronously, with its arguments converted to the parameter types; does
/// nothing for an empty grid. If the launch fails, throws Error(device), whose message describes
/// it. Safe during graph capture.
template <class... Parameters, class... Arguments>
void launch(Context& context, const LaunchShape& shape, void (*kernel)(Parameters...),
            Arguments&&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments), "one argument a kernel parameter");
  if (!check_launch(shape, device_backend, context)) return;
  std::tuple<std::remove_cv_t<Parameters>...> values{std::forward<Arguments>(arguments)...};
  std::apply(
      [&](auto&... value) {
        // The extra entry keeps the array legal for a kernel without parameters.
        void* addresses[] = {&value..., nullptr};
        device_detail::launch_cuda(context, shape, reinterpret_cast<const void*>(kernel),
                                   addresses);
      },
      values);
}

#else

namespace device_detail {
inline simt::dialect::dim3 to_dim3(const LaunchExtent& extent) {
  return {static_cast<unsigned>(extent.x), static_cast<unsigned>(extent.y),
          static_cast<unsigned>(extent.z)};
}
}  // namespace device_detail

/// Runs a kernel in the simulator to its end, with its arguments converted to the parameter types;
/// does nothing for an empty grid. Throws Error(device), whose message describes the launch or the
/// error in the kernel.
template <class... Parameters, class... Arguments>
void launch(Context& context, const LaunchShape& shape, void (*kernel)(Parameters...),
            Arguments&&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments), "one argument a kernel parameter");
  if (!check_launch(shape, device_backend, context)) return;
  struct BoundKernel {
    void (*kernel)(Parameters...);
    std::tuple<std::remove_cv_t<Parameters>...> values;
  };
  const BoundKernel call{kernel, {std::forward<Arguments>(arguments)...}};
  // The kernel is called through a pointer for each thread, so that it is never inlined into the
  // simulator's loop over threads, where threadIdx would be read once for all of them.
  const auto entry = [](const void* erased) {
    const BoundKernel& one = *static_cast<const BoundKernel*>(erased);
    std::apply(one.kernel, one.values);
  };
  simt::run({.grid = device_detail::to_dim3(shape.grid),
             .block = device_detail::to_dim3(shape.block),
             .shared_bytes = shape.shared_bytes,
             .cooperative = shape.cooperative,
             .cluster = device_detail::to_dim3(shape.cluster),
             .os_threads = context.threads(),
             .entry = entry,
             .arguments = &call,
             .argument_bytes = sizeof(call),
             .kernel = reinterpret_cast<const void*>(kernel)});
}

#endif

}  // namespace rung::inline RUNG_TARGET
