// SPDX-License-Identifier: Apache-2.0
// Thrust's asynchronous algorithms. Each runs to its end in the call, as Thrust's algorithms do
// here, and returns an event or a future that is ready.
#pragma once

#include <utility>

#include "rung_cuda/thrust_choices.h"

namespace thrust {

/// State common to events and futures: a default-constructed one is not valid.
class rung_ready {
 public:
  rung_ready() = default;
  rung_ready(rung_ready&& other) noexcept : valid_(std::exchange(other.valid_, false)) {}
  rung_ready& operator=(rung_ready&& other) noexcept {
    valid_ = std::exchange(other.valid_, false);
    return *this;
  }
  [[nodiscard]] bool valid() const { return valid_; }
  [[nodiscard]] bool valid_stream() const { return valid_; }
  [[nodiscard]] bool ready() const { return valid_; }
  void wait() const {}

 protected:
  explicit rung_ready(bool valid) : valid_(valid) {}

 private:
  bool valid_ = false;
};

class device_event : public rung_ready {
 public:
  device_event() = default;
  explicit device_event(bool valid) : rung_ready(valid) {}
  /// Takes any event or future.
  device_event(rung_ready&& other) : rung_ready(std::move(other)) {}
};

template <class T>
class device_future : public rung_ready {
 public:
  device_future() = default;
  explicit device_future(T value) : rung_ready(true), value_(std::move(value)) {}
  [[nodiscard]] T get() const { return value_; }
  [[nodiscard]] T extract() {
    device_future taken(std::move(*this));
    return std::move(taken.value_);
  }

 private:
  T value_{};
};

using event = device_event;
template <class T>
using future = device_future<T>;
template <class T>
using unique_eager_future = device_future<T>;
using unique_eager_event = device_event;

template <class... Events>
device_event when_all(Events&&...) {
  return device_event(true);
}

namespace async {

/// Calls an algorithm and returns an event.
template <class Algorithm>
struct rung_event_of {
  Algorithm algorithm;
  template <class... Arguments>
  device_event operator()(Arguments&&... arguments) const {
    algorithm(std::forward<Arguments>(arguments)...);
    return device_event(true);
  }
};
template <class Algorithm>
rung_event_of(Algorithm) -> rung_event_of<Algorithm>;

inline constexpr rung_event_of for_each{thrust::for_each};
inline constexpr rung_event_of sort{thrust::sort};
inline constexpr rung_event_of stable_sort{thrust::stable_sort};
inline constexpr rung_event_of transform{thrust::transform};
inline constexpr rung_event_of inclusive_scan{thrust::inclusive_scan};
inline constexpr rung_event_of exclusive_scan{thrust::exclusive_scan};

/// The policies of the source and the destination follow from the iterators.
template <class First, class... Arguments>
device_event copy(First&& first, Arguments&&... arguments) {
  if constexpr (is_rung_policy<First>) {
    return async::copy(std::forward<Arguments>(arguments)...);
  } else {
    thrust::copy(std::forward<First>(first), std::forward<Arguments>(arguments)...);
    return device_event(true);
  }
}

template <class... Arguments>
auto reduce(Arguments&&... arguments) {
  return device_future(thrust::reduce(std::forward<Arguments>(arguments)...));
}
template <class... Arguments>
auto transform_reduce(Arguments&&... arguments) {
  return device_future(thrust::transform_reduce(std::forward<Arguments>(arguments)...));
}

/// Stores the reduction at `output`.
template <class In, class Out, class... Arguments>
requires(!is_rung_policy<In>) device_event
    reduce_into(In first, In last, Out output, Arguments&&... arguments) {
  *output = thrust::reduce(first, last, std::forward<Arguments>(arguments)...);
  return device_event(true);
}
template <class P, class In, class Out, class... Arguments>
requires is_rung_policy<P> device_event reduce_into(const P& policy, In first, In last, Out output,
                                                    Arguments&&... arguments) {
  *output = thrust::reduce(policy, first, last, std::forward<Arguments>(arguments)...);
  return device_event(true);
}

}  // namespace async
}  // namespace thrust
