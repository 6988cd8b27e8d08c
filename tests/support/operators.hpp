// SPDX-License-Identifier: Apache-2.0
// Shared by operators' property tests: every backend that needs no GPU, every rung that supports a
// call, random values, the message of an Error, memory that is reserved and never touched.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "rung/core/operator.hpp"

namespace rung::test {

inline constexpr float infinity = std::numeric_limits<float>::infinity();
inline constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// Fixture for a test on each backend that needs no GPU:
///   class SoftmaxOn : public test::OnBackend {};
///   INSTANTIATE_TEST_SUITE_P(Backends, SoftmaxOn, test::backends, test::name_of_backend);
class OnBackend : public testing::TestWithParam<Backend> {
 protected:
  Context context = Context::on(GetParam());
};
inline const auto backends = testing::Values(Backend::cpu, Backend::simt);
inline std::string name_of_backend(const testing::TestParamInfo<Backend>& test) {
  return to_string(test.param);
}

/// Returns our rungs on the context's backend that support the call, in the order of their list.
template <class Op>
std::vector<std::string_view> rungs_that_take(const typename Op::Args& args, Context& context) {
  std::vector<std::string_view> names;
  for (const Rung<Op>* rung = Op::rungs().first; rung != nullptr; rung = rung->next) {
    const RungInfo& info = rung->info;
    if (info.backend != context.backend() || info.peer || !rung->supports(args, context)) continue;
    names.push_back(info.name);
  }
  EXPECT_FALSE(names.empty()) << "no rung takes the call";
  return names;
}

/// Returns the picks, preceded by "", the public call.
template <class Op>
std::vector<std::string_view> picks_for(const typename Op::Call& call, Context& context) {
  std::vector<std::string_view> names = rungs_that_take<Op>(bind<Op>(call), context);
  names.insert(names.begin(), "");
  return names;
}

/// Returns normally distributed values, the same for the same seed.
template <class T = float>
std::vector<T> random_values(std::int64_t count, unsigned seed = 1, double mean = 0,
                             double spread = 1) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal(mean, spread);
  std::vector<T> values(static_cast<std::size_t>(count));
  for (T& value : values) value = static_cast<T>(normal(engine));
  return values;
}

template <class T>
TensorRef tensor(std::vector<T>& values, const Extents& shape) {
  return {values.data(), shape};
}

/// Returns the message of the Error that f throws; "" if it throws none.
template <class F>
std::string message_of(F&& f, ErrorCode expected = ErrorCode::invalid_argument) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), expected) << error.what();
    return error.what();
  }
  return "";
}

inline void expect_text(std::string_view message, std::string_view part) {
  EXPECT_NE(message.find(part), std::string_view::npos) << message;
}

/// Address space for strides and sizes beyond 32 bits: untouched pages cost nothing. data() is null
/// if the machine cannot reserve it.
class Reservation {
 public:
  explicit Reservation(std::int64_t bytes)
      : bytes_(static_cast<std::size_t>(bytes)),
        data_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation() {
    if (data_ != MAP_FAILED) munmap(data_, bytes_);
  }
  template <class T>
  [[nodiscard]] T* data() const {
    return data_ == MAP_FAILED ? nullptr : static_cast<T*>(data_);
  }

 private:
  std::size_t bytes_;
  void* data_;
};

}  // namespace rung::test
