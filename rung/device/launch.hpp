// SPDX-License-Identifier: Apache-2.0
// launch(): runs a kernel on a context's stream, on a GPU or in the simulator. There is no <<<>>>
// in our sources: this is the one place that launches, and it always checks.
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
/// Makes the context's device current, raises the kernel's limit of dynamic shared memory if need
/// be, launches and throws what the runtime reports. In cuda_launch.cu.
void launch_cuda(const Context& context, const LaunchShape& shape, const void* kernel,
                 void** arguments);
}  // namespace device_detail

/// Arguments are converted to the kernel's parameter types. An empty grid is no launch. Throws
/// Error(device) that names the launch. Asynchronous; safe while a CUDA graph is captured.
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

/// Arguments are converted to the kernel's parameter types. An empty grid is no launch. Throws
/// Error(device) that names the launch, or what went wrong in it; done when it returns.
template <class... Parameters, class... Arguments>
void launch(Context& context, const LaunchShape& shape, void (*kernel)(Parameters...),
            Arguments&&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments), "one argument a kernel parameter");
  if (!check_launch(shape, device_backend, context)) return;
  struct Call {
    void (*kernel)(Parameters...);
    std::tuple<std::remove_cv_t<Parameters>...> values;
  };
  const Call call{kernel, {std::forward<Arguments>(arguments)...}};
  // The kernel is called through a pointer for each thread, so that it is never inlined into the
  // simulator's loop over threads, where threadIdx would be read once for all of them.
  const auto entry = [](const void* erased) {
    const Call& one = *static_cast<const Call*>(erased);
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
